"""Chance that can be had again: the same for the same question, on any machine, on any day."""

_MASK = (1 << 64) - 1
_GOLDEN = 0x9E3779B97F4A7C15


def chance(*question: int) -> float:
    """Between 0 and 1, spread evenly over questions."""
    mixed = 0
    for number in question:
        mixed = (mixed + _GOLDEN + number) & _MASK
        mixed = ((mixed ^ (mixed >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
        mixed = ((mixed ^ (mixed >> 27)) * 0x94D049BB133111EB) & _MASK
        mixed ^= mixed >> 31
    return ((mixed >> 11) + 0.5) / (1 << 53)
