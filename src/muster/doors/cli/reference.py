"""The reference page of the command line, made from the commands themselves."""

import inspect
from collections.abc import Iterator

import click

from muster.doors.cli.catalogue import THEMES

HEAD = """\
# The `muster` command

This page is made from the commands: `make reference`.

Lists take `-o json|yaml|wide|name`. Colours follow the terminal, `NO_COLOR`, `FORCE_COLOR` and
`--color`. The server is that of this machine, or the one at `MUSTER_URL` with the key in
`MUSTER_TOKEN`. A job is written `17`, many `17-20`, one of an array `12_3`, a whole array `12_*`.

| exit code | meaning |
|---|---|
| 0 | done |
| 1 | refused or failed |
| 2 | wrong usage |
| 3 | nobody answers |
| 4 | not found |
| 5 | forbidden |
| 130 | interrupted |
| 141 | nobody reads the output any more |

`run`, `wait` and `submit --wait` exit with the job's own code.
"""

WIDTH = 88


def page(program: click.Group) -> str:
    """The whole page, as Markdown."""
    root = click.Context(program, info_name="muster")
    parts = [HEAD]
    for theme, entries in THEMES.items():
        parts.append(f"## {theme}\n")
        for name in entries:
            command = program.get_command(root, name)
            if command is not None:
                parts.extend(_sections(command, root, name))
    return "\n".join(parts)


def _sections(command: click.Command, above: click.Context, name: str) -> Iterator[str]:
    context = click.Context(
        command,
        info_name=name,
        parent=above,
        terminal_width=WIDTH,
        max_content_width=WIDTH,
        help_option_names=["-h", "--help"],
    )
    yield f"### `{context.command_path}`\n"
    yield f"```text\n{inspect.cleandoc(command.get_help(context))}\n```\n"
    if isinstance(command, click.Group):
        for inner_name in command.list_commands(context):
            inner = command.get_command(context, inner_name)
            if inner is not None:
                yield from _sections(inner, context, inner_name)


if __name__ == "__main__":
    from muster.doors.cli.main import muster

    click.echo(page(muster).rstrip("\n"))
