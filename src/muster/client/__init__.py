"""The Python client: `from muster import Client`."""
