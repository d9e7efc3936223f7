"""`muster slurm`: Slurm's commands for this Muster."""

from pathlib import Path

import click

from muster.doors.cli.options import example
from muster.doors.cli.screen.printing import note, say


@click.group(
    epilog=example("muster slurm install ~/bin", 'eval "$(muster slurm env)"'),
)
def slurm() -> None:
    """Use Muster with sbatch, squeue and the rest of Slurm's commands."""


@slurm.command(
    name="install",
    epilog=example("muster slurm install ~/bin", "muster slurm install /usr/local/bin --force"),
)
@click.argument("folder", metavar="[DIR]", required=False, type=click.Path(path_type=Path))
@click.option("--force", is_flag=True, help="Replace other programs, and shadow a real Slurm.")
@click.option(
    "--login",
    is_flag=True,
    help="Have the login shells of all users find them: a file in /etc/profile.d, by root.",
)
@click.option("--profile", type=click.Path(path_type=Path), help="The same, in this folder.")
def slurm_install(folder: Path | None, *, force: bool, login: bool, profile: Path | None) -> None:
    """Write the commands into a folder; without DIR, into one beside Muster's state.

    A real Slurm's commands are never replaced or shadowed unasked.
    """
    from muster.doors.slurm.client.install import (  # noqa: PLC0415  only here
        PROFILES,
        install,
        profile_file,
        usual_folder,
    )

    made = install((folder or usual_folder()).absolute(), force=force)
    say(f"{len(made.names)} commands are in {made.folder}: {' '.join(made.names)}")
    note(made.made)
    for text in made.notes:
        note(text)
    if login or profile is not None:
        written = profile_file(Path(made.folder), profile or PROFILES)
        say(f"login shells find them by {written}")


@slurm.command(name="env", epilog=example('eval "$(muster slurm env)"'))
def slurm_env() -> None:
    """Print what a shell needs to find the commands, which are written if they are not there."""
    from muster.doors.slurm.client.install import (  # noqa: PLC0415  only here
        install,
        path_line,
        usual_folder,
    )

    folder = usual_folder().absolute()
    install(folder, force=True)
    say(path_line(folder))
