"""What people ask for when they submit a job, the same from every door: one table of requests."""
