"""The Slurm door: the commands of Slurm, parsed and answered by the server."""
