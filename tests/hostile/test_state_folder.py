"""What is in the state folder is ours: others pass through it to the socket, and see nothing."""

import fcntl
import os
import signal
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from doors.rest.running import Daemon, as_uid, running, shell, started, until
from hostile.deep import deep_tree
from muster.backends.local.isolation import trees
from muster.settings import Settings, keep_file, keep_settings, made_home, mend_modes

needs_root = pytest.mark.skipif(os.getuid() != 0, reason="only root can be somebody else")

NOBODY = 65_534
FOR_OTHERS = {"muster.sock", "steps.sock"}
"""Sockets that other users talk to; each of them asks the kernel who that is."""
ON_THE_WAY = {"", "spool", "pods"}
"""Folders that other users must pass to reach what is theirs, and cannot list."""


@pytest.fixture(scope="module")
def daemon() -> Iterator[Daemon]:
    with running() as found:
        with found.client() as client:
            started(client, client.submit_document(shell("sleep 600")).id)
        yield found


def too_open(home: Path) -> list[str]:
    """What others could read, write or list, apart from what is there for them."""
    found: list[str] = []
    for path in (home, *home.rglob("*")):
        try:
            mode = path.lstat().st_mode
        except FileNotFoundError:
            continue
        if stat.S_ISLNK(mode) or path.name in FOR_OTHERS or not mode & 0o077:
            continue
        name = str(path.relative_to(home)) if path != home else ""
        if name.startswith("pods/") and name.count("/") > 1:
            # Whoever a container's processes are: the folder of the pod is closed to all of them.
            continue
        is_passage = name in ON_THE_WAY or path.parent.name == "spool"
        if not (stat.S_ISDIR(mode) and is_passage and mode & 0o077 == 0o011):
            found.append(f"{stat.filemode(mode)} {name}")
    return found


def test_nothing_in_the_state_folder_of_a_running_muster_is_open_to_others(daemon: Daemon) -> None:
    assert too_open(daemon.home) == []


def test_what_was_too_open_is_mended_when_muster_starts() -> None:
    with running() as daemon:
        daemon.stop()
        (daemon.home / "first-site.yaml").write_text("queues: {default: {}}\n")
        (daemon.home / "logs" / "old.log").write_text("a password\n")
        for path in daemon.home.rglob("*"):
            if not path.is_symlink() and not path.is_socket():
                path.chmod(0o777 if path.is_dir() else 0o666)
        daemon.home.chmod(0o777)

        daemon.start()

        assert too_open(daemon.home) == []


def test_settings_are_private_from_their_first_byte(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        home = made_home(tmp_path / "home")
        keep_settings(home, Settings(store="postgresql://me:secret@db/muster"))
        keep_file(home / "first-site.yaml", b"queues: {default: {}}")
    finally:
        os.umask(before)

    assert too_open(home) == []


def test_a_link_in_the_state_folder_is_not_followed_when_modes_are_mended(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.write_text("not ours")
    outside.chmod(0o644)
    home = made_home(tmp_path / "home")
    (home / "link").symlink_to(outside)

    mend_modes(home)

    assert stat.S_IMODE(outside.stat().st_mode) == 0o644


def test_what_a_pod_made_in_its_volume_is_left_to_it_and_its_folder_is_closed(
    tmp_path: Path,
) -> None:
    home = made_home(tmp_path / "home")
    volume = home / "pods" / "7.1" / "volumes" / "w"
    volume.mkdir(parents=True)
    (volume / "run.sh").touch()
    for path in (volume, volume / "run.sh", *volume.parents[:3]):
        path.chmod(0o777)

    mend_modes(home)

    assert {stat.S_IMODE(path.stat().st_mode) for path in (volume, volume / "run.sh")} == {0o777}
    assert too_open(home) == []


@pytest.mark.parametrize("where", ["pods/7.1", "pods", "spool/7.1", "logs", "."])
def test_a_folder_of_any_depth_keeps_nobody_from_starting_muster(
    tmp_path: Path, where: str
) -> None:
    home = made_home(tmp_path / "home")
    begins = home / where
    begins.mkdir(parents=True, exist_ok=True)
    try:
        deep_tree(begins, 3_000)

        mend_modes(home)
    finally:
        trees.remove(home)


def test_what_becomes_a_link_while_modes_are_mended_is_not_followed(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.write_text("not ours")
    outside.chmod(0o666)
    home = made_home(tmp_path / "home")
    plain = tmp_path / "plain"
    plain.touch()
    swaps = os.fork()
    if swaps == 0:
        os.link(plain, tmp_path / "next")
        os.symlink(outside, home / "swapped")
        while True:
            os.replace(tmp_path / "next", home / "swapped")
            os.symlink(outside, tmp_path / "next")
            os.replace(tmp_path / "next", home / "swapped")
            os.link(plain, tmp_path / "next")
    try:
        until((home / "swapped").is_symlink, bool)
        for _ in range(10_000):
            mend_modes(home)
    finally:
        os.kill(swaps, signal.SIGKILL)
        os.waitpid(swaps, 0)

    assert stat.S_IMODE(outside.stat().st_mode) == 0o666


@needs_root
def test_nobody_else_can_open_the_lock(daemon: Daemon) -> None:
    def hold_it() -> str:
        for how in (os.O_RDONLY, os.O_WRONLY, os.O_RDWR):
            try:
                os.close(os.open(daemon.home / "daemon.lock", how))
            except PermissionError:
                continue
            return "it was opened"
        return "refused"

    assert as_uid(NOBODY, hold_it) == "refused"


@needs_root
def test_a_lock_that_somebody_held_before_the_modes_were_mended_stops_nothing() -> None:
    with running() as daemon:
        daemon.stop()
        lock = daemon.home / "daemon.lock"
        lock.chmod(0o644)
        held = os.open(lock, os.O_RDONLY)
        try:
            fcntl.flock(held, fcntl.LOCK_SH)
            daemon.start()
        finally:
            os.close(held)

        assert stat.S_IMODE(lock.stat().st_mode) == 0o600


@needs_root
@pytest.mark.parametrize("name", ["settings.json", "muster.db", "logs/muster.log", "daemon.lock"])
def test_nobody_else_can_read_what_we_keep(daemon: Daemon, name: str) -> None:
    told = as_uid(NOBODY, lambda: (daemon.home / name).read_bytes().decode(errors="replace"))

    assert told.startswith("PermissionError")


def test_a_job_has_the_usual_umask_and_not_that_of_the_server(daemon: Daemon) -> None:
    written = daemon.home.parent / f"umask-{daemon.home.name}"
    with daemon.client() as client:
        job = client.submit_document(shell(f"umask > {written}", umask=None)).id
        client.wait(job)
    try:
        assert written.read_text().strip() == "0022"
    finally:
        written.unlink()
