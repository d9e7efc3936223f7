"""What is wrong with a configuration file, all of it, and where."""

from collections.abc import Iterable
from difflib import get_close_matches

from muster.model.errors import MusterError
from muster.model.value import Value

Path = tuple[str | int, ...]
"""The keys that lead to a value, and the places in lists on the way."""


class TextPosition(Value, gc=False):
    """A place in the text, counted from 1 as editors do."""

    line: int
    column: int


class SiteFault(Value):
    """One thing that is wrong. `keys` is the way to it, `text` says what to write instead."""

    line: int
    column: int
    keys: str
    text: str

    def __str__(self) -> str:
        way = f"{self.keys}: " if self.keys else ""
        return f"line {self.line}, column {self.column}: {way}{self.text}"


class BadSiteError(MusterError):
    """The file cannot be used as it is; `problems` has everything that is wrong with it."""

    def __init__(self, problems: tuple[SiteFault, ...]) -> None:
        super().__init__("\n".join(str(each) for each in problems))
        self.problems = problems


class Findings:
    """What is found while one file is read: its faults, and where each value stands."""

    def __init__(self) -> None:
        self.faults: list[SiteFault] = []
        self.spots: dict[Path, TextPosition] = {}
        self._troubled: set[Path] = set()
        self._said: set[tuple[TextPosition, str]] = set()

    def wrong(self, spot: TextPosition, keys: Path, text: str) -> None:
        fault = SiteFault(line=spot.line, column=spot.column, keys=way(keys), text=text)
        self._troubled |= {keys[:length] for length in range(len(keys) + 1)}
        # What an anchor names is read wherever it is used, and is wrong only once.
        if (spot, text) not in self._said:
            self._said.add((spot, text))
            self.faults.append(fault)

    def is_read(self, keys: Path) -> bool:
        """Whether this value is as the file says, and not left out or moved up in its list."""
        if not self.faults:
            return True
        lists = [keys[:length] for length, key in enumerate(keys) if isinstance(key, int)]
        return keys in self.spots and self._troubled.isdisjoint((keys, *lists))

    def spot_of(self, keys: Path) -> TextPosition:
        """Where this value stands, or the nearest one around it."""
        while keys and keys not in self.spots:
            keys = keys[:-1]
        return self.spots.get(keys, TextPosition(line=1, column=1))


def way(keys: Path) -> str:
    """`queues.acme.quotas[2].limit`."""
    text = ""
    for key in keys:
        text += f"[{key + 1}]" if isinstance(key, int) else f".{key}"
    return text.removeprefix(".")


def suggestion(word: str, known: Iterable[str]) -> str:
    """`; did you mean weight?`, or what there is; nothing where there is nothing."""
    names = sorted(known)
    close = get_close_matches(word.lower(), names, n=1)
    if close:
        return f"; did you mean `{close[0]}`?"
    shown = ", ".join(f"`{name}`" for name in names[:12])
    more = f" and {len(names) - 12} more" if len(names) > 12 else ""
    return f"; known here: {shown}{more}" if names else ""
