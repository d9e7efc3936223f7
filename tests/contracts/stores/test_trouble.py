"""When the disk is full, the database locked or the server away: clear errors, then recovery."""

import os
import resource
import signal
import subprocess
from collections.abc import Generator, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from contracts.stores.given import job, launch_of, soon, submitted, write
from contracts.stores.middleman import Cut, Middleman
from contracts.stores.places import PostgresPlace, SqlitePlace, sqlite_file
from muster.model.errors import (
    StoreDownError,
    StoreFullError,
    StoreLockedError,
)
from muster.model.value import JobId
from muster.stores.base import Batch, LiveState
from muster.stores.opening import WholeStore, open_store
from muster.stores.postgres import PostgresStore
from muster.stores.sqlite import SqliteStore

LONG_SCRIPT = "x" * 100_000


def test_a_file_that_may_not_grow_is_full_until_it_may(sqlite: SqlitePlace) -> None:
    store = sqlite.open()
    write(store, jobs=(job(1),))

    with no_file_larger_than(200_000):
        written = fill(store)

    assert_recovers(store, written)


def test_a_full_disk_is_full_until_there_is_room(small_disk: Path) -> None:
    place = SqlitePlace(small_disk)
    store = place.open()
    write(store, jobs=(job(1),))
    ballast = small_disk / "ballast"
    ballast.write_bytes(b"x" * 1_000_000)

    written = fill(store)
    ballast.unlink()

    assert_recovers(store, written)
    place.close()


def test_a_locked_database_says_so_and_can_be_used_afterwards(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "muster.db", patience_ms=30)
    write(store, jobs=(job(1),))

    with sqlite_file(tmp_path / "muster.db") as file:
        file.execute("BEGIN IMMEDIATE")
        with pytest.raises(StoreLockedError, match="is locked by another program"):
            write(store, jobs=(job(2),))
        state_meanwhile = store.load()

    assert state_meanwhile == LiveState(version=1, jobs=(job(1),))
    write(store, jobs=(job(2),))
    assert store.load().jobs == (job(1), job(2))
    store.close()


def test_a_file_that_is_no_database_is_refused(tmp_path: Path) -> None:
    (tmp_path / "muster.db").write_bytes(b"shopping list " * 1_000)

    with pytest.raises(StoreDownError, match="not a database"):
        SqliteStore(tmp_path / "muster.db")


def test_a_folder_that_does_not_exist_is_reported(tmp_path: Path) -> None:
    with pytest.raises(StoreDownError, match="No such file"):
        SqliteStore(tmp_path / "nowhere" / "muster.db")


def test_only_the_owner_can_read_the_files(sqlite: SqlitePlace) -> None:
    store = sqlite.open()
    store.lead()
    write(store, jobs=(job(1),))

    modes = {path.name: path.stat().st_mode & 0o777 for path in sqlite.path.parent.iterdir()}

    assert set(modes.values()) == {0o600}
    assert len(modes) == 4, "the database, its log, the log's index and the leader's lock"


@pytest.mark.slow
def test_a_locked_server_says_so_and_can_be_used_afterwards(pg: PostgresPlace) -> None:
    store = pg.open()
    write(store, jobs=(job(1),))

    with pg.server.holding(f"LOCK TABLE {pg.schema}.meta"), pytest.raises(StoreLockedError):
        write(store, jobs=(job(2),))

    write(store, jobs=(job(2),))
    assert store.load().jobs == (job(1), job(2))


def test_a_server_that_crashed_is_down_until_it_is_back(pg: PostgresPlace) -> None:
    store = pg.open()
    write(store, jobs=(job(1),))
    assert store.lead()

    pg.server.stop(signal.SIGQUIT)
    try:
        with pytest.raises(StoreDownError):
            write(store, jobs=(job(2),))
        led_meanwhile = store.lead()
    finally:
        pg.server.start()

    assert not led_meanwhile
    assert store.load() == LiveState(version=1, jobs=(job(1),))
    write(store, jobs=(job(2),))
    assert store.load().jobs == (job(1), job(2))
    assert soon(store.lead)


def test_who_listens_hears_again_after_the_server_came_back(pg: PostgresPlace) -> None:
    writer, listener = pg.open(), pg.open()
    calls: list[int] = []
    listener.listen(lambda: calls.append(1))
    # It may hear of the server before `start` returns.
    before = len(calls)
    pg.server.stop(signal.SIGQUIT)
    pg.server.start()

    assert soon(lambda: len(calls) > before)
    before = len(calls)
    write(writer, jobs=(job(1),))

    assert soon(lambda: len(calls) > before)


def test_a_commit_whose_answer_was_lost_is_looked_up(pg: PostgresPlace) -> None:
    with (
        closing(Middleman(pg.server.socket)) as middleman,
        closing(through(middleman, pg)) as store,
    ):
        write(store, jobs=(job(1),))

        middleman.cut = Cut.AFTER_COMMIT
        store.append(Batch(version=2, next_job=JobId(3), jobs=(job(2),)))

        assert middleman.cut is Cut.NEVER
        assert store.load().jobs == (job(1), job(2))
        assert store.load().version == 2


def test_a_commit_that_did_not_arrive_is_reported(pg: PostgresPlace) -> None:
    with (
        closing(Middleman(pg.server.socket)) as middleman,
        closing(through(middleman, pg)) as store,
    ):
        write(store, jobs=(job(1),))

        middleman.cut = Cut.BEFORE_COMMIT
        with pytest.raises(StoreDownError):
            store.append(Batch(version=2, next_job=JobId(3), jobs=(job(2),)))

        assert store.load() == LiveState(version=1, jobs=(job(1),))
        write(store, jobs=(job(3),))
        assert store.load().jobs == (job(1), job(3))


def test_a_server_that_is_not_there_is_reported(tmp_path: Path) -> None:
    with pytest.raises(StoreDownError):
        open_store(f"postgresql://muster@/muster?host={tmp_path}")


def through(middleman: Middleman, place: PostgresPlace) -> PostgresStore:
    address = f"muster@127.0.0.1:{middleman.port}/postgres?search_path={place.schema}"
    return PostgresStore(f"postgresql://{address}")


def fill(store: WholeStore) -> int:
    """Write until there is no room; how many versions were written here."""
    for count in range(100):
        version = store.load().version
        try:
            write(store, events=(submitted(2),), launches=(launch_of(version, LONG_SCRIPT),))
        except StoreFullError as error:
            assert "make room" in str(error)  # noqa: PT017 - the loop looks for it
            assert store.load().version == version
            return count
    pytest.fail("there was room for everything")


def assert_recovers(store: WholeStore, written: int) -> None:
    write(store, jobs=(job(2),), launches=(launch_of(1_000, LONG_SCRIPT),))
    state = store.load()
    assert state.jobs == (job(1), job(2))
    assert state.version == written + 2
    assert state.last_event == written
    assert store.launch(JobId(1_000)) == launch_of(1_000, LONG_SCRIPT).launch


@contextmanager
def no_file_larger_than(size: int) -> Generator[None]:
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    if os.geteuid() != 0:
        pytest.skip("only root can mount a small disk")
    options = ["-t", "tmpfs", "-o", "size=2m", "tmpfs", str(tmp_path)]
    mounted = subprocess.run(["mount", *options], check=False, capture_output=True)  # noqa: S603, S607 - our own words
    if mounted.returncode != 0:
        pytest.skip(f"mounting is not allowed here: {mounted.stderr.decode()}")
    yield tmp_path
    subprocess.run(["umount", str(tmp_path)], check=True)  # noqa: S603, S607 - our own words
