"""However strange a plan is, it is judged and never raises."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muster.model.cluster import Abilities, AmountReserved, NodesReserved
from muster.model.gpu import Enforcement, Mig, MigInstance, MpsShare, TimeShare
from muster.model.job import (
    ArrayPart,
    Dependency,
    DependencyKind,
    JobRule,
    JobState,
    Together,
    Where,
)
from muster.model.placement import DeviceShare, Placement
from muster.model.plan import (
    Clear,
    Plan,
    Preempt,
    Repartition,
    Resize,
    Resume,
    Start,
    Wait,
)
from muster.model.policy import Policy, PreemptPolicy
from muster.model.queue import Ceiling, Meter, Percent, PreemptMode, Quota, Scope
from muster.model.reason import NotBefore
from muster.model.resources import Resources
from muster.model.snapshot import Snapshot
from muster.model.value import (
    HOUR,
    ClassName,
    ClusterName,
    DeviceId,
    Duration,
    Instant,
    JobId,
    NodeId,
    PoolName,
    QueuePath,
)
from muster.schedule.verify import violations
from unit.schedule.yard import NOW, Yard, asking, at, claim_on, group, start

WEB = {"app": "web"}
NEAR = (JobRule(key="app", value="web", level="rack"),)


def busy_yard() -> Snapshot:
    """A little of everything that rules look at."""
    yard = Yard()
    yard.cluster(abilities=Abilities(resize=True))
    yard.pool("main", levels=("rack",), max_time=HOUR)
    yard.node("n2", where=("r1",))
    yard.device("n1", 1, mig=(MigInstance(profile="1g.10gb", start=0),))
    yard.queue("a", quotas=(Quota(guaranteed=Percent(percent=50), lend_limit=0, limit=3_000),))
    mig = Scope(meter=Meter.MIG, profile="1g.10gb")
    yard.queue("a/b", max_jobs=2, quotas=(Quota(scope=mig, limit=1, borrow_limit=1),))
    yard.job_class("normal", preempts=(ClassName("low"),), priority=1)
    yard.job_class("low", per_user=Ceiling(gpu_milli=1), per_queue=Ceiling(jobs=1))
    yard.runs(1, at("n1"), labels=WEB, job_class=ClassName("low"), queue=QueuePath("a/b"))
    yard.runs(2, at("n2"), groups=(group(2, min_count=1),))
    yard.runs(3, at("n2", "g1"), state=JobState.SUSPENDED)
    yard.runs(4, at("n9", "g7"), state=JobState.STOPPING, queue=QueuePath("x"))
    where = Where(near=NEAR, apart=NEAR, exclusive=True, max_per_node=1)
    yard.waits(5, group(2, where=where, together=Together(level="rack")), labels=WEB)
    yard.waits(6, group(1, asking(1, TimeShare(replicas=0))), job_class=ClassName("nothing"))
    yard.waits(7, group(1, asking(1, Mig(profile="1g.10gb"))), queue=QueuePath("a/b"))
    yard.waits(8, claim=claim_on(at("n2"), at("n8"), victims=[4, 99]), time_limit=HOUR)
    after = tuple(Dependency(kind=kind, job=JobId(98)) for kind in DependencyKind)
    array = ArrayPart(array=JobId(9), index=0, at_once=1)
    yard.waits(9, after=after, array=array, deadline=NOW, queue=QueuePath("//"))
    nodes, ends_at = (NodeId("n1"), NodeId("n7")), Instant(NOW + HOUR)
    yard.reservations += [
        NodesReserved(name="r", nodes=nodes, begins_at=NOW, ends_at=ends_at),
        AmountReserved(
            name="s",
            pool=PoolName("main"),
            gpu_milli=1_000,
            for_queue=QueuePath("q"),
            begins_at=NOW,
            ends_at=ends_at,
        ),
    ]
    return yard.snapshot()


SNAPSHOT = busy_yard()

ids = st.integers(0, 11).map(JobId)
amounts = st.integers(-1, 3).map(lambda count: count * 1_000)
parts = st.one_of(
    st.none(),
    st.sampled_from(["1g.10gb", "9g.9gb"]).map(lambda profile: Mig(profile=profile)),
    st.integers(-1, 1_001).map(lambda milli: MpsShare(milli=milli)),
    st.integers(-1, 3).map(lambda replicas: TimeShare(replicas=replicas)),
)
shares = st.builds(
    DeviceShare,
    device=st.sampled_from(["g0", "g1", "g9"]).map(DeviceId),
    slice=parts,
    start=st.one_of(st.none(), st.integers(-1, 8)),
    enforced=st.sampled_from(Enforcement),
)
placements = st.builds(
    Placement,
    group=st.sampled_from(["main", "other", ""]),
    index=st.integers(-1, 3),
    node=st.sampled_from(["n1", "n2", "n9", ""]).map(NodeId),
    pool=st.sampled_from(["main", "none"]).map(PoolName),
    amount=st.builds(Resources, cpu_milli=amounts, memory_mib=amounts, gpu_milli=amounts),
    devices=st.lists(shares, max_size=3).map(tuple),
)
placed = st.lists(placements, max_size=3).map(tuple)
clusters = st.sampled_from(["c", "d"]).map(ClusterName)
attempts = st.integers(-1, 3)
instants = st.just(NOW)

moves = st.one_of(
    st.builds(Start, job=ids, attempt=attempts, cluster=clusters, placements=placed),
    st.builds(Resume, job=ids, attempt=attempts),
    st.builds(
        Clear,
        job=ids,
        cluster=clusters,
        placements=placed,
        victims=st.lists(ids, max_size=4).map(tuple),
        until=instants,
    ),
)
waits = st.builds(Wait, job=ids, why=st.builds(NotBefore, at=instants))
instances = st.builds(
    MigInstance, profile=st.sampled_from(["1g.10gb", "x"]), start=st.integers(-1, 8)
)
measures = st.one_of(
    st.builds(
        Preempt,
        job=ids,
        attempt=attempts,
        for_job=ids,
        mode=st.sampled_from(PreemptMode),
        grace=st.just(Duration(0)),
        lost_gpu_ms=st.just(0),
    ),
    st.builds(Resize, job=ids, attempt=attempts, placements=placed),
    st.builds(
        Repartition,
        node=st.sampled_from(["n1", "n2", "n9"]).map(NodeId),
        device=st.sampled_from(["g0", "g1", "g9"]).map(DeviceId),
        instances=st.one_of(st.none(), st.lists(instances, max_size=3).map(tuple)),
        for_job=ids,
    ),
)
plans = st.builds(
    Plan,
    snapshot_version=st.integers(6, 8),
    policy=st.sampled_from(
        [
            Policy(),
            Policy(repartition=False, grow=False, default_time=HOUR),
            Policy(preempt=PreemptPolicy(by_class=False, reclaim=False, min_run=HOUR)),
        ]
    ),
    moves=st.lists(moves, max_size=6).map(tuple),
    waits=st.dictionaries(ids, waits, max_size=6),
    measures=st.lists(measures, max_size=4).map(tuple),
)


@given(plans)
def test_a_strange_plan_is_judged(plan: Plan) -> None:
    first, second = violations(SNAPSHOT, plan), violations(SNAPSHOT, plan)

    assert first, "somebody always waits without a decision, or is given something strange"
    assert first == second
    assert all(each.rule and each.subject and each.text.endswith(".") for each in first)


@pytest.mark.parametrize(
    ("job", "placement", "rule"),
    [
        (99, at("n1"), "one decision"),
        (7, at("n404"), "node"),
        (7, at("n1", "g404"), "devices"),
        (7, at("n1", group="404"), "whole"),
        (7, at("n1", pool=PoolName("404")), "pool"),
        (6, at("n1"), "class"),
        (6, at("n1"), "amount"),
        (9, at("n1"), "queue"),
    ],
)
def test_what_nobody_knows_is_reported(job: int, placement: Placement, rule: str) -> None:
    plan = Plan(snapshot_version=7, policy=Policy(), moves=(start(job, placement),))

    found = {each.rule for each in violations(SNAPSHOT, plan) if each.subject == f"job {job}"}

    assert rule in found


def test_nothing_is_wrong_with_nothing() -> None:
    plan = Plan(snapshot_version=0, policy=Policy())

    assert violations(Snapshot(now=NOW), plan) == []
