"""`muster import` and `muster export`: configuration of other systems to ours, and back."""

import click

from muster.doors.cli.options import example
from muster.doors.cli.rules.kubernetes_files import (
    export_kueue,
    export_volcano,
    import_kueue,
    import_volcano,
)
from muster.doors.cli.rules.slurm_files import export_slurm, import_slurm

USUAL = "slurm"


class FilesOrSystem(click.Group):
    """A group whose first word may be a file: then it is one of Slurm's."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        is_named = args[0] in self.commands
        return super().resolve_command(ctx, args if is_named else [USUAL, *args])

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        # Options that come first are those of the usual command.
        if args and args[0].startswith("-") and args[0] not in ctx.help_option_names:
            args = [USUAL, *args]
        return super().parse_args(ctx, args)


@click.group(
    cls=FilesOrSystem,
    name="import",
    epilog=example(
        "muster import slurm.conf gres.conf > cluster.yaml", "muster import kueue k.yaml"
    ),
)
def import_files() -> None:
    """Make a configuration file of another system's; Slurm's, where none is named."""


@click.group(epilog=example("muster export slurm /etc/slurm.new", "muster export kueue > k.yaml"))
def export() -> None:
    """Write the configuration in force for another system."""


for each in (import_slurm, import_kueue, import_volcano):
    import_files.add_command(each)
for each in (export_slurm, export_kueue, export_volcano):
    export.add_command(each)
