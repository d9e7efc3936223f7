"""Start and stop Muster on this machine: one daemon for each state folder."""

import fcntl
import gc
import logging
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import click

from muster.client.calls import Client
from muster.client.errors import ClientError, UnreachableError
from muster.doors.cli.daemon import DownOptions, ListenOptions, ServeOptions, UpOptions
from muster.doors.config.parse import site_from
from muster.model.errors import MusterError
from muster.model.site import Site
from muster.settings import (
    BadSettingsError,
    Listen,
    Settings,
    keep_settings,
    made_home,
    read_settings,
    usual_home,
)

if TYPE_CHECKING:
    from muster.doors.rest.serve import Tcp

START_PATIENCE_S = 60.0
LOOK_AGAIN_S = 0.02
LOCK_NAME = "daemon.lock"
LOG_NAME = "muster.log"
SITE_NAME = "first-site.yaml"
ENDING = {signal.SIGTERM, signal.SIGINT}


class AlreadyRunningError(MusterError):
    """Another daemon has this state folder."""


def up(options: UpOptions) -> int:
    """Start the daemon, or become it, and say what to do next."""
    home = made_home(options.home or usual_home()).resolve()
    settings = _settled(read_settings(home), options)
    if _pid(home) is not None:
        click.echo(f"Muster runs already (home {home}). Stop it with: muster down", err=True)
        return 0
    if options.site is not None:
        text = options.site.read_text(encoding="utf-8")
        site_from(text)
        (home / SITE_NAME).write_text(text, encoding="utf-8")
    keep_settings(home, settings)
    if options.foreground:
        return run(home)
    return _started(home)


def down(options: DownOptions) -> int:
    """Stop the daemon; its jobs run on."""
    home = (options.home or usual_home()).resolve()
    pid = _pid(home)
    if pid is None:
        click.echo(f"Muster does not run (home {home}).", err=True)
        return 0
    os.kill(pid, signal.SIGTERM)
    deadline = time.monotonic() + options.patience_s
    while time.monotonic() < deadline:
        if _pid(home) is None:
            click.echo("Muster has stopped. Jobs that run go on; muster up takes them over.")
            return 0
        time.sleep(LOOK_AGAIN_S)
    click.echo(f"Muster (process {pid}) has not stopped yet; see {home / 'logs' / LOG_NAME}")
    return 1


def serve(options: ServeOptions) -> int:
    """Answer at the doors only."""
    home = made_home(options.home or usual_home()).resolve()
    if options.store is None:
        text = "a process that only answers shares a store: say --store postgresql://..."
        raise BadSettingsError(text)
    settings = Settings(store=options.store, listen=_listen(options.listen), doors_only=True)
    keep_settings(home, settings)
    return run(home)


def run(home: Path) -> int:
    """Be the daemon until SIGTERM or SIGINT."""
    # Whoever only starts and stops daemons does not need all that a daemon needs.
    from muster.app.parts import SOCKET_NAME, Muster, clock  # noqa: PLC0415
    from muster.doors.rest.app import rest_app  # noqa: PLC0415
    from muster.doors.rest.serve import serve as answer  # noqa: PLC0415

    signal.pthread_sigmask(signal.SIG_BLOCK, ENDING)
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s %(message)s")
    lock = _locked(home)
    settings = read_settings(home)
    muster = Muster(home, settings, _first_site(home))
    try:
        muster.start()
        # What was loaded lives long: looking through it for garbage would only take time.
        gc.collect()
        gc.freeze()
        serving = answer(
            rest_app(muster.service, clock), path=home / SOCKET_NAME, tcp=_tcp(settings.listen)
        )
        try:
            _wait_for_the_end()
        finally:
            serving.close()
    finally:
        muster.close()
        os.close(lock)
    return 0


def _wait_for_the_end() -> None:
    """Threads do the work; this one waits to be told to stop."""
    signal.sigwait(ENDING)


def _tcp(listen: Listen | None) -> "Tcp | None":
    from muster.doors.rest.serve import Tcp  # noqa: PLC0415

    if listen is None:
        return None
    return Tcp(host=listen.host, port=listen.port, certificate=listen.tls_cert, key=listen.tls_key)


def _settled(kept: Settings, options: UpOptions) -> Settings:
    """What was told now, and what was told before where nothing is told now."""
    gpus = "+".join(f"{each.count}x{each.model}" for each in options.gpus) or kept.gpus
    return Settings(
        store=options.store or kept.store,
        nodes=options.nodes or kept.nodes,
        gpus=gpus,
        listen=_listen(options.listen) or kept.listen,
    )


def _listen(options: ListenOptions) -> Listen | None:
    if options.address is None:
        return None
    host, _, port = options.address.rpartition(":")
    if not host or not port.isdigit():
        text = f"--listen {options.address!r}: write HOST:PORT, such as 0.0.0.0:7411"
        raise BadSettingsError(text)
    return Listen(
        host=host.strip("[]"),
        port=int(port),
        tls_cert=None if options.tls_cert is None else str(options.tls_cert.resolve()),
        tls_key=None if options.tls_key is None else str(options.tls_key.resolve()),
    )


def _started(home: Path) -> int:
    log = home / "logs" / LOG_NAME
    with log.open("ab") as out:
        process = subprocess.Popen(  # noqa: S603 our own program
            [sys.executable, "-m", "muster.app.daemon", str(home)],
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=out,
            start_new_session=True,
            cwd="/",
        )
    deadline = time.monotonic() + START_PATIENCE_S
    while time.monotonic() < deadline:
        if process.poll() is not None:
            click.echo(f"Muster could not start; the end of {log} says why:", err=True)
            click.echo(_tail(log), err=True)
            return 1
        if _answers(home):
            return _welcome(home)
        time.sleep(LOOK_AGAIN_S)
    click.echo(f"Muster does not answer yet; see {log}", err=True)
    return 1


def _answers(home: Path) -> bool:
    try:
        with Client(f"unix:{home / 'muster.sock'}", door="cli") as client:
            return client.status().leading
    except (UnreachableError, ClientError):
        return False


def _welcome(home: Path) -> int:
    with Client(f"unix:{home / 'muster.sock'}", door="cli") as client:
        status = client.status()
    nodes = sum(status.nodes.values())
    pretend = " (pretend)" if status.pretend else ""
    click.echo(f"Muster is up: {nodes} nodes, {status.gpus} GPUs{pretend}; state in {home}")
    if home != usual_home().resolve():
        click.echo(f"Tell the other commands where it is: export MUSTER_HOME={home}")
    click.echo("Try: muster submit --gpus 1 -- nvidia-smi    muster ps    muster nodes")
    return 0


def _locked(home: Path) -> int:
    """Hold the folder for this process; the file says who holds it."""
    file = os.open(home / LOCK_NAME, os.O_RDWR | os.O_CREAT, 0o644)
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        os.close(file)
        raise AlreadyRunningError(f"another Muster runs with the state in {home}") from error
    os.ftruncate(file, 0)
    os.pwrite(file, str(os.getpid()).encode(), 0)
    return file


def _pid(home: Path) -> int | None:
    """The daemon that has this folder, if one is alive."""
    try:
        file = os.open(home / LOCK_NAME, os.O_RDWR)
    except FileNotFoundError:
        return None
    try:
        fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return int(os.pread(file, 32, 0) or b"0") or None
    finally:
        os.close(file)
    return None


def _first_site(home: Path) -> Site | None:
    file = home / SITE_NAME
    return site_from(file.read_text(encoding="utf-8")) if file.exists() else None


def _tail(log: Path) -> str:
    return "\n".join(log.read_text(encoding="utf-8", errors="replace").splitlines()[-15:])


if __name__ == "__main__":
    sys.exit(run(Path(sys.argv[1])))
