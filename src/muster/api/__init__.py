"""The documents of the REST API: what its server and its clients both speak."""
