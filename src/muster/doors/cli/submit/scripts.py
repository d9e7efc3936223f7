"""Job scripts: reading them, and the options that their lines hold: `#MUSTER`, `#PBS`, `#BSUB`."""

import shlex
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from muster.doors.cli.submit.document import Work
from muster.doors.cli.submit.options import MERGED, submit_options
from muster.doors.foreign.meaning import ForeignError, Meaning
from muster.doors.foreign.scripts import meaning_of

DIRECTIVE = "#MUSTER"
STDIN = "-"
MEANING = "muster.meaning"


class SubmitCommand(click.Command):
    """Options end at the first word of the script or command; notes whether `--` stood there."""

    def __init__(self, *args: Any, **attributes: Any) -> None:
        settings = attributes.pop("context_settings", {}) | {"allow_interspersed_args": False}
        super().__init__(*args, context_settings=settings, **attributes)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        given = list(args)
        rest = super().parse_args(ctx, args)
        words: tuple[str, ...] = ctx.params.get("words", ())
        before = given[: len(given) - len(words)]
        ctx.meta["muster.dashes"] = bool(words) and bool(before) and before[-1] == "--"
        return rest


def work_of(context: click.Context) -> Work:
    """What the words after the options mean: a command after `--`, a script without."""
    words: tuple[str, ...] = context.params["words"]
    if not words:
        raise click.UsageError("Nothing to run: name a script, or a command after `--`.", context)
    if context.meta["muster.dashes"]:
        return Work(command=words, name=Path(words[0]).name)
    if words[0] == STDIN:
        script = sys.stdin.read()
        name = "stdin"
    else:
        script = _read(words, context)
        name = Path(words[0]).name
    asked = _foreign(script, words[0], name, context.obj.around.workdir)
    if asked is not None and not script.startswith("#!"):
        script = f"#!{asked.shell}\n{script}"
    if not script.startswith("#!"):
        raise click.UsageError(
            f"{words[0]} is no script: its first line does not begin with `#!`. "
            f"To run a command, put `--` before it: muster submit -- {shlex.join(words)}",
            context,
        )
    context.meta[MEANING] = asked
    return Work(command=words[1:], script=script, name=name)


def options_of(context: click.Context, work: Work) -> Mapping[str, Any]:
    """The options of the script and of the command line; the command line wins."""
    options = dict(context.params)
    if work.script is None:
        return options
    words = context.params["words"]
    own = directives(work.script, "stdin" if words[0] == STDIN else words[0])
    for name, value in {**_from_elsewhere(context), **own}.items():
        if context.get_parameter_source(name) is not ParameterSource.COMMANDLINE:
            options[name] = value
        elif name in MERGED:
            options[name] = (*value, *options[name])
    return options


def cautions_of(context: click.Context) -> list[str]:
    """What a script of another batch system asks for in vain, and what is told to it."""
    asked: Meaning | None = context.meta.get(MEANING)
    return [] if asked is None else asked.cautions


def _foreign(script: str, source: str, name: str, workdir: str) -> Meaning | None:
    try:
        return meaning_of(script, name, workdir)
    except ForeignError as wrong:
        raise click.UsageError(f"{source}:{wrong}") from wrong


def _from_elsewhere(context: click.Context) -> dict[str, Any]:
    """The options that lines of another batch system come to."""
    asked: Meaning | None = context.meta.get(MEANING)
    if asked is None:
        return {}
    told = tuple(f"{name}={value}" for name, value in asked.env.items())
    return {**asked.options, "env": (*told, *asked.options.get("env", ()))}


def directives(script: str, source: str) -> dict[str, Any]:
    """The options in the `#MUSTER` lines before the first command of a script."""
    found: dict[str, Any] = {}
    for number, text in directive_lines(script):
        for name, value in _parsed(text, f"{source}:{number}").items():
            many = name in found and isinstance(value, tuple)
            found[name] = (*found[name], *value) if many else value
    return found


def directive_lines(script: str) -> Iterator[tuple[int, str]]:
    """Line numbers, from one, and what follows `#MUSTER` there."""
    for number, line in enumerate(script.splitlines(), start=1):
        word, _, rest = line.strip().partition(" ")
        if word == DIRECTIVE:
            yield number, rest
        elif word and not word.startswith("#"):
            return


@click.command(add_help_option=False)
@submit_options
def _directive(**_: Any) -> None:
    """Never run: it is there to read the options of one line."""


def _parsed(text: str, where: str) -> dict[str, Any]:
    try:
        words = shlex.split(text, comments=True)
        with _directive.make_context(DIRECTIVE, words) as line:
            return {
                name: value
                for name, value in line.params.items()
                if line.get_parameter_source(name) is ParameterSource.COMMANDLINE
            }
    except click.UsageError as wrong:
        raise click.UsageError(f"{where}: {wrong.format_message()}") from wrong
    except ValueError as wrong:
        raise click.UsageError(f"{where}: {wrong}; mind the quotes.") from wrong


def _read(words: tuple[str, ...], context: click.Context) -> str:
    advice = f"To run a command, put `--` before it: muster submit -- {shlex.join(words)}"
    try:
        return Path(words[0]).read_text(encoding="utf-8")
    except UnicodeDecodeError as wrong:
        raise click.UsageError(f"{words[0]} is no text file. {advice}", context) from wrong
    except OSError as wrong:
        text = f"{words[0]} cannot be read ({wrong.strerror}). {advice}"
        raise click.UsageError(text, context) from wrong
