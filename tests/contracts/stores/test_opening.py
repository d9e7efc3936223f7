"""Stores are found by their address, and made or brought up to date when they are opened."""

from itertools import chain
from pathlib import Path

import msgspec
import pytest

from contracts.stores.given import ended, job, step, submitted, write
from contracts.stores.places import PostgresPlace, SqlitePlace, sqlite_file
from muster.model.errors import StoreError, UnknownError
from muster.model.value import JobId, Value
from muster.stores import postgres, sqlite, tables
from muster.stores.base import EventQuery, HistoryQuery
from muster.stores.memory import MemoryStore
from muster.stores.migrations import MIGRATIONS
from muster.stores.opening import open_store
from muster.stores.sqlite import SqliteStore
from muster.stores.tables import Table


def test_an_address_says_which_store_is_meant(tmp_path: Path) -> None:
    sqlite = open_store(f"sqlite:///{tmp_path}/muster.db")

    assert isinstance(sqlite, SqliteStore)
    assert isinstance(open_store("memory:"), MemoryStore)
    assert (tmp_path / "muster.db").exists()
    sqlite.close()


@pytest.mark.parametrize(
    "url", ["", "muster.db", "sqlite:", "sqlite:///", "sqlite://host/x", "mysql://root:secret@x/y"]
)
def test_an_address_that_means_nothing_is_refused_with_examples(url: str) -> None:
    with pytest.raises(UnknownError, match=r"sqlite:///path/to/muster.db") as refused:
        open_store(url)

    assert "secret" not in str(refused.value)


def test_opening_twice_changes_nothing(database: SqlitePlace | PostgresPlace) -> None:
    write(database.open(), jobs=(job(1),))

    again = database.open()

    assert again.load().jobs == (job(1),)


def test_a_database_of_a_newer_program_is_refused(database: SqlitePlace | PostgresPlace) -> None:
    database.open()
    say(database, "UPDATE meta SET schema_number = 99")

    with pytest.raises(StoreError, match=r"newer Muster .*number 99"):
        database.open()


def test_a_database_of_an_older_program_is_brought_up_to_date(
    database: SqlitePlace | PostgresPlace,
) -> None:
    old = (job(1, labels=LABELS), ended(2, at=5, labels=LABELS), submitted(1, labels=LABELS))
    becomes_empty_of_schema(database, 1)
    for table, columns, value in zip(
        ("jobs", "history", "events"),
        (
            "1, NULL",
            "2, NULL, 'ann', 'acme/nlp', 'train', 'completed', 2, 4, 5",
            "1, 1, 1, 1, 'job_submitted'",
        ),
        old,
        strict=True,
    ):
        say(database, f"INSERT INTO {table} VALUES ({columns}, {blob(database, value)})")  # noqa: S608 - our own words

    again = database.open()
    write(again, steps=(step(1),))

    assert again.load().jobs == (old[0],)
    assert again.ended(HistoryQuery()).jobs == (old[1],)
    assert [each.event for each in again.events(EventQuery())] == [old[2]]
    assert again.steps((JobId(1),)) == (step(1),)


def test_the_tables_are_as_we_say(sqlite: SqlitePlace) -> None:
    sqlite.open()

    with sqlite_file(sqlite.path) as file:
        found = {each: file.execute(COLUMNS, (each.name,)).fetchall() for each in KNOWN}

    made = {each.name: tuple(row[0] for row in rows) for each, rows in found.items()}

    assert made == {each.name: each.names for each in KNOWN}


COLUMNS = "SELECT name FROM pragma_table_info(?) ORDER BY cid"
KNOWN = tuple(each for each in vars(tables).values() if isinstance(each, Table))


LABELS = {"large": "v" * 4_000}


def becomes_empty_of_schema(place: SqlitePlace | PostgresPlace, number: int) -> None:
    """As a program left it that knew only the first so many steps, and wrote nothing."""
    words = sqlite.WORDS if isinstance(place, SqlitePlace) else postgres.WORDS
    place.shut(place.open())
    for table in KNOWN:
        say(place, f"DROP TABLE {table.name}")
    for statement in chain(*MIGRATIONS[:number]):
        say(place, statement.format_map(words))
    say(place, f"UPDATE meta SET schema_number = {number}")  # noqa: S608 - a number


def blob(place: SqlitePlace | PostgresPlace, value: Value) -> str:
    """A value as one writes it in a statement."""
    body = msgspec.json.encode(value).hex()
    return f"x'{body}'" if isinstance(place, SqlitePlace) else f"decode('{body}', 'hex')"


def say(place: SqlitePlace | PostgresPlace, statement: str) -> None:
    match place:
        case SqlitePlace(path=path):
            with sqlite_file(path) as file:
                file.execute(statement)
        case PostgresPlace(server=server, schema=schema):
            server.say(f"SET search_path = {schema}", statement)
