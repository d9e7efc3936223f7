"""A cluster in pretend time: nothing really runs."""
