"""A copy of the database while Muster runs, and the way back."""

import os
import shutil
from pathlib import Path

import click

from muster.app.daemon import AlreadyRunningError, running_pid
from muster.client.address import own_home
from muster.doors.cli.daemon.port import BackupOptions, RestoreOptions
from muster.model.errors import MusterError
from muster.settings import BadSettingsError, read_settings, sqlite_file, state_folder
from muster.stores.migrations import MIGRATIONS
from muster.stores.sqlite import copy_database, examined

BESIDE = ("", "-wal", "-shm")


class BadBackupError(MusterError):
    """The administrator: another file, or another name for it."""


def backup(options: BackupOptions) -> int:
    """Copy the database, as it is at one moment, into a new file."""
    home = (options.home or own_home()).resolve()
    with state_folder(home):
        database = _database(home)
        if not database.exists():
            raise BadBackupError(f"there is no database in {home} yet; muster up makes it")
    if options.file.exists():
        raise BadBackupError(f"{options.file} is there already; name a new file")
    copy_database(database, options.file)
    examined(options.file)
    click.echo(f"{options.file}: {options.file.stat().st_size // 1_024} KiB, whole")
    return 0


def restore(options: RestoreOptions) -> int:
    """Put a copy in the place of the database of a Muster that does not run."""
    home = (options.home or own_home()).resolve()
    with state_folder(home):
        database = _database(home)
        if running_pid(home) is not None:
            text = f"Muster runs (home {home}); stop it with `muster down`, jobs run on meanwhile"
            raise AlreadyRunningError(text)
    _demand_backup(options.file)
    aside = _free_name(database)
    with state_folder(home):
        fresh = database.with_name(database.name + ".new")
        shutil.copyfile(options.file, fresh)
        fresh.chmod(0o600)
        _settle(fresh)
        for ending in BESIDE:
            there = Path(f"{database}{ending}")
            if there.exists():
                there.rename(f"{aside}{ending}")
        fresh.rename(database)
    if aside.exists():
        click.echo(f"The database that was there is now {aside}")
    click.echo("Restored. Start with `muster up`; if jobs began after this backup was made,")
    click.echo("it names them, and `muster up --recover` takes them over.")
    return 0


def _database(home: Path) -> Path:
    found = sqlite_file(home, read_settings(home))
    if found is None:
        raise BadSettingsError("the store is PostgreSQL: use pg_dump and pg_restore for it")
    return found


def _demand_backup(file: Path) -> None:
    if not file.is_file():
        raise BadBackupError(f"there is no file {file}")
    found = examined(file)
    if found.schema_number == 0:
        raise BadBackupError(f"{file} is no backup of Muster's database")
    if found.schema_number > len(MIGRATIONS):
        raise BadBackupError(f"{file} was written by a newer Muster; install that version first")


def _free_name(database: Path) -> Path:
    """Where what was there is kept: nothing is thrown away."""
    tried = (database.with_name(f"{database.name}.before-{number}") for number in range(1, 10_000))
    return next(each for each in tried if not each.exists())


def _settle(path: Path) -> None:
    """On the disk before anything else goes out of its way."""
    opened = os.open(path, os.O_RDONLY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)
