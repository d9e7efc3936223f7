from collections.abc import Iterator

import pytest

from containers.images import Podman, own_podman


@pytest.fixture(scope="session")
def podman() -> Iterator[Podman]:
    with own_podman() as found:
        yield found
