from collections.abc import Iterator

import pytest

from containers.images import MODEST, own_podman
from doors.kubernetes.cluster import KubernetesHouse, kubernetes_house

NODES = "- {nodes: 2, names: [real1, real2], cpus: 2, memory_gib: 24, gpus: 8xH200-141GB}\n"
"""As in the cluster whose answers were recorded."""


@pytest.fixture(scope="module")
def house() -> Iterator[KubernetesHouse]:
    """One for all tests of a file; each makes a namespace of its own."""
    with kubernetes_house() as found:
        yield found


@pytest.fixture(scope="module")
def real_house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KubernetesHouse]:
    """With containers, and the nodes of the cluster whose answers were recorded.

    One for all sessions: each tidies up, and those that change nodes change them back.
    """
    nodes = tmp_path_factory.mktemp("nodes") / "nodes.yaml"
    nodes.write_text(NODES, encoding="utf-8")
    with own_podman() as podman:
        podman.has_busybox("docker.io/library/busybox:1.36", "docker.io/library/busybox:1.37")
        options = f"{' '.join(podman.folders)} {MODEST}"
        with kubernetes_house(pretend=f"--pretend {nodes}", podman=options) as found:
            found.kubectl("config rename-context muster lab")
            # Sessions change nodes from their first line on.
            seen = found.shell("until kubectl get node real1 real2 -o name; do :; done")
            assert seen.code == 0, seen.err
            yield found
