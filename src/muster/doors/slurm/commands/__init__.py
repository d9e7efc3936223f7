"""One file for each command: `run(call, door) -> Reply`."""
