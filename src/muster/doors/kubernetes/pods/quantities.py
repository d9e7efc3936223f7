"""Amounts as Kubernetes writes them: `500m`, `1.5`, `64Mi`, `1e3`."""

import re
from collections.abc import Iterable, Mapping
from decimal import ROUND_CEILING, Decimal, localcontext
from typing import Any

from muster.model.errors import MusterError

FORM = r"^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$"
"""As messages name it."""

_NUMBER = re.compile(r"([+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+))(.*)")
_EXPONENT = re.compile(r"[eE]([-+]?[0-9]+)")
_BINARY = {"Ki": 1, "Mi": 2, "Gi": 3, "Ti": 4, "Pi": 5, "Ei": 6}
_DECIMAL = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_SUFFIX_OF = {power: suffix for suffix, power in _DECIMAL.items()}
_KIBI = 1_024
_MIB = Decimal(_KIBI**2)
_MOST = Decimal(2**63 - 1)
_NANO = Decimal("1e-9")
_DIGITS = 60


class BadQuantityError(MusterError):
    """The text is no amount."""

    def __init__(self, text: Any) -> None:
        super().__init__(f"quantities must match the regular expression '{FORM}'")
        self.text = text


def amount(text: Any) -> Decimal:
    """How much it is; BadQuantityError when it is no amount."""
    number, suffix = _parts(text)
    with localcontext() as exact:
        exact.prec = _DIGITS
        found = number * _factor(suffix, text)
        # As Kubernetes does: there is a most, and less than a billionth is a billionth. In this
        # order: what is very large has more digits than can be rounded.
        within = max(-_MOST, min(_MOST, found))
        return within.quantize(_NANO, rounding=ROUND_CEILING)


def canonical(text: Any) -> str:
    """The same amount as Kubernetes would write it: `1000m` is `1`, `1024Mi` is `1Gi`."""
    number, suffix = _parts(text)
    found = amount(text)
    if suffix in _BINARY and abs(found) >= _KIBI and found == found.to_integral_value():
        return _binary(int(found))
    if _EXPONENT.fullmatch(suffix) and number:
        return _decimal(found, exponents=True)
    return _decimal(found)


def shown(value: Decimal, *, like: str = "") -> str:
    """An amount in canonical form, with binary suffixes where `like` has one."""
    is_binary = any(like.endswith(each) for each in _BINARY)
    if is_binary and value == value.to_integral_value() and abs(value) >= _KIBI:
        return _binary(int(value))
    return _decimal(value)


def milli(text: Any) -> int:
    """In thousandths, rounded up."""
    return int((amount(text) * 1_000).to_integral_value(rounding=ROUND_CEILING))


def mib(text: Any) -> int:
    """Bytes as MiB, rounded up."""
    return int((amount(text) / _MIB).to_integral_value(rounding=ROUND_CEILING))


def cpu(cpu_milli: int) -> str:
    """Thousandths of a CPU as Kubernetes writes them."""
    return _decimal(Decimal(cpu_milli) / 1_000)


def memory(memory_mib: int) -> str:
    """MiB as Kubernetes writes them."""
    return _binary(memory_mib * _KIBI**2) if memory_mib else "0"


def totals(*lists: Mapping[str, Any]) -> dict[str, Decimal]:
    """The sum of each resource over these lists."""
    found: dict[str, Decimal] = {}
    for each in lists:
        for name, text in each.items():
            found[name] = found.get(name, Decimal(0)) + amount(text)
    return found


def added(amounts: Iterable[Mapping[str, Decimal]]) -> dict[str, Decimal]:
    """The sum of each resource."""
    found: dict[str, Decimal] = {}
    for each in amounts:
        for name, value in each.items():
            found[name] = found.get(name, Decimal(0)) + value
    return found


def _parts(text: Any) -> tuple[Decimal, str]:
    written = str(text) if isinstance(text, int | float | str) and text is not True else ""
    match = _NUMBER.fullmatch(written)
    if match is None:
        raise BadQuantityError(text)
    suffix = match[2]
    if suffix not in _BINARY and suffix not in _DECIMAL and not _EXPONENT.fullmatch(suffix):
        raise BadQuantityError(text)
    return Decimal(match[1]), suffix


def _factor(suffix: str, text: Any) -> Decimal:
    if suffix in _BINARY:
        return Decimal(_KIBI ** _BINARY[suffix])
    if suffix in _DECIMAL:
        return Decimal(10) ** _DECIMAL[suffix]
    power = int(suffix[1:])
    if abs(power) > _DIGITS // 2:
        raise BadQuantityError(text)
    return Decimal(10) ** power


def _binary(whole: int) -> str:
    """The largest suffix that leaves a whole number."""
    for suffix, power in reversed(_BINARY.items()):
        if whole and whole % _KIBI**power == 0:
            return f"{whole // _KIBI**power}{suffix}"
    return str(whole)


def _decimal(value: Decimal, *, exponents: bool = False) -> str:
    for power in sorted(_SUFFIX_OF, reverse=True):
        scaled = value.scaleb(-power)
        if scaled == scaled.to_integral_value() and (scaled or not power):
            suffix = (f"e{power}" if power else "") if exponents else _SUFFIX_OF[power]
            return f"{int(scaled)}{suffix}"
    return "0"
