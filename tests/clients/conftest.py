import re
from collections.abc import Iterator

import pytest

from clients.desk import HERE, Desk, environment
from doors.slurm.house import House


@pytest.fixture(scope="module")
def slurm(shared_slurm: House) -> Iterator[House]:
    yield shared_slurm
    shared_slurm.tidies_up()


@pytest.fixture
def desk(slurm: House, request: pytest.FixtureRequest) -> Desk:
    return desk_of("clients", slurm, request)


@pytest.fixture
def lightning(slurm: House, request: pytest.FixtureRequest) -> Desk:
    return desk_of("lightning", slurm, request)


@pytest.fixture
def jobstats(slurm: House, request: pytest.FixtureRequest) -> Desk:
    return desk_of("jobstats", slurm, request)


def desk_of(name: str, slurm: House, request: pytest.FixtureRequest) -> Desk:
    """With a folder of its own, so that tests do not find each other's files."""
    found = environment(HERE, name)
    folder = slurm.work / re.sub(r"\W+", "-", request.node.name)
    folder.mkdir()
    return Desk(slurm=slurm, environment=found, folder=folder)
