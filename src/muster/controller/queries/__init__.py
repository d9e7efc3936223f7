"""The use cases that look."""
