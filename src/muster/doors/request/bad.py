"""Requests that cannot be read: which field it is, and what is accepted there."""

import re
from collections.abc import Callable
from enum import StrEnum
from typing import TypeVar

from muster.doors.units import BadTextError
from muster.model.errors import MusterError

E = TypeVar("E", bound=StrEnum)
T = TypeVar("T")

MOST_INTEGER = 1 << 62

_INTEGER = re.compile(r"-?[0-9]{1,19}")


class BadRequestError(MusterError):
    """The user: what was sent makes no sense; `where` names the field or parameter."""

    def __init__(self, where: str, text: str) -> None:
        super().__init__(f"{where}: {text}" if where else text)
        self.where = where


def read(where: str, reader: Callable[[str], T], text: str | int) -> T:
    """What the reader makes of the text; if it cannot, the field is named."""
    try:
        return reader(str(text))
    except BadTextError as bad:
        raise BadRequestError(where, str(bad)) from bad


def integer(where: str, text: str) -> int:
    """A whole number, below zero or not; more than a database can count is none."""
    if not _INTEGER.fullmatch(text) or abs(int(text)) > MOST_INTEGER:
        raise BadRequestError(where, f"`{text}` cannot be read here; write a whole number")
    return int(text)


def bounded(where: str, value: int, least: int, most: int) -> int:
    """The number, if it lies within what makes sense."""
    if least <= value <= most:
        return value
    raise BadRequestError(where, f"{value} is out of bounds; write a number from {least} to {most}")


def chosen(where: str, words: type[E], text: str) -> E:
    """One of the words that there are."""
    try:
        return words(text)
    except ValueError:
        known = ", ".join(f"`{word}`" for word in words)
        raise BadRequestError(where, f"`{text}` must be one of {known}") from None
