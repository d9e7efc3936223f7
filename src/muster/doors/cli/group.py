"""The `muster` command itself: a group whose commands are imported when they are used."""

from importlib import import_module
from typing import TYPE_CHECKING

import click

from muster.doors.cli.catalogue import COMMANDS, THEMES

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem


class LazyGroup(click.Group):
    """Knows its commands by the catalogue, and imports the one that is asked for."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002  click's
        return list(COMMANDS)

    def get_command(
        self,
        ctx: click.Context,  # noqa: ARG002  click's
        cmd_name: str,
    ) -> click.Command | None:
        entry = COMMANDS.get(cmd_name)
        if entry is None:
            return None
        module = import_module(f"muster.doors.cli.{entry.module}")
        return getattr(module, entry.function or cmd_name)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name = args[0]
        if name not in COMMANDS and not name.startswith("-") and not ctx.resilient_parsing:
            raise click.UsageError(_no_such_command(name), ctx)
        return super().resolve_command(ctx, args)

    def format_commands(
        self,
        ctx: click.Context,  # noqa: ARG002  click's
        formatter: click.HelpFormatter,
    ) -> None:
        width = max(map(len, COMMANDS))
        for theme, entries in THEMES.items():
            with formatter.section(theme):
                rows = [(name.ljust(width), entry.help) for name, entry in entries.items()]
                formatter.write_dl(rows)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> "list[CompletionItem]":
        """Commands from the catalogue alone, so that completion does not import them all."""
        from click.shell_completion import CompletionItem  # noqa: PLC0415  only to complete

        if incomplete.startswith("-"):
            return click.Command.shell_complete(self, ctx, incomplete)
        return [
            CompletionItem(name, help=entry.help)
            for name, entry in COMMANDS.items()
            if name.startswith(incomplete)
        ]


def _no_such_command(name: str) -> str:
    from difflib import get_close_matches  # noqa: PLC0415  only for a mistake

    near = get_close_matches(name, COMMANDS, n=3)
    meant = f" Did you mean {' or '.join(near)}?" if near else " See `muster --help`."
    return f"There is no command {name!r}.{meant}"
