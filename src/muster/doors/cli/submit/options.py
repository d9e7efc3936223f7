"""Commands that take what a job asks for: every row of the table of requests as an option."""

from collections.abc import Mapping
from typing import Any

import click

from muster.doors.cli.complete import class_names, node_names, pool_names, queue_paths
from muster.doors.request.options import Completer, RequestOption, request_options

COMPLETE: Mapping[str, Completer] = {
    "queue": queue_paths,
    "job_class": class_names,
    "nodes": node_names,
    "not_nodes": node_names,
    "pools": pool_names,
}
"""What shells may offer for the values of fields."""

DASHES = "muster.dashes"


class SubmitCommand(click.Command):
    """Has the options of the table, and ends them at the first word of the script or command.

    Notes whether `--` stood there.
    """

    def __init__(self, *args: Any, params: list[click.Parameter], **attributes: Any) -> None:
        settings = attributes.pop("context_settings", {}) | {"allow_interspersed_args": False}
        every = [*request_options(COMPLETE), *params]
        super().__init__(*args, params=every, context_settings=settings, **attributes)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        given = list(args)
        rest = super().parse_args(ctx, args)
        words: tuple[str, ...] = ctx.params.get("words", ())
        before = given[: len(given) - len(words)]
        ctx.meta[DASHES] = bool(words) and bool(before) and before[-1] == "--"
        return rest

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Sixty options are too many for one list: they stand under the headings of the table."""
        sections: dict[str, list[tuple[str, str]]] = {}
        for option in self.get_params(ctx):
            record = option.get_help_record(ctx)
            if record is not None and isinstance(option, click.Option):
                title = option.field.row.section if isinstance(option, RequestOption) else "Options"
                sections.setdefault(title, []).append(record)
        for title, records in sections.items():
            with formatter.section(title):
                formatter.write_dl(records, col_max=28)
