from collections.abc import Iterator

import pytest

from doors.slurm.house import House, house


@pytest.fixture(scope="module")
def slurm() -> Iterator[House]:
    with house() as found:
        yield found
