"""Numbers as Prometheus counts: nothing overflows, and nothing is divided in vain."""

import math
from collections.abc import Callable, Iterable, Mapping


def _quotient(a: float, b: float) -> float:
    if b:
        return a / b
    if a == 0 or math.isnan(a):
        return math.nan
    return math.copysign(math.inf, a) * math.copysign(1.0, b)


def _rest(a: float, b: float) -> float:
    if b == 0 or math.isinf(a):
        return math.nan
    return math.fmod(a, b)


def _power(a: float, b: float) -> float:
    try:
        return math.pow(a, b)
    except OverflowError:
        is_odd = b == math.floor(b) and math.fmod(b, 2) != 0
        return -math.inf if a < 0 and is_odd else math.inf
    except ValueError:
        # A negative root, or 0 to something negative.
        if a:
            return math.nan
        return math.copysign(math.inf, a) if math.fmod(b, 2) in {1, -1} else math.inf


Number = Callable[[float, float], float]
Question = Callable[[float, float], bool]

RESULTS: Mapping[str, Number] = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "/": _quotient,
    "%": _rest,
    "^": _power,
}

ANSWERS: Mapping[str, Question] = {
    "==": lambda a, b: a == b,
    "!=": lambda a, b: a != b,
    "<": lambda a, b: a < b,
    ">": lambda a, b: a > b,
    "<=": lambda a, b: a <= b,
    ">=": lambda a, b: a >= b,
}


def total(values: Iterable[float]) -> tuple[float, float]:
    """The sum and what rounding took from it, after Kahan and Neumaier."""
    whole = lost = 0.0
    for value in values:
        whole, lost = _added(value, whole, lost)
    return whole, lost


def mean(values: list[float]) -> float:
    whole, lost = total(values)
    count = len(values)
    if math.isinf(whole) and all(map(math.isfinite, values)):
        return math.fsum(value / count for value in values)
    return whole / count + lost / count


def variance(values: Iterable[float]) -> float:
    count = 0
    middle = middle_lost = spread = spread_lost = 0.0
    for value in values:
        count += 1
        distance = value - (middle + middle_lost)
        middle, middle_lost = _added(distance / count, middle, middle_lost)
        farther = value - (middle + middle_lost)
        spread, spread_lost = _added(distance * farther, spread, spread_lost)
    return (spread + spread_lost) / count


def quantile(part: float, values: Iterable[float]) -> float:
    """The value below which this part of them lies, straight between neighbours."""
    ordered = sorted(values, key=lambda value: (not math.isnan(value), value))
    if not ordered or math.isnan(part):
        return math.nan
    if not 0 <= part <= 1:
        return math.copysign(math.inf, part)
    rank = part * (len(ordered) - 1)
    lower = max(0, math.floor(rank))
    upper = min(len(ordered) - 1, lower + 1)
    weight = rank - math.floor(rank)
    return ordered[lower] * (1 - weight) + ordered[upper] * weight


def larger(a: float, b: float) -> float:
    return math.nan if math.isnan(a) or math.isnan(b) else max(a, b)


def smaller(a: float, b: float) -> float:
    return math.nan if math.isnan(a) or math.isnan(b) else min(a, b)


def _added(value: float, whole: float, lost: float) -> tuple[float, float]:
    new = whole + value
    if math.isinf(new):
        return new, 0.0
    rest = (whole - new) + value if abs(whole) >= abs(value) else (value - new) + whole
    return new, lost + rest
