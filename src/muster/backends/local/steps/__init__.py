"""Steps that `srun` starts inside an attempt of this machine."""
