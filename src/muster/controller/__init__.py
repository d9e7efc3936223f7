"""The loop, and the use cases that doors call."""
