from collections.abc import Iterator

import pytest

from doors.rest.running import Daemon, running
from muster import Client


@pytest.fixture(scope="module")
def daemon() -> Iterator[Daemon]:
    with running() as found:
        yield found


@pytest.fixture
def client(daemon: Daemon) -> Iterator[Client]:
    with daemon.client() as found:
        yield found
