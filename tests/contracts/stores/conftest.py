"""The same suite for every store: each test gets a place, and opens stores there."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from contracts.stores.places import MemoryPlace, Place, PostgresPlace, SqlitePlace
from databases import Postgres
from muster.stores.opening import WholeStore


@pytest.fixture(params=["memory", "sqlite", "postgres"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Place]:
    """Somewhere to keep things; opened twice, it has the same things."""
    match request.param:
        case "sqlite":
            place: Place = SqlitePlace(tmp_path)
        case "postgres":
            place = PostgresPlace(request.getfixturevalue("postgres"))
        case _:
            place = MemoryPlace()
    yield place
    place.close()


@pytest.fixture
def store(place: Place) -> WholeStore:
    return place.open()


@pytest.fixture(params=["sqlite", "postgres"])
def database(
    request: pytest.FixtureRequest, tmp_path: Path
) -> Iterator[SqlitePlace | PostgresPlace]:
    """A place that outlives the process that writes there."""
    if request.param == "sqlite":
        place: SqlitePlace | PostgresPlace = SqlitePlace(tmp_path)
    else:
        place = PostgresPlace(request.getfixturevalue("postgres"))
    yield place
    place.close()


@pytest.fixture
def sqlite(tmp_path: Path) -> Iterator[SqlitePlace]:
    place = SqlitePlace(tmp_path)
    yield place
    place.close()


@pytest.fixture
def pg(postgres: Postgres) -> Iterator[PostgresPlace]:
    place = PostgresPlace(postgres)
    yield place
    place.close()
