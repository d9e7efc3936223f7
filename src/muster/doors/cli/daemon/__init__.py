"""Commands that start and stop Muster on this machine, or look for what is wrong with it."""
