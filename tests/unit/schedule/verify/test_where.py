"""Nodes that tasks want, neighbours that they do not want, and standing together."""

import pytest

from muster.model.cluster import Abilities, Taint
from muster.model.job import JobRule, JobState, LabelRule, Operator, Together, Toleration, Where
from muster.model.queue import PreemptMode
from muster.model.value import ClusterName, NodeId, PoolName
from unit.schedule.yard import Yard, at, claim_on, clear, group, preempt, resize, resume, start

WEB = {"app": "web"}


def rule(level: str = "node") -> tuple[JobRule, ...]:
    return (JobRule(key="app", value="web", level=level),)


def racks(yard: Yard) -> None:
    """Nodes n1 and n2 are in rack r1, n3 and n4 in rack r2."""
    yard.pool("main", levels=("zone", "rack"))
    for number in range(1, 5):
        yard.node(f"n{number}", where=("z", f"r{(number + 1) // 2}"))


@pytest.mark.parametrize(
    "require",
    [
        LabelRule(key="disk", values=("ssd",)),
        LabelRule(key="disk", operator=Operator.NOT_IN, values=("hdd",)),
        LabelRule(key="fast", operator=Operator.EXISTS),
        LabelRule(key="slow", operator=Operator.ABSENT),
    ],
)
def test_required_labels_hold(require: LabelRule) -> None:
    yard = Yard()
    yard.node("n1", labels={"disk": "ssd", "fast": ""})
    yard.node("n2", labels={"disk": "hdd", "slow": ""})
    yard.waits(1, group(where=Where(require=(require,))))

    assert yard.judge(start(1, at("n1"))) == []
    assert yard.judge(start(1, at("n2"))) == ["labels"]


def test_node_lists_are_kept_to() -> None:
    yard = Yard()
    yard.waits(1, group(where=Where(nodes=(NodeId("n1"),))))
    yard.waits(2, group(where=Where(not_nodes=(NodeId("n2"),))))

    assert yard.judge(start(1, at("n1")), start(2, at("n1", "g1"))) == []
    assert yard.judge(start(1, at("n2"))) == ["labels"]
    assert yard.judge(start(2, at("n2"))) == ["labels"]


@pytest.mark.parametrize(
    "tolerate",
    [
        Toleration(),
        Toleration(key="gpu"),
        Toleration(value="mine"),
        Toleration(key="gpu", value="mine"),
    ],
)
def test_taints_keep_off_all_that_do_not_tolerate_them(tolerate: Toleration) -> None:
    yard = Yard()
    yard.node("n1", taints=(Taint(key="gpu", value="mine"),))
    yard.waits(1)
    yard.waits(2, group(where=Where(tolerate=(Toleration(key="gpu", value="yours"),))))
    yard.waits(3, group(where=Where(tolerate=(tolerate,))))

    assert yard.judge(start(1, at("n1"))) == ["taints"]
    assert yard.judge(start(2, at("n1"))) == ["taints"]
    assert yard.judge(start(3, at("n1"))) == []


def test_a_group_does_not_crowd_a_node() -> None:
    yard = Yard()
    yard.waits(1, group(2, where=Where(max_per_node=1)))

    assert yard.judge(start(1, at("n1"), at("n2"))) == []
    assert yard.judge(start(1, at("n1"), at("n1", "g1"))) == ["per node"]


def test_a_group_that_grows_counts_the_tasks_it_has() -> None:
    yard = Yard()
    yard.cluster(abilities=Abilities(resize=True))
    elastic = group(2, min_count=1, where=Where(max_per_node=1))
    yard.runs(1, at("n1"), groups=(elastic,))

    assert yard.judge(resize(1, at("n2", index=1))) == []
    assert yard.judge(resize(1, at("n1", "g1", index=1))) == ["per node"]


def test_a_job_keeps_apart_from_those_that_run() -> None:
    yard = Yard()
    racks(yard)
    yard.runs(1, at("n1"), labels=WEB)
    yard.waits(2, group(where=Where(apart=rule())))
    yard.waits(3, group(where=Where(apart=rule("rack"))))

    assert yard.judge(start(2, at("n2")), start(3, at("n3"))) == []
    assert yard.judge(start(2, at("n1", "g1"))) == ["apart"]
    assert yard.judge(start(3, at("n2"))) == ["apart"]


def test_keeping_apart_goes_both_ways() -> None:
    yard = Yard()
    yard.runs(1, at("n1"), groups=(group(where=Where(apart=rule())),))
    yard.waits(2, labels=WEB)

    assert yard.judge(start(2, at("n2"))) == []
    assert yard.judge(start(2, at("n1", "g1"))) == ["apart"]


def test_jobs_of_one_plan_keep_apart_but_tasks_of_one_job_need_not() -> None:
    yard = Yard()
    for job in (1, 2):
        yard.waits(job, group(2, where=Where(apart=rule())), labels=WEB)

    one = start(1, at("n1"), at("n1", "g1"))
    assert yard.judge(one, start(2, at("n2"), at("n2", "g1"))) == []

    yard.waits(3, labels=WEB)
    yard.node("n1", gpus=3)
    assert yard.judge(one, start(3, at("n1", "g2"))) == ["apart"]


def test_claims_are_neighbours_and_suspended_jobs_are_not() -> None:
    yard = Yard()
    yard.waits(1, labels=WEB, claim=claim_on(at("n1"), victims=[9]))
    yard.runs(2, at("n2"), labels=WEB, state=JobState.SUSPENDED)
    yard.waits(3, group(where=Where(apart=rule())))

    assert yard.judge(start(3, at("n1", "g1"))) == ["apart"]
    assert yard.judge(start(3, at("n2"))) == []
    assert yard.judge(start(3, at("n2", "g1")), resume(2)) == ["apart"]


def test_a_claim_may_take_the_place_of_the_neighbour_it_cannot_stand() -> None:
    yard = Yard()
    yard.job_class("normal", preempts=("low",), priority=2)
    yard.job_class("low", preempt_mode=PreemptMode.CANCEL)
    yard.runs(1, at("n1"), labels=WEB, job_class="low")
    yard.waits(2, group(where=Where(apart=rule())))

    cleared = clear(2, at("n1"), victims=[1])

    assert yard.judge(cleared, preempt(1, 2, mode=PreemptMode.CANCEL)) == []


def test_a_job_goes_near_the_others_of_its_kind() -> None:
    yard = Yard()
    racks(yard)
    yard.runs(1, at("n1"), labels=WEB)
    yard.waits(2, group(where=Where(near=rule("rack"))))

    assert yard.judge(start(2, at("n2"))) == []
    assert yard.judge(start(2, at("n3"))) == ["near"]


def test_the_first_of_its_kind_goes_anywhere_and_the_next_goes_near_it() -> None:
    yard = Yard()
    for job in (1, 2):
        yard.waits(job, group(where=Where(near=rule())), labels=WEB)
    yard.waits(3, group(where=Where(near=rule())))

    assert yard.judge(start(1, at("n1"))) == []
    assert yard.judge(start(1, at("n1")), start(2, at("n1", "g1"))) == []
    assert yard.judge(start(1, at("n1")), start(2, at("n2"))) == ["near"]
    assert yard.judge(start(3, at("n1"))) == ["near"]


def test_a_group_stands_together_where_it_must() -> None:
    yard = Yard()
    racks(yard)
    yard.waits(1, group(2, together=Together(level="rack")))
    yard.waits(2, group(2, together=Together(level="rack", required=False)))

    assert yard.judge(start(1, at("n1"), at("n2"))) == []
    assert yard.judge(start(1, at("n2"), at("n3"))) == ["together"]
    assert yard.judge(start(2, at("n2"), at("n3"))) == []


def test_only_one_node_is_together_at_a_level_that_the_pool_does_not_have() -> None:
    yard = Yard()
    yard.waits(1, group(2, together=Together(level="rack")))
    yard.waits(2, group(2, together=Together(level="node")))

    assert yard.judge(start(1, at("n1"), at("n1", "g1"))) == []
    assert yard.judge(start(1, at("n1"), at("n2"))) == ["together"]
    assert yard.judge(start(2, at("n1"), at("n1", "g1"))) == []
    assert yard.judge(start(2, at("n1"), at("n2"))) == ["together"]


def test_the_same_names_in_another_cluster_are_another_place() -> None:
    yard = Yard()
    racks(yard)
    yard.cluster("d")
    yard.pool("far", cluster=ClusterName("d"), levels=("zone", "rack"))
    far = ClusterName("d"), PoolName("far")
    yard.node("m1", cluster=far[0], pool=far[1], where=("z", "r1"))
    yard.runs(1, at("n1"), labels=WEB)
    yard.waits(2, group(where=Where(apart=rule("rack"))))

    assert yard.judge(start(2, at("m1", pool=far[1]), cluster=far[0])) == []
