"""Calling the command in tests: the real one, with canned answers and a fixed clock."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import IO

import pytest

from doors.cli.canned import CannedServer
from muster.doors.cli.daemon.port import (
    AddClusterOptions,
    AddKubernetesOptions,
    BackupOptions,
    Check,
    ClustersOptions,
    DoctorOptions,
    DoctorReport,
    DownOptions,
    ExtenderOptions,
    Level,
    RemoveClusterOptions,
    RestoreOptions,
    ServeOptions,
    UpOptions,
)
from muster.doors.cli.main import main
from muster.doors.cli.screen.screen import Screen
from muster.doors.cli.surroundings import Surroundings

NOON = datetime(2026, 11, 15, 12, 0, 0, tzinfo=timezone(timedelta(hours=1)))


@dataclass
class RememberingDaemon:
    """Starts nothing; remembers with which options it was called."""

    home: Path = Path("/nonexistent/muster")
    calls: list[object] = field(default_factory=list[object])

    def up(self, options: UpOptions) -> int:
        self.calls.append(options)
        return 0

    def down(self, options: DownOptions) -> int:
        self.calls.append(options)
        return 0

    def serve(self, options: ServeOptions) -> int:
        self.calls.append(options)
        return 7

    def backup(self, options: BackupOptions) -> int:
        self.calls.append(options)
        return 0

    def restore(self, options: RestoreOptions) -> int:
        self.calls.append(options)
        return 0

    def add_cluster(self, options: AddClusterOptions) -> int:
        self.calls.append(options)
        return 0

    def add_kubernetes(self, options: AddKubernetesOptions) -> int:
        self.calls.append(options)
        return 0

    def remove_cluster(self, options: RemoveClusterOptions) -> int:
        self.calls.append(options)
        return 0

    def clusters(self, options: ClustersOptions) -> int:
        self.calls.append(options)
        return 0

    def extender(self, options: ExtenderOptions) -> int:
        self.calls.append(options)
        return 0

    def doctor_report(self, options: DoctorOptions) -> DoctorReport:
        self.calls.append(options)
        checks = (Check(name="spawner", level=Level.OK, text="runs"),)
        return DoctorReport(home=options.home or self.home, store="SQLite", checks=checks)


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What a call came to."""

    code: int
    out: str
    err: str


@dataclass(kw_only=True)
class Caller:
    """Somebody at a shell."""

    server: CannedServer
    capsys: pytest.CaptureFixture[str]
    daemon: RememberingDaemon = field(default_factory=RememberingDaemon)
    screen: Screen = field(default_factory=Screen)
    environ: Mapping[str, str] = field(default_factory=lambda: {"PATH": "/bin", "HOME": "/h"})
    pause: Callable[[float], None] = time.sleep

    def __call__(self, *argv: str) -> Outcome:
        code = main(argv, daemon=self.daemon, surroundings=self.surroundings())
        captured = self.capsys.readouterr()
        return Outcome(code=code, out=captured.out, err=captured.err)

    def surroundings(self) -> Surroundings:
        return Surroundings(
            connect=self.server.connect,
            now=lambda: NOON,
            screen=self.screen,
            environ=self.environ,
            workdir="/home/alice",
            pause=self.pause,
        )


PROGRAM = """\
import sys
import time
from doors.cli.calling import RememberingDaemon
from muster.doors.cli.main import main
sys.exit(main(sys.argv[1:], daemon=RememberingDaemon()))
"""


def muster_process(
    *argv: str,
    server: CannedServer | None = None,
    home: Path | None = None,
    stdout: int | IO[bytes] = subprocess.PIPE,
    stdin: int | None = None,
) -> subprocess.Popen[str]:
    """The command in a process of its own."""
    place = {"MUSTER_URL": f"unix:{server.socket}"} if server else {"MUSTER_HOME": str(home)}
    kept = {name: value for name, value in os.environ.items() if not name.startswith("MUSTER_")}
    tests = str(Path(__file__).parents[2])
    return subprocess.Popen(  # noqa: S603  our own code
        [sys.executable, "-c", PROGRAM, *argv],
        stdin=stdin,
        stdout=stdout,
        stderr=subprocess.PIPE,
        text=True,
        env=kept | place | {"PYTHONPATH": tests},
        preexec_fn=_hear_interrupts,  # noqa: PLW1509  no threads here
    )


def _hear_interrupts() -> None:
    """Tests that run in the background may have inherited ignored interrupts."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
