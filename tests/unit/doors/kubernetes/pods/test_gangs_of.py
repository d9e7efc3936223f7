import pytest

from muster.doors.kubernetes.objects.value import JsonObject
from muster.doors.kubernetes.pods.gang_marks import Gang, gang_of, waits_for
from muster.doors.kubernetes.pods.gangs_of import DifferError, Member, gang_job, in_order
from muster.doors.kubernetes.pods.job_of import job_of
from muster.model.job import TaskGroup
from unit.doors.kubernetes.pods.worlds import WORLD


def a_pod(name: str, *, gpus: int = 1, **meta: dict[str, str]) -> JsonObject:
    limits = {"nvidia.com/gpu": str(gpus)}
    main = {"name": "a", "image": "one", "resources": {"limits": limits, "requests": limits}}
    about = {"name": name, "namespace": "team", "uid": f"uid-{name}", **meta}
    return {"metadata": about, "spec": {"containers": [main], "restartPolicy": "Never"}}


def no_group(_group: str, _namespace: str, _name: str) -> JsonObject | None:
    return None


def members(*pods: JsonObject) -> list[Member]:
    return [Member(pod=each, wanted=job_of(each, WORLD)) for each in pods]


def group(spec: JsonObject) -> JsonObject:
    return {"metadata": {"name": "g", "namespace": "team"}, "spec": spec}


MARKED = {
    "ours": (
        a_pod("a", annotations={"muster.io/gang": "g", "muster.io/gang-size": "3"}),
        None,
    ),
    "kueue": (
        a_pod(
            "a",
            labels={"kueue.x-k8s.io/pod-group-name": "g"},
            annotations={"kueue.x-k8s.io/pod-group-total-count": "3"},
        ),
        None,
    ),
    "coscheduling": (a_pod("a", labels={"scheduling.x-k8s.io/pod-group": "g"}), {"minMember": 3}),
    "volcano": (a_pod("a", annotations={"scheduling.k8s.io/group-name": "g"}), {"minMember": 3}),
    "kai": (a_pod("a", annotations={"pod-group-name": "g"}), {"minMember": 3}),
    "native": (
        {**a_pod("a"), "spec": {"schedulingGroup": {"podGroupName": "g"}}},
        {"schedulingPolicy": {"gang": {"minCount": 3}}},
    ),
}


@pytest.mark.parametrize("mark", MARKED)
def test_every_scheduler_has_a_mark_for_gangs(mark: str) -> None:
    pod, spec = MARKED[mark]

    def find(_group: str, _namespace: str, _name: str) -> JsonObject | None:
        return None if spec is None else group(spec)

    found = gang_of(pod, find)

    assert found is not None
    assert found.least == 3
    assert found.name.rpartition("/")[2] == "g"


def test_a_pod_without_a_mark_starts_alone() -> None:
    assert gang_of(a_pod("a"), no_group) is None


def test_a_gang_whose_group_is_not_there_says_what_is_missing() -> None:
    pod = a_pod("a", labels={"scheduling.x-k8s.io/pod-group": "g"})

    found = gang_of(pod, no_group)

    assert found is not None
    assert waits_for(found, 1) == (
        'gang g cannot start: PodGroup "g" of scheduling.x-k8s.io not found'
    )
    waiting = Gang(namespace="team", name="kueue/g", least=3)
    assert waits_for(waiting, 1) == "gang g waits for 2 more of 3 pods; they start together"


def test_pods_that_ask_for_the_same_are_one_group_of_one_job() -> None:
    wanted = gang_job("g", members(a_pod("m", gpus=2), a_pod("w-0"), a_pod("w-1")))

    spec = wanted.spec
    assert [(each.count, each.each.gpus and each.each.gpus.count) for each in spec.groups] == [
        (1, 2),
        (2, 1),
    ]
    assert spec.launch.gang is not None
    assert [each.name for each in spec.launch.gang.pods] == ["m", "w-0", "w-1"]
    assert spec.launch.gang.leader is None
    assert ("w-1", "127.0.0.1") in spec.launch.gang.pods[0].aliases


def test_ranks_follow_the_groups_and_the_leader_is_found_among_them() -> None:
    pods = [a_pod("a", gpus=1), a_pod("b", gpus=2), a_pod("c", gpus=1)]
    pods[1]["metadata"]["annotations"] = {"muster.io/gang-leader": "true"}

    gang = gang_job("g", members(*pods)).spec.launch.gang

    assert gang is not None
    assert [each.name for each in gang.pods] == ["a", "c", "b"]
    assert gang.leader == 2


def test_pods_are_counted_as_people_count() -> None:
    names = [f"w-{number}" for number in (10, 9, 2)]

    ordered = in_order([a_pod(name) for name in names])

    assert [each["metadata"]["name"] for each in ordered] == ["w-2", "w-9", "w-10"]


def test_pods_of_several_queues_cannot_be_one_job() -> None:
    other = a_pod("b", labels={"kueue.x-k8s.io/queue-name": "lq"})

    with pytest.raises(DifferError, match="differ in their queue: team, team/lq"):
        gang_job("g", members(a_pod("a"), other))


def test_pods_that_keep_apart_from_each_other_are_spread_within_the_job() -> None:
    term = {"labelSelector": {"matchLabels": {"app": "x"}}, "topologyKey": "kubernetes.io/hostname"}
    apart = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    pods = [a_pod(name, labels={"app": "x"}) for name in ("a", "b")]
    for each in pods:
        each["spec"]["affinity"] = apart

    (found,) = gang_job("g", members(*pods)).spec.groups

    assert found.where.max_per_node == 1
    assert not found.where.apart
    assert TaskGroup(count=found.count).count == 2
