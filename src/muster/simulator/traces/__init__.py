"""Traces of other clusters, and of our own, as one kind of value."""
