"""Amounts as Kubernetes writes them: `500m`, `1.5Gi`, `2e3`; read exactly, written one way."""

import re
from fractions import Fraction

BINARY = {"Ki": 1, "Mi": 2, "Gi": 3, "Ti": 4, "Pi": 5, "Ei": 6}
DECIMAL = {"n": -3, "u": -2, "m": -1, "": 0, "k": 1, "M": 2, "G": 3, "T": 4, "P": 5, "E": 6}

WRONG = (
    "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
)

_PARTS = re.compile(r"([+-]?(?:\d+\.?\d*|\.\d+))([numkMGTPE]|[KMGTPE]i|[eE][+-]?\d{1,3})?")
_NANO = Fraction(1, 10**9)


def amount(text: str | int | float) -> Fraction:
    """The exact amount; ValueError says what is wrong with the text."""
    number, suffix = _parts(str(text))
    return number * _scale(suffix)


def canonical(text: str | int | float) -> str:
    """The one way to write this amount: whole, with the largest suffix of its own family."""
    number, suffix = _parts(str(text))
    exact = number * _scale(suffix)
    # What is finer than a billionth is rounded away from zero.
    units = -(-abs(exact) // _NANO)
    rounded = units * _NANO if exact >= 0 else -units * _NANO
    if suffix in BINARY:
        return _binary(rounded)
    return _decimal(rounded, exponents=suffix[:1] in {"e", "E"} and len(suffix) > 1)


def _parts(text: str) -> tuple[Fraction, str]:
    found = _PARTS.fullmatch(text)
    if found is None:
        raise ValueError(WRONG)
    return Fraction(found[1]), found[2] or ""


def _scale(suffix: str) -> Fraction:
    if suffix in BINARY:
        return Fraction(1024) ** BINARY[suffix]
    if suffix in DECIMAL:
        return Fraction(1000) ** DECIMAL[suffix]
    return Fraction(10) ** int(suffix[1:])


def _binary(exact: Fraction) -> str:
    if abs(exact) < 1024 or exact.denominator != 1:
        # Too small to have a binary suffix that is whole.
        return _decimal(exact, exponents=False)
    whole, suffix = int(exact), ""
    for name in BINARY:
        if whole % 1024:
            break
        whole, suffix = whole // 1024, name
    return f"{whole}{suffix}"


def _decimal(exact: Fraction, *, exponents: bool) -> str:
    if exact == 0:
        return "0"
    power = -3
    number = exact * 10**9
    while number % 1000 == 0 and power < DECIMAL["E"]:
        number, power = number / 1000, power + 1
    if exponents:
        return f"{number}e{power * 3}" if power else f"{number}"
    suffix = next(name for name, each in DECIMAL.items() if each == power)
    return f"{number}{suffix}"
