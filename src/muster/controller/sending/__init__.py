"""Sends logs, what jobs write, and metrics to servers of others; nothing of ours waits for them."""
