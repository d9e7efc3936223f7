import re
from collections.abc import Iterator

import pytest

from clients.desk import environment
from containers.images import IMAGE, MODEST, own_podman
from doors.kubernetes.cluster import KubernetesHouse, kubernetes_house
from kubernetes_clients.desk import HERE, Desk


@pytest.fixture(scope="session")
def house() -> Iterator[KubernetesHouse]:
    """One Muster for the tests of all clients; each of them works in a namespace of its own."""
    with own_podman() as podman:
        podman.asks("tag", IMAGE, "docker.io/library/busybox:1.36")
        options = f"{' '.join(podman.folders)} {MODEST}"
        with kubernetes_house(podman=options) as found:
            yield found


@pytest.fixture
def desk(house: KubernetesHouse, request: pytest.FixtureRequest) -> Desk:
    return desk_of("libraries", house, request)


@pytest.fixture
def airflow(house: KubernetesHouse, request: pytest.FixtureRequest) -> Desk:
    return desk_of("airflow", house, request)


def desk_of(name: str, house: KubernetesHouse, request: pytest.FixtureRequest) -> Desk:
    """With a folder and a namespace of its own, so that tests do not find each other's things."""
    found = environment(HERE, name)
    place = re.sub(r"\W+|_+", "-", request.node.name.removeprefix("test_"))[:60].strip("-")
    folder = house.work / place
    folder.mkdir()
    house.has_namespace(place)
    return Desk(house=house, environment=found, folder=folder, place=place)
