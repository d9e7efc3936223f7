"""Regular expressions that somebody else wrote, in the syntax of RE2, as Go and Kubernetes read it.

They are matched in time that grows with the product of both lengths, and never faster.
Python's own matcher tries all ways one after the other: a short expression can keep it for years.
"""

import string
import unicodedata
from collections.abc import Callable, Iterator
from functools import lru_cache

from muster.model.value import Value

MOST_REPEATS = 1_000
MOST_STEPS = 10_000
DEEPEST = 100
MOST_WORK = 5_000_000
"""Characters times steps, at most: about a second."""

Is = Callable[[str], bool]

_REPEATS = {"*": (0, None), "+": (1, None), "?": (0, 1)}
_PLAIN = {"n": "\n", "t": "\t", "r": "\r", "f": "\f", "v": "\v", "a": "\a"}
_ENDS = {"A": "begin", "z": "end", "b": "edge", "B": "no edge"}
_SPACES, _DIGITS = "\t\n\f\r ", "0123456789"
_POSIX: dict[str, Is] = {
    "alnum": lambda char: char.isascii() and char.isalnum(),
    "alpha": lambda char: char.isascii() and char.isalpha(),
    "digit": lambda char: char in _DIGITS,
    "lower": lambda char: char.isascii() and char.islower(),
    "upper": lambda char: char.isascii() and char.isupper(),
    "punct": lambda char: char in string.punctuation,
    "space": lambda char: char in _SPACES or char == "\v",
    "xdigit": lambda char: char in "0123456789abcdefABCDEF",
    "word": lambda char: char.isascii() and (char.isalnum() or char == "_"),
}
_CLASSES: dict[str, Is] = {
    "d": _POSIX["digit"],
    "w": _POSIX["word"],
    "s": lambda char: char in _SPACES,
}


class BadPatternError(ValueError):
    """It is no expression of RE2, or one too large; the text says what is wrong."""


class TooMuchTextError(ValueError):
    """The text is too long for such an expression."""


class _Step(Value, gc=False):
    """One step of a match: take a character, look where it is, or go on in several ways."""

    takes: Is | None = None
    looks: str = ""
    ways: tuple[int, ...] = ()


class Pattern:
    """One expression."""

    def __init__(self, text: str) -> None:
        self._steps = _Writer(text).steps()

    @property
    def size(self) -> int:
        """How many steps it has: a match takes so many for each character, at most."""
        return len(self._steps)

    def is_in(self, text: str) -> bool:
        """Does it match some part of the text?"""
        return self._matches(text, anywhere=True)

    def is_whole(self, text: str) -> bool:
        """Does it match the text from its begin to its end?"""
        return self._matches(text, anywhere=False)

    def _matches(self, text: str, *, anywhere: bool) -> bool:
        steps = self._steps
        if (len(text) + 1) * len(steps) > MOST_WORK:
            raise TooMuchTextError(f"{len(text)} characters are too many for such an expression")
        here: set[int] = set()
        last = len(steps) - 1
        for place in range(len(text) + 1):
            if anywhere or place == 0:
                here.add(0)
            here = self._reached(here, text, place)
            if last in here and (anywhere or place == len(text)):
                return True
            if place < len(text):
                here = self._after(here, text[place])
        return False

    def _reached(self, begins: set[int], text: str, place: int) -> set[int]:
        """Where one may be without another character."""
        found: set[int] = set()
        left = list(begins)
        while left:
            number = left.pop()
            if number in found:
                continue
            found.add(number)
            step = self._steps[number]
            if step.takes is None and (not step.looks or _is_so(step.looks, text, place)):
                left.extend(step.ways)
        return found

    def _after(self, here: set[int], char: str) -> set[int]:
        """Where one may be when this character was taken."""
        found: set[int] = set()
        for number in here:
            step = self._steps[number]
            if step.takes is not None and step.takes(char):
                found.update(step.ways)
        return found


@lru_cache(1_024)
def pattern(text: str) -> Pattern:
    """The same one again for the same text; BadPatternError as for a new one."""
    return Pattern(text)


def _is_so(looks: str, text: str, place: int) -> bool:
    if looks == "begin":
        return place == 0
    if looks == "end":
        return place == len(text)
    is_word = _POSIX["word"]
    before = place > 0 and is_word(text[place - 1])
    after = place < len(text) and is_word(text[place])
    return (before != after) is (looks == "edge")


_Piece = tuple[int, list[int]]
"""Where a part of an expression begins, and the steps that lead on from it."""


class _Writer:
    """Reads an expression and writes its steps, the last of which is the match."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._steps: list[_Step] = []
        self._folds = False
        self._dot_is_all = False
        self._depth = 0

    def steps(self) -> tuple[_Step, ...]:
        begin, ends = self._either()
        if self._at < len(self._text):
            raise BadPatternError("unexpected )")
        self._join(ends, self._add(_Step()))
        # The first step is where all matches begin.
        return _begun_at(begin, self._steps)

    def _either(self) -> _Piece:
        self._depth += 1
        if self._depth > DEEPEST:
            raise BadPatternError("expression nests too deeply")
        begins, ends = self._row()
        while self._peek() == "|":
            self._at += 1
            other, more = self._row()
            begins = self._add(_Step(ways=(begins, other)))
            ends = [*ends, *more]
        self._depth -= 1
        return begins, ends

    def _row(self) -> _Piece:
        begin = self._add(_Step())
        ends = [begin]
        while self._peek() not in {"", "|", ")"}:
            first, last = self._repeated()
            self._join(ends, first)
            ends = last
        return begin, ends

    def _repeated(self) -> _Piece:
        begins_at = self._at
        piece = self._atom()
        times = self._times()
        if times is None:
            return piece
        if self._times() is not None:
            raise BadPatternError("invalid nested repetition operator")
        copies = self._copies(piece, begins_at)
        least, most = times
        begin = self._add(_Step())
        ends = [begin]
        for _ in range(least):
            first, last = next(copies)
            self._join(ends, first)
            ends = last
        return begin, self._more(ends, copies, None if most is None else most - least)

    def _more(self, ends: list[int], copies: Iterator[_Piece], most: int | None) -> list[int]:
        """As many copies again as there may be, none of which there must be."""
        if most is None:
            first, last = next(copies)
            choice = self._add(_Step(ways=(first,)))
            self._join([*ends, *last], choice)
            return [choice]
        left_out: list[int] = []
        for _ in range(most):
            first, last = next(copies)
            choice = self._add(_Step(ways=(first,)))
            self._join(ends, choice)
            left_out.append(choice)
            ends = last
        return [*ends, *left_out]

    def _copies(self, piece: _Piece, begins_at: int) -> Iterator[_Piece]:
        """What is repeated, read again for each further copy."""
        yield piece
        while True:
            goes_on, self._at = self._at, begins_at
            another = self._atom()
            self._at = goes_on
            yield another

    def _times(self) -> tuple[int, int | None] | None:
        """How often, where something says so; a `?` behind it changes no answer."""
        sign = self._peek()
        found = _REPEATS.get(sign)
        if found is not None:
            self._at += 1
        elif sign == "{":
            found = self._counted()
        if found is not None and self._peek() == "?":
            self._at += 1
        return found

    def _counted(self) -> tuple[int, int | None] | None:
        inside, close, _ = self._text[self._at + 1 :].partition("}")
        least, comma, most = inside.partition(",")
        is_count = close and least.isdecimal() and (not most or most.isdecimal())
        if not is_count:
            return None
        self._at += len(inside) + 2
        if max(len(least), len(most)) > len(str(MOST_REPEATS)):
            raise BadPatternError("invalid repeat count")
        first = int(least)
        last = first if not comma else int(most) if most else None
        if max(first, last or 0) > MOST_REPEATS or (last is not None and last < first):
            raise BadPatternError("invalid repeat count")
        return first, last

    def _atom(self) -> _Piece:
        char = self._next()
        match char:
            case "(":
                return self._group()
            case "[":
                return self._taking(self._set())
            case ".":
                is_all = self._dot_is_all
                return self._taking(lambda each: is_all or each != "\n")
            case "^":
                return self._looking("begin")
            case "$":
                return self._looking("end")
            case "*" | "+" | "?":
                raise BadPatternError("missing argument to repetition operator")
            case "\\":
                return self._escaped()
            case _:
                return self._taking(self._same(char))

    def _group(self) -> _Piece:
        folds, dot = self._folds, self._dot_is_all
        if self._peek() == "?":
            self._at += 1
            if self._flags():
                return self._nothing()
        piece = self._either()
        if self._next(otherwise="missing closing )") != ")":
            raise BadPatternError("missing closing )")
        self._folds, self._dot_is_all = folds, dot
        return piece

    def _flags(self) -> bool:
        """What stands behind `(?`. True: it holds from here on, and nothing is grouped."""
        for name in ("P<", "<"):
            if self._text.startswith(name, self._at):
                self._at = self._text.find(">", self._at) + 1
                if not self._at:
                    raise BadPatternError("invalid named capture")
                return False
        value = True
        while True:
            match self._next(otherwise="missing closing )"):
                case "-":
                    value = False
                case "i":
                    self._folds = value
                case "s":
                    self._dot_is_all = value
                case ":":
                    return False
                case ")":
                    return True
                case char:
                    raise BadPatternError(f"invalid or unsupported Perl syntax: `(?{char}`")

    def _escaped(self) -> _Piece:
        char = self._peek()
        if char in _ENDS:
            self._at += 1
            return self._looking(_ENDS[char])
        return self._taking(self._escaped_class())

    def _escaped_class(self) -> Is:
        """What stands behind a backslash, as what it takes."""
        char = self._next(otherwise="trailing backslash at end of expression")
        if char.lower() in _CLASSES:
            wanted = _CLASSES[char.lower()]
            return wanted if char.islower() else lambda each: not wanted(each)
        if char in "pP":
            return self._category(is_not=char == "P")
        return self._same(self._escaped_char(char))

    def _escaped_char(self, char: str) -> str:
        if char == "x":
            digits = self._next()
            if digits == "{":
                digits, _, _ = self._text[self._at :].partition("}")
                self._at += len(digits) + 1
            else:
                digits += self._next()
            try:
                return chr(int(digits, 16))
            except (ValueError, OverflowError):
                raise BadPatternError("invalid escape sequence: `\\x`") from None
        if char in _PLAIN:
            return _PLAIN[char]
        if char.isascii() and char.isalnum():
            raise BadPatternError(f"invalid escape sequence: `\\{char}`")
        return char

    def _category(self, *, is_not: bool) -> Is:
        name = self._next()
        if name == "{":
            name, _, _ = self._text[self._at :].partition("}")
            self._at += len(name) + 1
        if name[:1] not in set("LMNPSZC") or len(name) > len("Lu"):
            raise BadPatternError(f"invalid character class range: `\\p{{{name}}}`")
        return lambda each: unicodedata.category(each).startswith(name) is not is_not

    def _set(self) -> Is:
        is_not = self._peek() == "^"
        self._at += is_not
        members: list[Is] = []
        while self._peek() != "]" or not members:
            members.append(self._member())
        self._at += 1
        return lambda each: any(member(each) for member in members) is not is_not

    def _member(self) -> Is:
        for name, members in _POSIX.items():
            for sign in ("", "^"):
                whole = f"[:{sign}{name}:]"
                if self._text.startswith(whole, self._at):
                    self._at += len(whole)
                    return members if not sign else _no(members)
        low = self._next(otherwise="missing closing ]")
        if low == "\\":
            if self._peek().lower() in {*_CLASSES, "p"}:
                return self._escaped_class()
            low = self._escaped_char(self._next(otherwise="missing closing ]"))
        if self._peek() != "-" or self._text[self._at + 1 : self._at + 2] in {"", "]"}:
            return self._same(low)
        self._at += 1
        high = self._next()
        if high == "\\":
            high = self._escaped_char(self._next(otherwise="missing closing ]"))
        if high < low:
            raise BadPatternError(f"invalid character class range: `{low}-{high}`")
        if self._folds:
            return lambda each: any(low <= one <= high for one in (each.lower(), each.upper()))
        return lambda each: low <= each <= high

    def _same(self, char: str) -> Is:
        if self._folds:
            return lambda each: each.lower() == char.lower()
        return lambda each: each == char

    def _taking(self, takes: Is) -> _Piece:
        number = self._add(_Step(takes=takes))
        return number, [number]

    def _looking(self, looks: str) -> _Piece:
        number = self._add(_Step(looks=looks))
        return number, [number]

    def _nothing(self) -> _Piece:
        number = self._add(_Step())
        return number, [number]

    def _add(self, step: _Step) -> int:
        if len(self._steps) >= MOST_STEPS:
            raise BadPatternError("expression too large")
        self._steps.append(step)
        return len(self._steps) - 1

    def _join(self, ends: list[int], to: int) -> None:
        for number in ends:
            step = self._steps[number]
            self._steps[number] = _Step(takes=step.takes, looks=step.looks, ways=(*step.ways, to))

    def _peek(self) -> str:
        return self._text[self._at : self._at + 1]

    def _next(self, otherwise: str = "unexpected end of expression") -> str:
        char = self._peek()
        if not char:
            raise BadPatternError(otherwise)
        self._at += 1
        return char


def _no(members: Is) -> Is:
    return lambda each: not members(each)


def _begun_at(begin: int, steps: list[_Step]) -> tuple[_Step, ...]:
    """With a first step that leads there: the numbers of all others are one more."""
    moved = [
        _Step(takes=step.takes, looks=step.looks, ways=tuple(number + 1 for number in step.ways))
        for step in steps
    ]
    return (_Step(ways=(begin + 1,)), *moved)
