"""Logs, output and metrics in the words of those who take them."""
