"""Tables as users describe them: `%.18i %9P`, `JobID:20,Name:.10`, `jobid,state%20`. Pure.

A row is turned into text by one `%` operation, because lists have tens of thousands of them.
"""

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Generic, TypeVar

from muster.doors.slurm.words.errors import SlurmError
from muster.model.value import Value, replace

R = TypeVar("R")

LONG_WIDTH = 20
"""Of a column that `-O` names without saying how wide."""

MOST_COLUMNS = 1_000
MOST_LINE = 20_000
"""So wide all columns together may be: what is said beyond that is not heeded."""

MOST_ANSWER = 256 * 1_024 * 1_024
"""So many characters one table may have."""

_TOKEN = re.compile(r"(\.?)([0-9]{0,6}+)(.?)(.*)", re.DOTALL)
_SIZED = re.compile(r"(\.?)([0-9]{0,6})(.*)", re.DOTALL)


@dataclass(frozen=True, kw_only=True)
class Field(Generic[R]):
    """Something that can be shown of a row. width: the default; below zero aligns to the left.

    whole: is not cut off on the right side of a column that is too narrow.
    """

    header: str
    get: Callable[[R], str]
    width: int = 0
    whole: bool = False


Fields = Mapping[str, Field[R]]


class Column(Value):
    """What the user wants to see: a field, how wide (0: as it comes), which side, what follows.

    A column without a field shows what follows alone. written: as the user wrote it.
    """

    field: str
    width: int = 0
    right: bool = False
    suffix: str = ""
    written: str = ""


class Form(Value):
    """What stands before the first column, and the columns."""

    columns: tuple[Column, ...]
    prefix: str = ""


def short_form(text: str) -> Form:
    """`%[[.]size]type[suffix]`; a doubled `%` is one, as in Slurm."""
    prefix, *tokens = text.split("%")
    return Form(prefix=prefix, columns=narrowed(_short(token) for token in tokens if token))


def long_form(text: str) -> Form:
    """`type[:[.][size][suffix]],...`; a colon without a size sets no width."""
    return Form(columns=narrowed(_long(token) for token in text.split(",") if token))


def narrowed(columns: Iterable[Column]) -> tuple[Column, ...]:
    """The columns, no more and no wider than a table may have."""
    kept: list[Column] = []
    left = MOST_LINE
    for column in islice(columns, MOST_COLUMNS):
        width = min(column.width, left)
        left = max(1, left - width)
        kept.append(column if width == column.width else replace(column, width=width))
    return tuple(kept)


def bounded(lines: Iterable[str]) -> Iterator[str]:
    """The lines of a table. SlurmError if they become too much for one answer."""
    size = 0
    for line in lines:
        size += len(line)
        if size > MOST_ANSWER:
            raise SlurmError("slurm: error: the answer is too long; ask for fewer jobs or columns")
        yield line


def picked_form(words: Iterable[str], fields: Fields[R]) -> tuple[Form, list[str]]:
    """What sacct takes, `name[%[-]size]`, and the names that are no fields."""
    columns: list[Column] = []
    unknown: list[str] = []
    for word in words:
        name, percent, size = word.partition("%")
        meant = _beginning_with(name.strip().lower(), fields)
        if meant is None:
            unknown.append(name.strip())
            continue
        width = _leading_number(size) if percent else fields[meant].width
        columns.append(Column(field=meant, width=abs(width), right=width > 0))
    return Form(columns=narrowed(columns)), unknown


def _beginning_with(name: str, fields: Fields[R]) -> str | None:
    """The field of that name, or the first whose name begins so."""
    if name in fields:
        return name
    return next((known for known in fields if name and known.startswith(name)), None)


def _leading_number(text: str) -> int:
    found = re.match(r"-?[0-9]{1,6}", text)
    return int(found[0]) if found else 0


def known(form: Form, fields: Fields[R]) -> tuple[Form, list[str]]:
    """The form with only the text of columns that do not exist, and their names."""
    columns = tuple(
        column if column.field in fields else Column(field="", suffix=_left_of(column))
        for column in form.columns
    )
    lost = [column.written or column.field for column in form.columns if column.field not in fields]
    return Form(columns=columns, prefix=form.prefix), lost


def without_unknown(form: Form, fields: Fields[R]) -> tuple[Form, list[str]]:
    """The form without the columns that do not exist, and their names."""
    columns = tuple(column for column in form.columns if column.field in fields)
    lost = [column.field for column in form.columns if column.field not in fields]
    return Form(columns=columns, prefix=form.prefix), lost


def rendered(form: Form, fields: Fields[R], rows: Iterable[R], *, header: bool) -> Iterator[str]:
    """The lines of the table; all columns of the form must be fields."""
    if header:
        yield heading(form, fields)
    yield from bounded(map(writer(form, fields), rows))


def heading(form: Form, fields: Fields[R]) -> str:
    """The line above a table."""
    shown = tuple(fields[column.field].header for column in form.columns if column.field)
    return _template(form, ()) % shown


def writer(form: Form, fields: Fields[R]) -> Callable[[R], str]:
    """What makes a line of a row."""
    template = _template(form, {name for name in fields if fields[name].whole})
    getters = [fields[column.field].get for column in form.columns if column.field]

    def line(row: R) -> str:
        return template % tuple([get(row) for get in getters])

    return line


def cut_table(form: Form, fields: Fields[R], rows: Iterable[R], *, header: bool) -> Iterator[str]:
    """Tables of sacct: a space after each column, a `+` where something was cut off."""
    chosen = [fields[column.field] for column in form.columns]
    template = "".join(f"{_part(column)} " if column.width else " " for column in form.columns)
    if header:
        yield template % tuple(
            f.header for f, c in zip(chosen, form.columns, strict=True) if c.width
        )
        yield "".join("-" * column.width + " " for column in form.columns)
    shown = [(field.get, c.width) for field, c in zip(chosen, form.columns, strict=True) if c.width]
    yield from bounded(
        template
        % tuple(
            [
                text if len(text := get(row)) <= width else text[: width - 1] + "+"
                for get, width in shown
            ]
        )
        for row in rows
    )


def parsable(
    form: Form, fields: Fields[R], rows: Iterable[R], *, header: bool, ends: tuple[str, str]
) -> Iterator[str]:
    """Values with a delimiter between them and, perhaps, something at the end of each line."""
    between, end = ends
    chosen = [fields[column.field] for column in form.columns]
    if header:
        yield between.join(field.header for field in chosen) + end
    yield from bounded(between.join([field.get(row) for field in chosen]) + end for row in rows)


def by_name(fields: Mapping[str, Field[R]]) -> dict[str, Field[R]]:
    """Fields under their names in small letters, as users may write them in any."""
    return {name.lower(): field for name, field in fields.items()}


def keys_of(text: str) -> list[tuple[str, bool]]:
    """`-S P,t,-p`: by what to sort, the least important first, and whether downwards."""
    return [
        (text[place], text[place - 1 : place] == "-")
        for place in range(len(text) - 1, -1, -1)
        if text[place] not in ",+- "
    ]


def _short(token: str) -> Column:
    found = _TOKEN.fullmatch(token)
    dot, size, letter, suffix = found.groups() if found else ("", "", "", token)
    return Column(field=letter, width=int(size or 0), right=bool(dot), suffix=suffix)


def _long(token: str) -> Column:
    name, colon, rest = token.partition(":")
    written = name.strip()
    if not colon:
        return Column(field=written.lower(), width=LONG_WIDTH, written=written)
    found = _SIZED.fullmatch(rest)
    dot, size, suffix = found.groups() if found else ("", "", rest)
    return Column(
        field=written.lower(),
        width=int(size or 0),
        right=bool(dot),
        suffix=suffix,
        written=written,
    )


def _left_of(column: Column) -> str:
    """What is shown where a column does not exist: of letters, just what was written."""
    if column.written:
        return column.suffix
    dot, size = "." if column.right else "", column.width or ""
    return f"%{dot}{size}{column.field}{column.suffix}"


def _template(form: Form, whole: Collection[str]) -> str:
    parts = (_part(column, is_whole=column.field in whole) for column in form.columns)
    return form.prefix.replace("%", "%%") + "".join(parts)


def _part(column: Column, *, is_whole: bool = False) -> str:
    suffix = column.suffix.replace("%", "%%")
    if not column.field:
        return suffix
    if not column.width:
        return f"%s{suffix}"
    if column.right and is_whole:
        return f"%{column.width}s{suffix}"
    side = "" if column.right else "-"
    return f"%{side}{column.width}.{column.width}s{suffix}"
