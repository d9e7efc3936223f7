"""What the tests of the command share."""

import gc
from collections.abc import Iterator

import pytest

from doors.cli.calling import Caller
from doors.cli.canned import CannedServer
from doors.cli.things import ROUTES


@pytest.fixture
def server() -> Iterator[CannedServer]:
    with CannedServer(answers=dict(ROUTES)) as server:
        yield server


@pytest.fixture
def muster(server: CannedServer, capsys: pytest.CaptureFixture[str]) -> Iterator[Caller]:
    yield Caller(server=server, capsys=capsys)
    # A command does without it, a test process does not.
    gc.enable()
