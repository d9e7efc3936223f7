"""What this machine has, or pretends to have: CPUs, memory, GPUs, and how jobs get at them."""
