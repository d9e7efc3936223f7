"""Muster shares a fleet of GPUs between teams."""

__version__ = "0.1.0"
