"""A priority as one number, as Slurm has it. Pure."""

from muster.model.plan import Priority

MOST_PRIORITY = (1 << 32) - 1

OWN_FIRST = 1 << 31
"""The head start of a job whose queue is within its guarantee: more than all else together."""


def rank_of(priority: Priority) -> int:
    """Slurm counts in 32 bits, and 0 means that a job is held."""
    points = (OWN_FIRST if priority.is_own else 0) + priority.total
    return min(max(points, 1), MOST_PRIORITY)
