"""Showing documents: as a table, as JSON or YAML, or as names alone."""

import re
import sys
import textwrap
from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

import click
import msgspec

from muster.doors.cli.screen.screen import BOLD, RED, YELLOW, Screen, screen_of
from muster.doors.cli.screen.table import Column, lines
from muster.doors.cli.screen.text import clean_lines
from muster.doors.cli.surroundings import Call
from muster.model.value import Value

T = TypeVar("T", bound=Value)

AMOUNT = re.compile(r"([0-9]+(?:[.][0-9]+)?)([KMGT%]?)(?:$|[^0-9A-Za-z.])")
UNITS = {"K": 1 / 1_024, "M": 1, "G": 1_024, "T": 1_048_576}


def show_list(
    call: Call,
    rows: Sequence[T],
    columns: Sequence[Column[T]],
    *,
    name: Callable[[T], object],
    none: str,
) -> None:
    """Rows as the user wants them; `none` is said on stderr when there are none.

    name: what `-o name` shows, so that it can be handed to another command.
    """
    match call.look.output:
        case "json" | "yaml":
            show_data(call, rows)
        case "name":
            say_lines([str(name(row)) for row in rows])
        case _:
            _show_table(call, rows, columns)
    if not rows and call.look.output != "json":
        note(none)


def show_one(
    call: Call, document: Value, people: Callable[[], Iterable[str]], *, name: str
) -> None:
    """One document: the lines for people, or the document itself."""
    match call.look.output:
        case "json" | "yaml":
            show_data(call, document)
        case "name":
            say(name)
        case _:
            say_lines(people())


def show_data(call: Call, document: object) -> None:
    """JSON or YAML, as `-o` says."""
    if call.look.output == "json":
        say(msgspec.json.format(msgspec.json.encode(document), indent=2).decode())
        return
    # Only here: it is slow to import, and few ask for it.
    import yaml  # noqa: PLC0415

    dumper = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
    plain = msgspec.to_builtins(document)
    say(yaml.dump(plain, Dumper=dumper, sort_keys=False, allow_unicode=True).rstrip("\n"))


def facts(screen: Screen, pairs: Iterable[tuple[str, str]]) -> list[str]:
    """`Name:   value` lines, aligned; pairs without a value are left out."""
    shown = [(title, value) for title, value in pairs if value]
    width = max((len(title) for title, _ in shown), default=0) + 1
    return [line for title, value in shown for line in _fact(screen, title, value, width)]


def _fact(screen: Screen, title: str, value: str, width: int) -> list[str]:
    text = clean_lines(value)
    if text.startswith("\n"):
        return [screen.paint(f"{title}:", BOLD) + text]
    margin = " " * (width + 1)
    first, *others = wrapped(margin + text, screen, indent=margin)
    name = screen.paint(f"{title}:".ljust(width), BOLD)
    return [f"{name} {first.removeprefix(margin)}", *others]


def wrapped(text: str, screen: Screen, *, indent: str = "  ") -> list[str]:
    """The sentence in as many lines as it takes; a text that has lines keeps them."""
    if screen.width is None or "\n" in text:
        return text.split("\n")
    return textwrap.wrap(
        text,
        screen.width,
        subsequent_indent=indent,
        break_on_hyphens=False,
        break_long_words=False,
    )


def sortable(text: str) -> tuple[int, float, str]:
    """So that cells sort as people mean it: amounts and times by size, all else by the alphabet."""
    if text in {"", "-"}:
        return 0, 0.0, text
    parts = text.replace("-", ":").split(":")
    if len(parts) > 1 and all(part.isdecimal() for part in parts):
        return 1, float(sum(int(part) * 60**at for at, part in enumerate(reversed(parts)))), text
    found = AMOUNT.match(text)
    if found is None:
        return 2, 0.0, text
    return 1, float(found[1]) * UNITS.get(found[2], 1), text


def _column(title: str, columns: Sequence[Column[T]]) -> Column[T]:
    """By its title, or the first word of it."""
    wanted = title.lower()
    for each in columns:
        if wanted in {each.title.lower(), each.title.partition(" ")[0].lower()}:
            return each
    known = ", ".join(each.title.partition(" ")[0].lower() for each in columns)
    raise click.UsageError(f"There is no column {title!r}; there are {known}.")


def say(text: str) -> None:
    """A text on stdout."""
    sys.stdout.write(f"{text}\n")


def say_lines(texts: Iterable[str]) -> None:
    """Many lines on stdout, in one piece."""
    if together := "\n".join(texts):
        say(together)


def note(text: str) -> None:
    """Something beside the output, on stderr."""
    sys.stdout.flush()
    sys.stderr.write(f"{clean_lines(text)}\n")
    sys.stderr.flush()


def caution(call: Call, text: str) -> None:
    """Something that the user should think of, on stderr."""
    note_painted(call, "caution:", YELLOW, text)


def complain(call: Call, text: str) -> None:
    """What went wrong, on stderr."""
    note_painted(call, "muster:", RED, text)


def note_painted(call: Call, label: str, colour: int, text: str) -> None:
    """A note that begins with a label; colours as stderr takes them."""
    screen = screen_of(sys.stderr, call.around.environ)
    sys.stdout.flush()
    sys.stderr.write(f"{screen.paint(label, colour)} {clean_lines(text)}\n")
    sys.stderr.flush()


def _show_table(call: Call, rows: Sequence[T], columns: Sequence[Column[T]]) -> None:
    look = call.look
    if look.sort:
        by = _column(look.sort.removeprefix("-"), columns)
        rows = sorted(rows, key=lambda row: sortable(by.cell(row)), reverse=look.sort[0] == "-")
    if not rows:
        return
    if look.columns:
        shown = [_column(title, columns) for title in look.columns]
    else:
        shown = [each for each in columns if look.output == "wide" or not each.wide]
    # Wide is for those who want everything: nothing is cut.
    screen = call.screen if call.look.output == "table" else Screen(colour=call.screen.colour)
    say_lines(lines(rows, shown, screen, headers=call.look.headers))
