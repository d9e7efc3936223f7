"""Options inside of scripts: `#MUSTER --gpus 2`, whatever other lines stand beside them."""

import shlex
from collections.abc import Iterator, Sequence
from typing import Any, TypeGuard

import click

from muster.doors.request.options import given_in, request_options
from muster.doors.request.table import is_pairs

DIRECTIVE = "#MUSTER"


def directives(script: str, source: str) -> dict[str, Any]:
    """The fields that the `#MUSTER` lines before the first command set; UsageError names a line."""
    found: dict[str, Any] = {}
    for number, text in directive_lines(script):
        try:
            line = parsed(shlex.split(text, comments=True))
        except click.UsageError as wrong:
            raise click.UsageError(f"{source}:{number}: {wrong.format_message()}") from wrong
        except ValueError as wrong:
            raise click.UsageError(f"{source}:{number}: {wrong}; mind the quotes.") from wrong
        for name, value in line.items():
            found[name] = _joined(found.get(name), value)
    return found


def directive_lines(script: str) -> Iterator[tuple[int, str]]:
    """Line numbers, from one, and what follows `#MUSTER` there."""
    for number, line in enumerate(script.splitlines(), start=1):
        word, _, rest = line.strip().partition(" ")
        if word == DIRECTIVE:
            yield number, rest
        elif word and not word.startswith("#"):
            return


def parsed(words: Sequence[str]) -> dict[str, Any]:
    """What these options set."""
    with _LINE.make_context(DIRECTIVE, list(words)) as line:
        return given_in(line)


_LINE = click.Command(DIRECTIVE, params=list(request_options()), add_help_option=False)


def _joined(before: Any, value: Any) -> Any:
    """Several lines may name more of the same; of what can be said once, the last counts."""
    if _is_texts(before) and _is_texts(value):
        return (*before, *value)
    if is_pairs(before) and is_pairs(value):
        return {**before, **value}
    return value


def _is_texts(value: object) -> TypeGuard[tuple[str, ...]]:
    return isinstance(value, tuple)
