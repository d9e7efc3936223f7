"""Days and times of day as Slurm's users write them, read from left to right. Pure."""

import re
from datetime import datetime, timedelta

from muster.model.value import DAY, HOUR, MINUTE, SECOND, Duration, Value

_HOURS = {"midnight": 0, "noon": 12, "fika": 15, "teatime": 16}
_DAYS = {"today": 0, "tomorrow": 1}
_UNITS = (
    ("seconds", SECOND),
    ("minutes", MINUTE),
    ("hours", HOUR),
    ("days", DAY),
    ("weeks", Duration(7 * DAY)),
)
_BETWEEN = " \t-T"
_WORD = re.compile("|".join(("now", *_HOURS, *_DAYS)), re.IGNORECASE)
_UNIT = re.compile("|".join(f"{name}|{name[:-1]}" for name, _ in _UNITS), re.IGNORECASE)
_ISO = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_HALF = re.compile(r"\s*([ap])m", re.IGNORECASE)
_NUMBER = re.compile(r"[0-9]+")
_MOST = 10**12


class BadTimeError(ValueError):
    """The text is no time; `place` is where reading it stopped."""

    def __init__(self, text: str, place: int = 0) -> None:
        super().__init__(text)
        self.text = text
        self.place = place


class DateAndTime(Value):
    """What was read: a time from now on, or a day, a time of day, or both.

    day: year, month and day; a year of 0 was not said.
    """

    from_now: Duration | None = None
    day: tuple[int, int, int] | None = None
    clock: tuple[int, int, int] | None = None


def read(text: str, today: datetime) -> DateAndTime:
    """The parts in any order, with blanks, dashes or a T between; BadTimeError says where not."""
    reading = _DateParser(text, today)
    while reading.goes_on():
        reading.take()
    if reading.moment() == DateAndTime():
        raise BadTimeError(text)
    return reading.moment()


class _DateParser:
    def __init__(self, text: str, today: datetime) -> None:
        self._text = text.rstrip()
        self._today = today
        self._at = 0
        self._from_now: Duration | None = None
        self._day: tuple[int, int, int] | None = None
        self._clock: tuple[int, int, int] | None = None

    def moment(self) -> DateAndTime:
        return DateAndTime(from_now=self._from_now, day=self._day, clock=self._clock)

    def goes_on(self) -> bool:
        while self._at < len(self._text) and self._text[self._at] in _BETWEEN:
            self._at += 1
        return self._at < len(self._text)

    def take(self) -> None:
        """The next part."""
        if found := _WORD.match(self._text, self._at):
            self._at = found.end()
            self._take_word(found[0].lower())
        elif not self._is_digit():
            raise self._bad()
        elif ":" in self._text[self._at + 1 : self._at + 3]:
            self._take_clock()
        elif _ISO.match(self._text, self._at):
            year = self._number(4, 0, 9_999)
            self._at += 1
            month = self._number(2, 1, 12)
            self._at += 1
            self._day = year, month, self._number(2, 1, 31)
        else:
            self._take_day()

    def _take_word(self, word: str) -> None:
        if word == "now":
            self._take_span()
        elif word in _HOURS:
            self._clock = _HOURS[word], 0, 0
        else:
            then = self._today + timedelta(days=_DAYS[word])
            self._day = then.year, then.month, then.day

    def _take_span(self) -> None:
        """What follows `now`."""
        self._skip(" \t")
        sign = self._text[self._at : self._at + 1]
        if not sign:
            self._from_now = Duration(0)
            return
        if sign not in "+-":
            raise self._bad()
        self._at += 1
        self._skip(" \t")
        found = _NUMBER.match(self._text, self._at)
        if found is None:
            raise self._bad(self._at - 1)
        self._at = found.end()
        count = min(int(found[0]), _MOST) * self._unit()
        self._from_now = Duration(count if sign == "+" else -count)

    def _unit(self) -> Duration:
        self._skip(" \t")
        found = _UNIT.match(self._text, self._at)
        if found is None and self._at < len(self._text):
            raise self._bad(self._at - 1)
        if found is None:
            return SECOND
        self._at = found.end()
        return next(length for name, length in _UNITS if name.startswith(found[0].lower()))

    def _take_clock(self) -> None:
        """`9:30`, `21:30:15`, `9:30 pm`."""
        began = self._at
        hour = self._number(2, 0, 23)
        self._at += 1
        minute, second = self._sixtieth(), 0
        if self._text[self._at : self._at + 1] == ":":
            self._at += 1
            second = self._sixtieth()
        if found := _HALF.match(self._text, self._at):
            if hour > 12:
                raise self._bad(began)
            self._at = found.end()
            hour = hour % 12 + (12 if found[1].lower() == "p" else 0)
        self._clock = hour, minute, second

    def _sixtieth(self) -> int:
        if not self._is_digit(self._at + 1) and self._is_digit():
            raise self._bad(self._at + 1)
        return self._number(2, 0, 59)

    def _take_day(self) -> None:
        """`MMDD`, `MM/DD`, `MM.DD`, each with a year of two or four digits behind it or without."""
        month = self._number(2, 1, 12)
        self._skip("./", most=1)
        day = self._number(2, 1, 31)
        self._skip("./", most=1)
        year = self._number(4, 0, 9_999) if self._is_digit() else 0
        self._day = year + 2_000 if 0 < year < 100 else year, month, day

    def _number(self, digits: int, least: int, most: int) -> int:
        began = self._at
        while self._is_digit() and self._at - began < digits:
            self._at += 1
        if self._at == began:
            raise self._bad()
        found = int(self._text[began : self._at])
        if not least <= found <= most:
            raise self._bad(began)
        return found

    def _skip(self, letters: str, most: int = 1_000) -> None:
        while most and self._at < len(self._text) and self._text[self._at] in letters:
            self._at, most = self._at + 1, most - 1

    def _is_digit(self, at: int | None = None) -> bool:
        place = self._at if at is None else at
        return self._text[place : place + 1] in tuple("0123456789")

    def _bad(self, place: int | None = None) -> BadTimeError:
        return BadTimeError(self._text, self._at if place is None else place)
