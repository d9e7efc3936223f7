"""Where jobs run: one folder for each kind of cluster."""
