"""A Slurm cluster as a backend. `listing`, `nodes`, `submission` and `attempt` are pure."""
