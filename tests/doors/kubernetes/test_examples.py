"""The manifests of examples/kubernetes, applied with kubectl to a real Muster."""

import json
from pathlib import Path

from doors.kubernetes.cluster import KubernetesHouse

EXAMPLES = Path(__file__).parents[3] / "examples" / "kubernetes"


def test_teams_get_no_more_gpus_than_their_quotas(house: KubernetesHouse) -> None:
    house.kubectl(f"apply -f {EXAMPLES / 'team-quotas.yaml'}")

    for team, most in (("team-a", 8), ("team-b", 4), ("team-c", 2)):
        refused = house.refused(f"create -n {team} -f -", stdin=a_pod(most + 1))
        house.kubectl(f"create -n {team} -f -", stdin=a_pod(most))
        full = house.refused(f"create -n {team} -f -", stdin=a_pod(1, name="another"))

        assert "exceeded quota: gpus" in refused
        assert f"requested: requests.nvidia.com/gpu={most + 1}" in refused
        assert f"used: requests.nvidia.com/gpu={most}, limited:" in full


def test_a_team_is_limited_to_five_gpus(house: KubernetesHouse) -> None:
    house.kubectl(f"apply -f {EXAMPLES / 'gpu-limit.yaml'}")

    house.kubectl("create -n team-x -f -", stdin=a_pod(4, name="four"))
    refused = house.refused("create -n team-x -f -", stdin=a_pod(2, name="two"))
    house.kubectl("create -n team-x -f -", stdin=a_pod(1, name="one"))

    assert "used: requests.nvidia.com/gpu=4, limited: requests.nvidia.com/gpu=5" in refused
    told = house.kubectl("describe quota gpus -n team-x").split()
    assert told[-3:] == ["requests.nvidia.com/gpu", "5", "5"]


def a_pod(gpus: int, name: str = "train") -> str:
    limits = {"resources": {"limits": {"nvidia.com/gpu": str(gpus)}}}
    container = {"name": "main", "image": "busybox:1.36", "command": ["sleep", "60"], **limits}
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name},
        # Held back, so that this test needs no containers.
        "spec": {"schedulingGates": [{"name": "example.org/later"}], "containers": [container]},
    }
    return json.dumps(pod)
