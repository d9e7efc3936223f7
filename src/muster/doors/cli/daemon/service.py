"""`muster install-service` and `uninstall-service`: have systemd start and watch Muster."""

import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import click

from muster.client.address import own_home
from muster.doors.cli.daemon.commands import FILE, home_option
from muster.doors.cli.options import example
from muster.doors.cli.screen.printing import note, say
from muster.model.errors import MusterError
from muster.model.value import Value

NAME = "muster.service"
SYSTEM_UNITS = Path("/etc/systemd/system")
RUNS_HERE = Path("/run/systemd/system")

UNIT = """\
# Written by muster install-service.
[Unit]
Description=Muster shares GPUs between people and teams
Documentation=man:muster(1)
After=network-online.target local-fs.target
Wants=network-online.target

[Service]
ExecStart={command}
ExecStop={stop}
# Jobs are processes of their own: they outlive Muster, and the next one takes them over.
KillMode=process
Restart=on-failure
RestartSec=2
# Jobs are in groups below ours, with limits of their own.
Delegate=yes
TasksMax=infinity
LimitNOFILE=65536
OOMScoreAdjust=-500
UMask=0077

[Install]
WantedBy={target}
"""


class ServiceError(MusterError):
    """The administrator: systemd did not do it."""


class Place(Value):
    """Where a unit goes, and how systemd is asked about it: root's, or a user's own."""

    folder: Path
    systemctl: tuple[str, ...]
    target: str

    @property
    def file(self) -> Path:
        return self.folder / NAME


@click.command(
    name="install-service",
    epilog=example(
        "sudo muster install-service",
        "muster install-service --print",
        "sudo muster install-service --home /srv/muster",
    ),
)
@home_option
@click.option("--print", "prints", is_flag=True, help="Print the unit; write and start nothing.")
@click.option("--no-start", is_flag=True, help="Write the unit, but do not start it now.")
@click.option("--folder", type=FILE, help="Write the unit there, and do not call systemctl.")
def install_service(
    home: Path | None, *, prints: bool, no_start: bool, folder: Path | None
) -> None:
    """Have systemd start Muster with the machine, and start it again if it fails.

    Run by root it is a service of the machine, for all users; run by another user it is a service
    of that user. The options of the last `muster up` in the state folder hold.
    """
    place = (
        _place() if folder is None else Place(folder=folder, systemctl=(), target="default.target")
    )
    text = unit_text((home or own_home()).absolute(), place.target)
    if prints:
        say(text.rstrip("\n"))
        return
    place.folder.mkdir(parents=True, exist_ok=True)
    place.file.write_text(text, encoding="utf-8")
    say(f"{place.file} is written")
    if not place.systemctl:
        return
    if not RUNS_HERE.is_dir():
        note("systemd does not run here; it will find the unit where it does.")
        return
    _systemctl(place, "daemon-reload")
    _systemctl(place, "enable", *(() if no_start else ("--now",)), NAME)
    say("Muster is a service; see: systemctl status muster")


@click.command(name="uninstall-service", epilog=example("sudo muster uninstall-service"))
@click.option("--folder", type=FILE, help="Where the unit is, if not where systemd looks for it.")
def uninstall_service(folder: Path | None) -> None:
    """Stop Muster, and have systemd start it no more. Jobs that run go on."""
    place = _place() if folder is None else Place(folder=folder, systemctl=(), target="")
    if not place.file.exists():
        note(f"There is no {place.file}.")
        return
    if place.systemctl and RUNS_HERE.is_dir():
        _systemctl(place, "disable", "--now", NAME)
    place.file.unlink()
    if place.systemctl and RUNS_HERE.is_dir():
        _systemctl(place, "daemon-reload")
    say(f"{place.file} is removed")


def unit_text(home: Path, target: str) -> str:
    """The unit of a Muster with its state in this folder."""
    muster = [sys.executable, "-m", "muster"]
    if shutil.which("muster", path=str(Path(sys.executable).parent)):
        muster = [str(Path(sys.executable).parent / "muster")]
    command = [*muster, "up", "--foreground", "--home", str(home)]
    stop = [*muster, "down", "--home", str(home)]
    return UNIT.format(command=shlex.join(command), stop=shlex.join(stop), target=target)


def _place() -> Place:
    if os.getuid() == 0:
        return Place(folder=SYSTEM_UNITS, systemctl=("systemctl",), target="multi-user.target")
    folder = Path.home() / ".config" / "systemd" / "user"
    return Place(folder=folder, systemctl=("systemctl", "--user"), target="default.target")


def _systemctl(place: Place, *words: str) -> None:
    done = subprocess.run(  # noqa: S603  systemd's own program
        [*place.systemctl, *words], capture_output=True, text=True, check=False
    )
    if done.returncode:
        said = done.stderr.strip() or done.stdout.strip()
        raise ServiceError(f"systemctl {' '.join(words)} failed: {said}")
