"""Kinds of other projects that are built in: gangs and queues, as their users write them."""
