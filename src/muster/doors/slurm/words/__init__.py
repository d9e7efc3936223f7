"""How Slurm writes things: times, sizes, lists of nodes, options, tables, states, errors. Pure."""
