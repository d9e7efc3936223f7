"""Aligned tables, made column by column so that twenty thousand rows cost little."""

from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

from muster.doors.cli.screen.screen import BOLD, Screen
from muster.doors.cli.screen.text import clean, shortened, width_of

T = TypeVar("T")

GAP = "  "
NARROWEST = 6
READABLE = 16
"""So much of a flexible column is worth more than a spare one."""


class Column(Generic[T]):
    """A title and the text of its cells.

    wide: only with `-o wide`. flexible: may be cut when the screen is too narrow for everything.
    spare: left out when that is not enough, the last one first.
    state: cells are states, and coloured as such.
    """

    __slots__ = ("cell", "flexible", "right", "spare", "state", "title", "wide")

    def __init__(self, title: str, cell: Callable[[T], str], kind: str = "") -> None:
        """`kind` has the words `right wide flexible spare state`, as far as they apply."""
        words = kind.split()
        self.title = title
        self.cell = cell
        self.right = "right" in words
        self.wide = "wide" in words
        self.flexible = "flexible" in words
        self.spare = "spare" in words
        self.state = "state" in words


def lines(
    rows: Sequence[T], columns: Sequence[Column[T]], screen: Screen, *, headers: bool = True
) -> list[str]:
    """The table as lines, the header first."""
    cells = [_cleaned(list(map(column.cell, rows))) for column in columns]
    widths = _widths(cells, columns, headers=headers)
    if screen.width is not None:
        kept = _affordable(widths, columns, screen.width)
        cells, widths = [cells[at] for at in kept], [widths[at] for at in kept]
        columns = [columns[at] for at in kept]
        _squeeze(widths, columns, screen.width)
    fitted = [
        _fitted(texts, width, column, screen)
        for texts, width, column in zip(cells, widths, columns, strict=True)
    ]
    # One pattern for the whole row: formatting each cell by itself would take three times as long.
    pattern = GAP.join(form for form, _ in fitted)
    body = [(pattern % row).rstrip() for row in zip(*(texts for _, texts in fitted), strict=True)]
    if not headers:
        return body
    titles = [
        _aligned(shortened(column.title, width), width, right=column.right)
        for column, width in zip(columns, widths, strict=True)
    ]
    return [screen.paint(GAP.join(titles).rstrip(), BOLD), *body]


def _cleaned(texts: list[str]) -> list[str]:
    """Nothing that a job's name holds may steer the terminal."""
    return texts if "".join(texts).isprintable() else [clean(text) for text in texts]


def _widths(cells: list[list[str]], columns: Sequence[Column[T]], *, headers: bool) -> list[int]:
    return [
        max(_widest(texts), len(column.title) if headers else 0)
        for texts, column in zip(cells, columns, strict=True)
    ]


def _widest(texts: list[str]) -> int:
    measure = len if "".join(texts).isascii() else width_of
    return max(map(measure, texts), default=0)


def _affordable(widths: list[int], columns: Sequence[Column[T]], room: int) -> list[int]:
    """The columns that the screen has room for when every flexible one is cut, yet readable."""
    kept = list(range(len(columns)))
    while _least(kept, widths, columns) > room:
        spare = [at for at in kept if columns[at].spare]
        if not spare:
            return kept
        kept.remove(spare[-1])
    return kept


def _least(kept: list[int], widths: list[int], columns: Sequence[Column[T]]) -> int:
    least = (min(widths[at], READABLE) if columns[at].flexible else widths[at] for at in kept)
    return sum(least) + len(GAP) * (len(kept) - 1)


def _squeeze(widths: list[int], columns: Sequence[Column[T]], room: int) -> None:
    """Cut the widest of the flexible columns until everything fits, or nothing more can be cut."""
    flexible = [at for at, column in enumerate(columns) if column.flexible]
    excess = sum(widths) + len(GAP) * (len(widths) - 1) - room
    while excess > 0 and flexible:
        widest = max(flexible, key=lambda at: (widths[at], -at))
        if widths[widest] <= NARROWEST:
            return
        widths[widest] -= 1
        excess -= 1


def _fitted(
    texts: list[str], width: int, column: Column[T], screen: Screen
) -> tuple[str, list[str]]:
    """How to format the cells of a column, and the cells, none of them wider than the column."""
    if column.state and screen.colour:
        painted = {text: screen.state(_exactly(text, width, column)) for text in set(texts)}
        return "%s", [painted[text] for text in texts]
    if not "".join(texts).isascii():
        return "%s", [_exactly(text, width, column) for text in texts]
    if max(map(len, texts), default=0) > width:
        texts = [text if len(text) <= width else text[: width - 1] + "…" for text in texts]
    return f"%{'' if column.right else '-'}{width}s" if width else "%s", texts


def _exactly(text: str, width: int, column: Column[T]) -> str:
    return _aligned(shortened(text, width), width, right=column.right)


def _aligned(text: str, width: int, *, right: bool) -> str:
    padding = " " * (width - width_of(text))
    return padding + text if right else text + padding
