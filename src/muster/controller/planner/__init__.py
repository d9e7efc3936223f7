"""The planner behind a client: in this thread, or in a process of its own."""
