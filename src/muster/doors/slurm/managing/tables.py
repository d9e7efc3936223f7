"""Tables of sacctmgr: fields by several names, chosen by `format=name%30,...`. Pure."""

from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

from muster.doors.slurm.call import lines
from muster.doors.slurm.words.errors import SlurmError
from muster.doors.slurm.words.formats import Column, Field, Form, cut_table, narrowed, parsable
from muster.model.value import Value

R = TypeVar("R")

Named = tuple[tuple[str, ...], Field[R]]
"""A field and the names that it goes by, in small letters."""


class Style(Value):
    """With a header, and in columns, or with a bar between values and perhaps one at the end."""

    header: bool = True
    bars: bool = False
    bar_at_end: bool = False


def field(names: str, width: int, get: Callable[[R], str], header: str = "") -> Named[R]:
    """Its first name is its header by default; a width below zero aligns to the left."""
    words = names.split()
    return tuple(names.lower().split()), Field(header=header or words[0], get=get, width=width)


def printed(wanted: str, fields: Sequence[Named[R]], rows: Iterable[R], style: Style) -> str:
    """The table. A field may be named by its beginning; SlurmError if none begins so."""
    columns = [_column(word, fields) for word in wanted.split(",") if word.strip()]
    form = Form(columns=narrowed(columns))
    by_name = {names[0]: each for names, each in fields}
    if style.bars:
        ends = ("|", "|" if style.bar_at_end else "")
        return lines(list(parsable(form, by_name, rows, header=style.header, ends=ends)))
    return lines(list(cut_table(form, by_name, rows, header=style.header)))


def _column(word: str, fields: Sequence[Named[R]]) -> Column:
    name, _, size = word.strip().partition("%")
    names, found = _meant(name.lower(), fields)
    width = int(size) if size.lstrip("-").isdigit() else found.width
    return Column(field=names[0], width=abs(width), right=width > 0)


def _meant(name: str, fields: Sequence[Named[R]]) -> Named[R]:
    exact = [each for each in fields if name in each[0]]
    near = [each for each in fields if any(known.startswith(name) for known in each[0])]
    if not (exact or near) or not name:
        raise SlurmError(f"Unknown field '{name}'")
    return (exact or near)[0]
