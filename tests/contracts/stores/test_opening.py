"""Stores are found by their address, and made or brought up to date when they are opened."""

from pathlib import Path

import pytest

from contracts.stores.given import job, step, write
from contracts.stores.places import PostgresPlace, SqlitePlace, sqlite_file
from muster.model.errors import StoreError, UnknownError
from muster.model.value import JobId
from muster.stores import tables
from muster.stores.memory import MemoryStore
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
    write(database.open(), jobs=(job(1),))
    say(database, "DROP TABLE steps")
    say(database, "UPDATE meta SET schema_number = 1")

    again = database.open()
    write(again, steps=(step(1),))

    assert again.load().jobs == (job(1),)
    assert again.steps((JobId(1),)) == (step(1),)


def test_the_tables_are_as_we_say(sqlite: SqlitePlace) -> None:
    sqlite.open()

    with sqlite_file(sqlite.path) as file:
        found = {each: file.execute(COLUMNS, (each.name,)).fetchall() for each in KNOWN}

    made = {each.name: tuple(row[0] for row in rows) for each, rows in found.items()}

    assert made == {each.name: each.names for each in KNOWN}


COLUMNS = "SELECT name FROM pragma_table_info(?) ORDER BY cid"
KNOWN = tuple(each for each in vars(tables).values() if isinstance(each, Table))


def say(place: SqlitePlace | PostgresPlace, statement: str) -> None:
    match place:
        case SqlitePlace(path=path):
            with sqlite_file(path) as file:
                file.execute(statement)
        case PostgresPlace(server=server, schema=schema):
            server.say(f"SET search_path = {schema}", statement)
