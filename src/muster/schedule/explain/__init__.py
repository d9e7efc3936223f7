"""What a decision means to people: who is in the way, what would help, and where a job stands."""
