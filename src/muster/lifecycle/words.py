"""Amounts, spans of time and suggestions as people read them."""

from collections.abc import Iterable
from difflib import get_close_matches

from muster.model.queue import Meter, Scope
from muster.model.value import DAY, HOUR, MINUTE, SECOND, Duration


def spoken(scope: Scope, amount: int) -> str:
    """`64 GPUs`, `2.5 cores`, `512 GiB`, `3 1g.5gb instances`, and where: ` in pool a100`."""
    return _measure(scope, amount) + _place(scope)


def span(duration: Duration) -> str:
    """`1d 12h`, `90ms`: the parts that are not zero, largest first."""
    units = ((DAY, "d"), (HOUR, "h"), (MINUTE, "m"), (SECOND, "s"), (Duration(1), "ms"))
    parts: list[str] = []
    left = int(duration)
    for length, unit in units:
        count, left = divmod(left, length)
        if count:
            parts.append(f"{count}{unit}")
    return " ".join(parts) or "0s"


def near(name: str, known: Iterable[str]) -> tuple[str, ...]:
    """Up to three names like this one, the most alike first."""
    return tuple(get_close_matches(name, sorted(known), n=3))


def choice(names: Iterable[str]) -> str:
    """`a`, `a or b`, `a, b or c`."""
    *most, last = names
    return f"{', '.join(most)} or {last}" if most else last


def thousandths(amount: int) -> str:
    """`8`, `0.5`, `1.142`."""
    whole, part = divmod(amount, 1_000)
    return f"{whole}.{part:03}".rstrip("0") if part else str(whole)


def _measure(scope: Scope, amount: int) -> str:
    match scope.meter:
        case Meter.GPU:
            return f"{thousandths(amount)} GPUs"
        case Meter.CPU:
            return f"{thousandths(amount)} cores"
        case Meter.MEMORY:
            return memory(amount)
        case Meter.MIG:
            return f"{amount} {scope.profile} instances"


def memory(amount_mib: int) -> str:
    """In GiB where that is a whole number."""
    return f"{amount_mib} MiB" if amount_mib % 1_024 else f"{amount_mib // 1_024} GiB"


def _place(scope: Scope) -> str:
    pool = f" in pool {scope.pool}" if scope.pool else ""
    return pool + (f" on {scope.model}" if scope.model else "")
