from collections.abc import Iterator

import pytest

from databases import Postgres


@pytest.fixture(scope="session")
def postgres() -> Iterator[Postgres]:
    why_not = Postgres.why_not()
    if why_not is not None:
        pytest.skip(why_not)
    server = Postgres()
    try:
        server.start()
        yield server
    finally:
        server.remove()
