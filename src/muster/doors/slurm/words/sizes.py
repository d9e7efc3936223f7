"""Amounts of memory as Slurm reads and writes them. Pure."""

import re
from decimal import ROUND_CEILING, Decimal

MOST_MIB = 2**40

_SIZE = re.compile(r"([0-9]{1,18})\s*([kmgtp]?)(?:i?b)?", re.IGNORECASE)
_MIB = {"": 1, "m": 1, "g": 1_024, "t": 1_024**2, "p": 1_024**3}
_UNITS = "MGTPE"


def memory_mib(text: str) -> int | None:
    """`4000`, `16G`, `1gb`, `512K` (rounded up); digits alone count MiB. None: not a size."""
    found = _SIZE.fullmatch(text.strip())
    if found is None:
        return None
    unit = found[2].lower()
    if unit == "k":
        mib = int((Decimal(found[1]) / 1_024).to_integral_value(ROUND_CEILING))
    else:
        mib = int(found[1]) * _MIB[unit]
    return mib if mib <= MOST_MIB else None


def memory_text(mib: int, *, convert: bool = True) -> str:
    """`16G`, `4000M`: in the largest unit in which it is a whole number. Nothing is `0`."""
    if mib == 0:
        return "0"
    unit = 0
    while convert and mib % 1_024 == 0 and unit < len(_UNITS) - 1:
        mib //= 1_024
        unit += 1
    return f"{mib}{_UNITS[unit]}"


def measured_text(kib: int) -> str:
    """What was measured, as sacct shows it: `4608K`, or `4.50M` from a MiB on."""
    size, unit = Decimal(kib), 0
    while size >= 1_024 and unit < 4:
        size /= 1_024
        unit += 1
    return f"{kib}K" if unit == 0 else f"{size:.2f}{'KMGTP'[unit]}"
