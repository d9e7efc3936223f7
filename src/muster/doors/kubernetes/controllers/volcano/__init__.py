"""Jobs of Volcano: tasks that start together, and what follows when one of them ends."""
