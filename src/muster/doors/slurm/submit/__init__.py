"""From a call of sbatch to one JobSpec: options, script and environment."""
