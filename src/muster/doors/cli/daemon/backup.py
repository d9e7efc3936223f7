"""`muster backup` and `muster restore`: a copy of the database, and the way back."""

from pathlib import Path

import click

from muster.doors.cli.daemon.commands import FILE, home_option
from muster.doors.cli.daemon.port import BackupOptions, RestoreOptions
from muster.doors.cli.options import example
from muster.doors.cli.surroundings import Call


@click.command(epilog=example("muster backup /backup/muster-$(date +%F).db"))
@click.argument("file", type=FILE)
@home_option
@click.pass_obj
def backup(call: Call, file: Path, home: Path | None) -> int:
    """Copy the database into a new file, whole, while Muster runs.

    It holds the rules, the jobs, their history and the keys; only its owner can read it.
    """
    return call.daemon.backup(BackupOptions(file=file.absolute(), home=home))


@click.command(epilog=example("muster down", "muster restore muster-2026-11-15.db", "muster up"))
@click.argument("file", type=FILE)
@home_option
@click.pass_obj
def restore(call: Call, file: Path, home: Path | None) -> int:
    """Put a backup in the place of the database; Muster must not run.

    What was there is kept beside it. Jobs that run go on, and `muster up --recover` takes over
    those that began after the backup was made.
    """
    return call.daemon.restore(RestoreOptions(file=file.absolute(), home=home))
