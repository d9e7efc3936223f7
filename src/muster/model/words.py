"""Amounts and spans of time as people read them."""

from collections.abc import Sequence

from muster.model.queue import Meter, Scope
from muster.model.value import DAY, HOUR, MINUTE, SECOND, Duration


def counted(count: int, noun: str) -> str:
    """`1 GPU`, `8 GPUs`."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def thousandths(amount: int) -> str:
    """`8`, `0.5`, `1.142`."""
    whole, part = divmod(amount, 1_000)
    return f"{whole}.{part:03}".rstrip("0") if part else str(whole)


def percent(amount_milli: int) -> str:
    """`50%`, `12.5%`."""
    whole, part = divmod(amount_milli, 10)
    return f"{whole}.{part}%" if part else f"{whole}%"


def gpus(amount_milli: int) -> str:
    """`1 GPU`, `0.5 GPUs`, `8 GPUs`."""
    return f"{thousandths(amount_milli)} GPU" + ("" if amount_milli == 1_000 else "s")


def cores(amount_milli: int) -> str:
    """`1 core`, `2.5 cores`."""
    return f"{thousandths(amount_milli)} core" + ("" if amount_milli == 1_000 else "s")


def memory(amount_mib: int) -> str:
    """In GiB where that is a whole number."""
    return f"{amount_mib} MiB" if amount_mib % 1_024 else f"{amount_mib // 1_024} GiB"


def metered(scope: Scope, amount: int) -> str:
    """`64 GPUs`, `2.5 cores`, `512 GiB`, `3 1g.5gb slices`."""
    match scope.meter:
        case Meter.GPU:
            return gpus(amount)
        case Meter.CPU:
            return cores(amount)
        case Meter.MEMORY:
            return memory(amount)
        case Meter.MIG:
            return counted(amount, f"{scope.profile} slice")


def placed(scope: Scope) -> str:
    """Where the scope counts: ` in pool a100`, ` on A100-40GB`, or nothing for everywhere."""
    pool = f" in pool {scope.pool}" if scope.pool else ""
    return pool + (f" on {scope.model}" if scope.model else "")


def span(duration: int) -> str:
    """`2h 30m`, `45s`: rounded up, because milliseconds do not matter to people."""
    step = next((less for unit, less in _FINER if duration >= unit), SECOND)
    return exact_span(-(-duration // step) * step)


def exact_span(duration: int) -> str:
    """`1d 12h`, `90ms`: the parts that are not zero, largest first; where limits are compared."""
    parts: list[str] = []
    for length, letter in _UNITS:
        count, duration = divmod(duration, length)
        if count:
            parts.append(f"{count}{letter}")
    return " ".join(parts) or "0s"


_UNITS = ((DAY, "d"), (HOUR, "h"), (MINUTE, "m"), (SECOND, "s"), (Duration(1), "ms"))


# For spans of at least this long, what is shorter than that says nothing.
_FINER: tuple[tuple[Duration, Duration], ...] = ((DAY, HOUR), (HOUR, MINUTE))


def listed(names: Sequence[str], most: int = 3) -> str:
    """`a`, `a and b`, `a, b, c and 9 more`."""
    shown = list(names[:most])
    if len(names) > most:
        shown.append(f"{len(names) - most} more")
    if len(shown) < 2:
        return "".join(shown)
    return f"{', '.join(shown[:-1])} and {shown[-1]}"
