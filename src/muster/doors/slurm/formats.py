"""Tables as users describe them: `%.18i %9P`, `JobID:20,Name:.10`, `jobid,state%20`. Pure.

A row is turned into text by one `%` operation, because lists have tens of thousands of them.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from muster.model.value import Value

R = TypeVar("R")

LONG_WIDTH = 20
"""Of a column that `-O` names without saying how wide."""

_TOKEN = re.compile(r"(\.?)([0-9]{0,6})(.)(.*)", re.DOTALL)
_SIZED = re.compile(r"(\.?)([0-9]{0,6})(.*)", re.DOTALL)


@dataclass(frozen=True, kw_only=True)
class Field(Generic[R]):
    """Something that can be shown of a row. width: where nobody says; below zero to the left."""

    header: str
    get: Callable[[R], str]
    width: int = 0


Fields = Mapping[str, Field[R]]


class Column(Value):
    """What the user wants to see: a field, how wide (0: as it comes), which side, what follows."""

    field: str
    width: int = 0
    right: bool = False
    suffix: str = ""


class Form(Value):
    """What stands before the first column, and the columns."""

    columns: tuple[Column, ...]
    prefix: str = ""


def short_form(text: str) -> Form:
    """`%[[.]size]type[suffix]`; a doubled `%` is one, as in Slurm."""
    prefix, *tokens = text.split("%")
    return Form(prefix=prefix, columns=tuple(_short(token) for token in tokens if token))


def long_form(text: str) -> Form:
    """`type[:[.][size][suffix]],...`; a colon without a size sets no width."""
    return Form(columns=tuple(_long(token) for token in text.split(",") if token))


def picked_form(words: Iterable[str], fields: Fields[R]) -> tuple[Form, list[str]]:
    """What sacct takes, `name[%[-]size]`, and the names that are no fields."""
    columns: list[Column] = []
    unknown: list[str] = []
    for word in words:
        name, _, size = word.partition("%")
        field = fields.get(name.strip().lower())
        if field is None:
            unknown.append(name.strip())
            continue
        width = int(size) if size.lstrip("-").isdigit() else field.width
        columns.append(Column(field=name.strip().lower(), width=abs(width), right=width > 0))
    return Form(columns=tuple(columns)), unknown


def known(form: Form, fields: Fields[R]) -> tuple[Form, list[str]]:
    """The form without columns that do not exist, and their names."""
    kept = tuple(column for column in form.columns if column.field in fields)
    lost = [column.field for column in form.columns if column.field not in fields]
    return Form(columns=kept, prefix=form.prefix), lost


def rendered(form: Form, fields: Fields[R], rows: Iterable[R], *, header: bool) -> Iterator[str]:
    """The lines of the table; all columns of the form must be fields."""
    template = form.prefix.replace("%", "%%") + "".join(map(_template, form.columns))
    chosen = [fields[column.field] for column in form.columns]
    if header:
        yield template % tuple(field.header for field in chosen)
    getters = [field.get for field in chosen]
    for row in rows:
        yield template % tuple([get(row) for get in getters])


def cut_table(form: Form, fields: Fields[R], rows: Iterable[R], *, header: bool) -> Iterator[str]:
    """Tables of sacct: a space after each column, a `+` where something was cut off."""
    chosen = [fields[column.field] for column in form.columns]
    sides = [(column.width, column.right) for column in form.columns]

    def line(texts: Iterable[str]) -> str:
        return "".join(
            _cut(text, width, right=right) + " "
            for text, (width, right) in zip(texts, sides, strict=True)
        )

    if header:
        heads = [(field.header, *side) for field, side in zip(chosen, sides, strict=True)]
        yield "".join(
            (text[:width].rjust(width) if right else text[:width].ljust(width)) + " "
            for text, width, right in heads
        )
        yield "".join("-" * width + " " for width, _ in sides)
    for row in rows:
        yield line([field.get(row) for field in chosen])


def parsable(
    form: Form, fields: Fields[R], rows: Iterable[R], *, header: bool, ends: tuple[str, str]
) -> Iterator[str]:
    """Values with a delimiter between them and, perhaps, something at the end of each line."""
    between, end = ends
    chosen = [fields[column.field] for column in form.columns]
    if header:
        yield between.join(field.header for field in chosen) + end
    for row in rows:
        yield between.join([field.get(row) for field in chosen]) + end


def by_name(fields: Mapping[str, Field[R]]) -> dict[str, Field[R]]:
    """Fields under their names in small letters, as users may write them in any."""
    return {name.lower(): field for name, field in fields.items()}


def keys_of(text: str) -> Sequence[tuple[str, bool]]:
    """`-S P,t,-p`: by what to sort, and whether downwards."""
    found = [word.strip() for word in text.split(",") if word.strip()]
    return [(word.lstrip("+-")[:1], word.startswith("-")) for word in found]


def _short(token: str) -> Column:
    found = _TOKEN.fullmatch(token)
    if found is None:
        return Column(field="", suffix=token)
    dot, size, letter, suffix = found.groups()
    return Column(field=letter, width=int(size or 0), right=bool(dot), suffix=suffix)


def _long(token: str) -> Column:
    name, colon, rest = token.partition(":")
    name = name.strip().strip("'\"").lower()
    if not colon:
        return Column(field=name, width=LONG_WIDTH)
    found = _SIZED.fullmatch(rest)
    dot, size, suffix = found.groups() if found else ("", "", rest)
    return Column(field=name, width=int(size or 0), right=bool(dot), suffix=suffix)


def _template(column: Column) -> str:
    suffix = column.suffix.replace("%", "%%")
    if not column.width:
        return f"%s{suffix}"
    side = "" if column.right else "-"
    return f"%{side}{column.width}.{column.width}s{suffix}"


def _cut(text: str, width: int, *, right: bool) -> str:
    if len(text) > width > 0:
        return text[: width - 1] + "+"
    return text.rjust(width) if right else text.ljust(width)
