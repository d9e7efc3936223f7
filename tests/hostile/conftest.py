"""One Muster in this process, with people who have roles in it and people who have none."""

from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from hostile.people import SITE, until
from local.conftest import here, home
from muster.app.parts import Muster
from muster.settings import Settings

__all__ = ["fresh", "here", "home", "muster"]


@pytest.fixture(scope="module")
def muster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Muster]:
    """For all tests of a file: those that change rules, or count, take `fresh`."""
    with _running(tmp_path_factory.mktemp("home")) as made:
        yield made


@pytest.fixture
def fresh(tmp_path: Path) -> Iterator[Muster]:
    with _running(tmp_path) as made:
        yield made


@contextmanager
def _running(home: Path) -> Generator[Muster]:
    made = Muster(home, Settings(store="memory:", nodes=1, gpus="2xA100-40GB"), SITE)
    made.start()
    try:
        until(lambda: len(made.journal.record.nodes), lambda count: count == 1)
        yield made
    finally:
        made.close()
