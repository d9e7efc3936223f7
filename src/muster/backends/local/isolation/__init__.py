"""What keeps jobs apart on this machine: users, control groups, containers."""
