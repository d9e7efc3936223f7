"""How people talk to Muster."""
