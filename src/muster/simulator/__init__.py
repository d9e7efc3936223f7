"""The controller's own loop in pretend time."""
