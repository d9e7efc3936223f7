"""The lines of slurm.conf, gres.conf and topology.conf: names with values. Pure."""

import re
from collections.abc import Iterator, Mapping

from muster.model.value import Value

_PAIR = re.compile(r"""([A-Za-z][\w./-]*)\s*=\s*("[^"]*"|'[^']*'|[^\s"']\S*|)""")
_INCLUDE = re.compile(r"(?i)include\s+(\S+)")


class ConfLine(Value):
    """One line, with its continuations: names in their own spelling, looked up in any.

    include: the file that it wants read in its place.
    """

    number: int
    pairs: tuple[tuple[str, str], ...] = ()
    include: str | None = None

    @property
    def first(self) -> str:
        """What the line is about, in lower case."""
        return self.pairs[0][0].lower() if self.pairs else ""

    @property
    def fields(self) -> Mapping[str, str]:
        return {name.lower(): value for name, value in self.pairs}


def lines_of(text: str) -> Iterator[ConfLine]:
    """Comments and empty lines are left out; a backslash at the end joins the next line."""
    number, held = 0, ""
    for at, raw in enumerate(text.splitlines(), 1):
        number = number or at
        line = _without_comment(raw)
        if line.endswith("\\"):
            held += line[:-1] + " "
            continue
        whole, held = (held + line).strip(), ""
        if whole:
            yield _line(whole, number)
        number = 0
    if held.strip():
        yield _line(held.strip(), number)


def defaults_applied(lines: list[ConfLine], key: str) -> Iterator[ConfLine]:
    """The lines that begin with this key, each with what `key=DEFAULT` lines before it said."""
    usual: dict[str, tuple[str, str]] = {}
    for line in lines:
        if line.first != key:
            continue
        own = {name.lower(): (name, value) for name, value in line.pairs}
        if own[key][1].upper() == "DEFAULT":
            del own[key]
            usual |= own
        else:
            missing = {name: pair for name, pair in usual.items() if name not in own}
            yield ConfLine(number=line.number, pairs=tuple({**own, **missing}.values()))


def _line(text: str, number: int) -> ConfLine:
    if found := _INCLUDE.fullmatch(text):
        return ConfLine(number=number, include=found[1])
    pairs = tuple((name, value.strip("\"'")) for name, value in _PAIR.findall(text))
    return ConfLine(number=number, pairs=pairs)


def _without_comment(line: str) -> str:
    """`#` begins one unless a backslash stands before it."""
    return re.sub(r"(?<!\\)#.*", "", line).replace("\\#", "#").rstrip()
