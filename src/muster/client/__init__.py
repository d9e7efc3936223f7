"""Muster from Python: a typed client of the REST API."""
