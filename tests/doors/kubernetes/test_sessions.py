"""Sessions that a real Kubernetes 1.36 answered, typed again: kubectl must see the same."""

from collections.abc import Iterator

import pytest

from containers.images import MODEST, own_podman
from doors.kubernetes.cluster import KubernetesHouse, kubernetes_house
from doors.kubernetes.sessions import SESSIONS, played, read

pytestmark = pytest.mark.slow

NODES = "- {nodes: 2, names: [real1, real2], cpus: 2, memory_gib: 24, gpus: 8xH200-141GB}\n"
"""As in the cluster that answered."""


@pytest.fixture(scope="module")
def real_house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KubernetesHouse]:
    """One for all sessions: each tidies up, and those that change nodes change them back."""
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


@pytest.mark.parametrize("name", sorted(each.stem for each in SESSIONS.glob("*.txt")))
def test_kubectl_sees_what_it_sees_of_kubernetes(real_house: KubernetesHouse, name: str) -> None:
    answers = played(read(SESSIONS / f"{name}.txt"), real_house)

    assert {each.case.line: each.report for each in answers if each.is_surprising} == {}
