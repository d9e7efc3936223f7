"""One attempt on this machine: the processes that start, watch and end it, and its files."""
