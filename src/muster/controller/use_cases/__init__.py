"""The use cases that change something."""
