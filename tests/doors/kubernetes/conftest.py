from collections.abc import Iterator

import pytest

from doors.kubernetes.cluster import KubernetesHouse, kubernetes_house


@pytest.fixture(scope="module")
def house() -> Iterator[KubernetesHouse]:
    """One for all tests of a file; each makes a namespace of its own."""
    with kubernetes_house() as found:
        yield found
