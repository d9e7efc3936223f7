"""Slurm's configuration files: read into Muster's rules and nodes, and written back."""
