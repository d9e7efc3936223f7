"""How state moves: admission, what an event changes, when a job is tried again. Pure."""
