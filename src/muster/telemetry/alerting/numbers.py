"""Numbers in texts of alerts, in the words of Prometheus' templates."""

import math
from collections.abc import Callable, Mapping

_LARGE = ("", "k", "M", "G", "T", "P", "E", "Z", "Y")
_LARGE_BINARY = ("", "ki", "Mi", "Gi", "Ti", "Pi", "Ei", "Zi", "Yi")
_SMALL = ("", "m", "u", "n", "p", "f", "a", "z", "y")


def plain(value: float) -> str:
    """As it stands in a text: the fewest digits that say it exactly."""
    if not math.isfinite(value):
        return _unusual(value)
    digits = repr(float(value))
    if abs(value) >= 1e21 or 0 < abs(value) < 1e-4:
        return _with_exponent(digits)
    if "e" in digits:
        return format(int(value), "d")
    return digits.removesuffix(".0")


def formatted(verb: str, value: float) -> str:
    """One verb of printf, such as `%.1f`. `%v` and `%g` without digits are the number itself."""
    kind = verb[-1]
    if not math.isfinite(value):
        return _unusual(value)
    if kind in "vg" and "." not in verb:
        return plain(value)
    return (verb[:-1] + ("g" if kind == "v" else kind)) % value


def humanize(value: float) -> str:
    """`12.3k`, `45m`: four digits and a prefix."""
    if value == 0 or not math.isfinite(value):
        return _four(value)
    return _small(value) if abs(value) < 1 else _large(value, _LARGE, 1000)


def humanize1024(value: float) -> str:
    """`1.5Gi`."""
    if abs(value) <= 1 or not math.isfinite(value):
        return _four(value)
    return _large(value, _LARGE_BINARY, 1024)


def humanize_duration(value: float) -> str:
    """Seconds as `1h 0m 5s`."""
    if not math.isfinite(value):
        return _four(value)
    if value == 0:
        return "0s"
    if abs(value) < 1:
        return f"{_small(value)}s"
    sign, size = ("-" if value < 0 else ""), abs(value)
    minutes, seconds = divmod(int(size), 60)
    hours, minutes = divmod(minutes, 60)
    days, hours = divmod(hours, 24)
    if days:
        return f"{sign}{days}d {hours}h {minutes}m {seconds}s"
    if hours:
        return f"{sign}{hours}h {minutes}m {seconds}s"
    if minutes:
        return f"{sign}{minutes}m {seconds}s"
    return f"{sign}{_four(size)}s"


def humanize_percentage(value: float) -> str:
    """A part of one as `12.5%`."""
    return f"{_four(value * 100)}%"


HUMANIZERS: Mapping[str, Callable[[float], str]] = {
    "humanize": humanize,
    "humanize1024": humanize1024,
    "humanizeDuration": humanize_duration,
    "humanizePercentage": humanize_percentage,
}


def _large(value: float, prefixes: tuple[str, ...], step: int) -> str:
    prefix = ""
    for next_prefix in prefixes[1:]:
        if abs(value) < step:
            break
        prefix = next_prefix
        value /= step
    return f"{_four(value)}{prefix}"


def _small(value: float) -> str:
    prefix = ""
    for next_prefix in _SMALL[1:]:
        if abs(value) >= 1:
            break
        prefix = next_prefix
        value *= 1000
    return f"{_four(value)}{prefix}"


def _four(value: float) -> str:
    return f"{value:.4g}" if math.isfinite(value) else _unusual(value)


def _unusual(value: float) -> str:
    if math.isnan(value):
        return "NaN"
    return "+Inf" if value > 0 else "-Inf"


def _with_exponent(digits: str) -> str:
    """`1e-05`, `1.5e+21`: at least two digits in the exponent, its sign always."""
    mantissa, _, exponent = f"{float(digits):e}".partition("e")
    short = repr(float(digits))
    if "e" in short:
        mantissa, _, exponent = short.partition("e")
    number = int(exponent)
    sign = "-" if number < 0 else "+"
    return f"{mantissa.removesuffix('.0')}e{sign}{abs(number):02d}"
