"""The database is gone, empty, damaged or old while jobs run: nothing is ended for it."""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from contracts.stores.given import ended
from live.house import GPUS, NODES, folder, is_alive, running, shell, until
from live.test_starting import Shell
from muster import Client
from muster.api.jobs import JobDocument
from muster.model.value import Instant, JobId
from muster.stores.base import Batch
from muster.stores.sqlite import SqliteStore

pytestmark = pytest.mark.slow

UP = ("up", "--nodes", str(NODES), "--gpus", GPUS)


@pytest.fixture
def place() -> Iterator[Path]:
    with folder() as made:
        yield made


def client_of(home: Path) -> Client:
    return Client(f"unix:{home / 'muster.sock'}")


class Scene:
    """A Muster that was stopped while a job runs; the job waits for a file, then exits with 3."""

    def __init__(self, place: Path) -> None:
        self.user = Shell(place / "home")
        self.database = place / "home" / "muster.db"
        self._place = place
        assert self.user.muster(*UP).code == 0
        self.old = place / "old.db"

    def runs_a_job(self) -> None:
        text = f"echo $$ > {self._place}/pid; while [ ! -e {self._place}/go ]; do sleep 0.05; done"
        with client_of(self.user.home) as client:
            made = client.submit_document(shell(f"{text}; exit 3", workdir=str(self._place)))
            self.job = running(client, made.id).id
        pid = self._place / "pid"
        self.pid = int(until(lambda: pid.read_text() if pid.exists() else "", bool))

    def stops(self) -> None:
        assert self.user.muster("down").code == 0

    def is_unharmed(self) -> bool:
        return is_alive(self.pid) and (self.user.home / "spool" / f"{self.job}.1").is_dir()

    def ends(self) -> JobDocument:
        (self._place / "go").touch()
        with client_of(self.user.home) as client:
            return client.wait(self.job)


@pytest.fixture
def scene(place: Path) -> Iterator[Scene]:
    made = Scene(place)
    yield made
    (place / "go").touch()
    made.user.muster("down")


def gone(scene: Scene) -> None:
    scene.database.unlink()


def emptied(scene: Scene) -> None:
    scene.database.write_bytes(b"")


def old(scene: Scene) -> None:
    shutil.copy(scene.old, scene.database)


@pytest.mark.parametrize("lose", [gone, emptied, old])
def test_jobs_that_the_database_does_not_know_run_on_and_can_be_taken_over(
    scene: Scene, lose: object
) -> None:
    scene.stops()
    shutil.copy(scene.database, scene.old)
    assert scene.user.muster("up").code == 0
    scene.runs_a_job()
    scene.stops()
    assert callable(lose)
    lose(scene)

    refused = scene.user.muster("up")
    doctor = scene.user.muster("doctor")

    assert refused.code == 1
    assert f"jobs that run from {scene.user.home.resolve()} ({scene.job})" in refused.said
    assert "muster up --recover" in refused.said
    assert "muster restore" in refused.said
    assert scene.is_unharmed()
    assert doctor.code == 1
    assert "does not know jobs that run" in doctor.said

    recovered = scene.user.muster("up", "--recover")

    assert recovered.code == 0, recovered.said
    with client_of(scene.user.home) as client:
        assert running(client, scene.job).nodes
        assert client.submit_document(shell("true")).id > scene.job
    over = scene.ends()
    assert (over.state, over.exit_code) == ("failed", 3)


def test_a_damaged_database_is_told_with_what_to_do(scene: Scene) -> None:
    scene.runs_a_job()
    scene.stops()
    kept = scene.database.read_bytes()
    scene.database.write_bytes(b"this is no database".ljust(len(kept), b"."))

    refused = scene.user.muster("up")
    doctor = scene.user.muster("doctor")

    assert refused.code == 1
    assert "is damaged" in refused.said
    assert "muster restore" in refused.said
    assert scene.is_unharmed()
    assert doctor.code == 1
    assert "is damaged" in doctor.said

    scene.database.write_bytes(kept)
    assert scene.user.muster("up").code == 0
    assert scene.ends().exit_code == 3


def test_a_database_that_is_gone_is_told_when_nothing_runs(scene: Scene) -> None:
    scene.stops()
    gone(scene)

    refused = scene.user.muster("up")

    assert refused.code == 1
    assert "the database is empty, but" in refused.said
    assert scene.user.muster("doctor").code == 1
    assert scene.user.muster("up", "--recover").code == 0


def test_a_database_that_cannot_be_written_is_told_with_what_to_do(place: Path) -> None:
    database = place / "home" / "muster.db"
    database.parent.mkdir()
    # Root may write everything, but no one can write a folder.
    database.mkdir()

    refused = Shell(place / "home").muster(*UP)

    assert refused.code == 1
    assert f"{database.resolve()} cannot be written" in refused.said
    assert f"chown {os.getuid()}" in refused.said


def test_a_backup_of_a_running_muster_brings_everything_back(scene: Scene, place: Path) -> None:
    copy = place / "copy.db"
    scene.user.muster("submit", "--hold", "--name", "kept", "--", "true")

    made = scene.user.muster("backup", str(copy))
    again = scene.user.muster("backup", str(copy))
    scene.runs_a_job()
    too_early = scene.user.muster("restore", str(copy))
    scene.stops()
    restored = scene.user.muster("restore", str(copy))

    assert made.code == 0, made.said
    assert copy.stat().st_mode & 0o777 == 0o600
    assert (again.code, "is there already" in again.said) == (1, True)
    assert (too_early.code, "muster down" in too_early.said) == (1, True)
    assert restored.code == 0, restored.said
    assert (scene.user.home / "muster.db.before-1").exists()
    assert scene.user.muster("up").code == 1
    assert scene.user.muster("up", "--recover").code == 0
    assert "kept" in scene.user.muster("ps").said
    assert scene.ends().exit_code == 3


def test_only_a_backup_of_muster_can_be_restored(scene: Scene, place: Path) -> None:
    other = place / "other.db"
    other.write_bytes(b"")
    scene.stops()

    for file, why in ((place / "none", "there is no file"), (other, "is no backup of Muster's")):
        refused = scene.user.muster("restore", str(file))
        assert refused.code == 1
        assert why in refused.said
    assert scene.user.muster("up").code == 0


def test_a_request_that_is_sent_again_after_a_restart_makes_no_second_job(scene: Scene) -> None:
    with client_of(scene.user.home) as client:
        first = client.submit_document(shell("true", request_key="once"))
    scene.stops()
    assert scene.user.muster("up").code == 0

    with client_of(scene.user.home) as client:
        again = client.submit_document(shell("true", request_key="once"))

    assert again.ids == first.ids


def test_history_that_is_forgotten_gives_its_room_back(place: Path) -> None:
    store = SqliteStore(place / "muster.db")
    many = tuple(ended(number, 5, labels={"filler": "x" * 4_000}) for number in range(1, 2_001))
    store.append(Batch(version=1, next_job=JobId(2_001), ended=many))
    store.close()
    before = (place / "muster.db").stat().st_size

    store = SqliteStore(place / "muster.db")
    while store.forget(Instant(10**15), limit=500):
        pass
    store.close()

    assert (place / "muster.db").stat().st_size < before // 4
