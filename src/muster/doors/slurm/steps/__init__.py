"""srun and salloc: jobs of their own, and steps inside a running job."""
