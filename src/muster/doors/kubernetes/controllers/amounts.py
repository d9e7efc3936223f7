"""Numbers that may be percentages or have a unit, and statuses without their zeros."""

import re
from fractions import Fraction

from muster.doors.kubernetes.objects.value import JsonObject

_AMOUNT = re.compile(r"([0-9.]+)([a-zA-Z]*)")
_UNITS = {
    "": Fraction(1),
    "m": Fraction(1, 1000),
    **{unit: Fraction(1000**power) for power, unit in enumerate("kMGTPE", start=1)},
    **{f"{unit}i": Fraction(1024**power) for power, unit in enumerate("KMGTPE", start=1)},
}


def scaled(value: int | str | None, total: int, *, up: bool) -> int:
    """What `25%`, or a plain number, comes to; percentages of a total round up or down."""
    if value is None:
        return 0
    if isinstance(value, int):
        return value
    percent = int(value.removesuffix("%"))
    return -(-total * percent // 100) if up else total * percent // 100


def thousandths(text: str | int) -> int:
    """An amount such as `500m`, `2` or `1Gi`, in thousandths."""
    found = _AMOUNT.fullmatch(str(text))
    return 0 if found is None else int(Fraction(found[1]) * _UNITS[found[2]] * 1000)


def without_zeros(status: JsonObject, *kept: str) -> JsonObject:
    """Counters that are zero, empty lists and absent values are not written, but for these."""
    return {
        key: value
        for key, value in status.items()
        if key in kept or (value is not None and value not in (0, "", [], {}))
    }
