from collections.abc import Iterator

import pytest

from doors.slurm.house import House


@pytest.fixture(scope="module")
def slurm(shared_slurm: House) -> Iterator[House]:
    """Nothing runs there; but ids go on, and there are jobs that are over."""
    yield shared_slurm
    shared_slurm.tidies_up()
