"""What all tests share: how hard properties are looked for, processes side by side, a database."""

import os
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings
from xdist.remote import Producer  # pyright: ignore[reportMissingTypeStubs] - it has none

from databases import Postgres
from doors.slurm.house import House, house
from left_out import left_out
from side_by_side import Groups, turn

# The same examples on every run and every machine: a red build is a change, not bad luck.
settings.register_profile(
    "steady",
    derandomize=True,
    deadline=None,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow],
)
# For the night: new examples each time, and many of them.
settings.register_profile(
    "long",
    max_examples=5_000,
    stateful_step_count=100,
    deadline=None,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "steady"))


def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> Groups:
    return Groups(config, log)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if hasattr(config, "workerinput"):
        items.sort(key=lambda item: turn(item.nodeid))


def pytest_unconfigure(config: pytest.Config) -> None:
    """Below everything else: what was not tested is not overlooked there."""
    terminal = config.pluginmanager.get_plugin("terminalreporter")
    if isinstance(terminal, pytest.TerminalReporter):
        for line in left_out(terminal.getreports("skipped")):
            terminal.write_line(line, red=True, bold=True)


@pytest.fixture(scope="session")
def postgres() -> Iterator[Postgres]:
    """One for each process that runs tests; a test that stops it starts it again."""
    why_not = Postgres.why_not()
    if why_not is not None:
        pytest.skip(why_not)
    server = Postgres()
    try:
        server.start()
        yield server
    finally:
        server.remove()


@pytest.fixture(scope="session")
def shared_slurm() -> Iterator[House]:
    """A Muster with Slurm's commands for all tests of a process that need none of their own."""
    with house() as found:
        yield found
