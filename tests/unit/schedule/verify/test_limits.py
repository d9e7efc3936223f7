"""Quotas, how many jobs, ceilings of classes, and time limits."""

from typing import Any

from muster.model.cluster import Abilities, NodeState
from muster.model.gpu import Mig, MigInstance
from muster.model.job import JobState
from muster.model.policy import Policy
from muster.model.queue import Amount, Ceiling, Meter, Percent, Quota, Scope
from muster.model.value import HOUR, Duration, GpuModel, PoolName, QueuePath, UserName
from unit.schedule.yard import (
    Yard,
    asking,
    at,
    claim_on,
    clear,
    group,
    preempt,
    resize,
    resume,
    start,
)

CPU, MEMORY = Scope(meter=Meter.CPU), Scope(meter=Meter.MEMORY)


def line(scope: Scope | None = None, **fields: Any) -> tuple[Quota, ...]:
    return (Quota(scope=scope or Scope(), **fields),)


def half(*, of: str) -> Amount:
    return Percent(percent=50) if of == "percent" else 2_000


def test_a_queue_stays_within_its_limit() -> None:
    for of in ("percent", "number"):
        yard = Yard()
        yard.queue("a", quotas=line(limit=half(of=of)))
        yard.runs(1, at("n1"))
        yard.waits(2)
        yard.waits(3)

        assert yard.judge(start(2, at("n1", "g1"))) == []
        assert yard.judge(start(2, at("n1", "g1")), start(3, at("n2"))) == ["limit"]


def test_so_do_its_ancestors() -> None:
    yard = Yard()
    yard.queue("a", quotas=line(limit=1_000))
    yard.queue("a/b")
    yard.queue("a/c")
    yard.runs(1, at("n1"), queue=QueuePath("a/b"))
    yard.waits(2, queue=QueuePath("a/c"))

    assert yard.judge(start(2, at("n2"))) == ["limit"]


def test_a_queue_whose_limit_shrank_may_start_what_the_line_does_not_count() -> None:
    yard = Yard()
    yard.queue("a", quotas=line(limit=0))
    yard.runs(1, at("n1"))
    yard.waits(2, group(1, asking(0)))

    assert yard.judge(start(2, at("n1", ""))) == []


def test_a_line_counts_only_its_scope() -> None:
    yard = Yard()
    yard.pool("other")
    yard.node("n2", pool=PoolName("other"), model="A100-80GB")
    yard.waits(1)
    placed = start(1, at("n2", pool=PoolName("other")))
    for scope, broken in (
        (Scope(pool=PoolName("main")), []),
        (Scope(pool=PoolName("other")), ["limit"]),
        (Scope(model=GpuModel("H100-80GB")), []),
        (Scope(model=GpuModel("A100-80GB")), ["limit"]),
        (CPU, ["limit"]),
        (MEMORY, ["limit"]),
        (Scope(meter=Meter.MIG, profile="1g.10gb"), []),
    ):
        yard.queue("a", quotas=line(scope, limit=0))
        assert yard.judge(placed) == broken


def test_mig_instances_are_counted_by_profile() -> None:
    yard = Yard()
    small = Mig(profile="1g.10gb")
    yard.device("n1", 0, mig=tuple(MigInstance(profile="1g.10gb", start=at) for at in (0, 1)))
    yard.queue("a", quotas=line(Scope(meter=Meter.MIG, profile="1g.10gb"), limit=1))
    yard.waits(1, group(1, asking(1, small)))
    yard.waits(2, group(1, asking(1, small)))

    one = start(1, at("n1", "g0", small, starts=[0]))
    assert yard.judge(one) == []
    assert yard.judge(one, start(2, at("n1", "g0", small, starts=[1]))) == ["limit"]


def test_a_queue_borrows_no_more_than_it_may() -> None:
    yard = Yard()
    yard.queue("a", quotas=line(guaranteed=1_000, borrow_limit=1_000))
    yard.runs(1, at("n1"))
    yard.waits(2)
    yard.waits(3)

    assert yard.judge(start(2, at("n1", "g1"))) == []
    assert yard.judge(start(2, at("n1", "g1")), start(3, at("n2"))) == ["borrow"]


def test_claims_count_towards_limits_and_victims_do_not_count_twice() -> None:
    yard = Yard()
    yard.queue("a", quotas=line(limit=1_000))
    yard.job_class("normal", preempts=("low",), priority=1)
    yard.job_class("low")
    yard.runs(1, at("n1"), job_class="low")
    yard.waits(2)

    assert yard.judge(clear(2, at("n1"), victims=[1]), preempt(1, 2)) == []

    yard = Yard()
    yard.queue("a", quotas=line(limit=1_000))
    yard.waits(1, claim=claim_on(at("n1"), victims=[9]))
    yard.waits(2)
    assert yard.judge(start(2, at("n2"))) == ["limit"]


def test_a_suspended_job_counts_with_its_memory_until_it_is_resumed() -> None:
    yard = Yard()
    yard.queue("a", quotas=(*line(limit=1_000), *line(MEMORY, limit=2_048)))
    yard.runs(1, at("n1"), state=JobState.SUSPENDED)
    yard.waits(2)
    yard.waits(3, group(1, asking(0)))

    assert yard.judge(start(2, at("n2"))) == []
    assert yard.judge(start(2, at("n2")), resume(1)) == ["limit"]
    assert yard.judge(start(2, at("n2")), start(3, at("n2", ""))) == ["limit"]


def test_what_a_queue_does_not_lend_is_left_to_it() -> None:
    yard = Yard()
    yard.queue("b", quotas=line(guaranteed=2_000, lend_limit=1_000))
    for job in (1, 2, 3, 4):
        yard.waits(job, queue=QueuePath("b" if job == 4 else "a"))
    three = [start(1, at("n1")), start(2, at("n1", "g1")), start(3, at("n2"))]
    fourth = at("n2", "g1")

    assert yard.judge(*three) == []
    assert yard.judge(*three, start(4, fourth)) == []

    yard.waits(4)
    assert yard.judge(*three, start(4, fourth)) == ["kept"]


def test_a_subtree_keeps_the_larger_of_its_own_part_and_that_of_its_children() -> None:
    yard = Yard()
    yard.queue("b", quotas=line(guaranteed=1_000, lend_limit=0))
    yard.queue("b/x", quotas=line(guaranteed=1_000, lend_limit=0))
    yard.queue("b/y", quotas=line(guaranteed=1_000, lend_limit=0))
    for job in (1, 2, 3):
        yard.waits(job)
    two = [start(1, at("n1")), start(2, at("n1", "g1"))]

    assert yard.judge(*two) == []
    assert yard.judge(*two, start(3, at("n2"))) == ["kept"]


def test_a_node_that_is_down_gives_nobody_anything_to_keep_or_use() -> None:
    yard = Yard()
    yard.queue("b", quotas=line(guaranteed=Percent(percent=50), lend_limit=0))
    yard.node("n2", state=NodeState.DOWN)
    yard.waits(1)
    yard.waits(2)

    assert yard.judge(start(1, at("n1"))) == []
    assert yard.judge(start(1, at("n1")), start(2, at("n1", "g1"))) == ["kept"]


def test_a_queue_runs_at_most_so_many_jobs() -> None:
    yard = Yard()
    yard.queue("a", max_jobs=2)
    yard.queue("a/b")
    yard.runs(1, at("n1"), queue=QueuePath("a/b"))
    yard.waits(2)
    yard.waits(3, queue=QueuePath("a/b"))
    yard.runs(4, at("n2", "g1"), state=JobState.SUSPENDED)

    assert yard.judge(start(2, at("n1", "g1"))) == []
    assert yard.judge(start(2, at("n1", "g1")), start(3, at("n2"))) == ["max jobs"]
    assert yard.judge(start(2, at("n1", "g1")), resume(4)) == ["max jobs"]


def test_a_job_that_grows_is_no_other_job() -> None:
    yard = Yard()
    yard.cluster(abilities=Abilities(resize=True))
    yard.queue("a", max_jobs=0)
    yard.runs(1, at("n1"), groups=(group(2, min_count=1),))

    assert yard.judge(resize(1, at("n2", index=1))) == []

    yard.queue("a", quotas=line(limit=1_000))
    assert yard.judge(resize(1, at("n2", index=1))) == ["limit"]


def test_a_class_bounds_what_one_user_holds() -> None:
    for ceiling in (
        Ceiling(gpu_milli=2_000),
        Ceiling(cpu_milli=2_000),
        Ceiling(memory_mib=2_048),
        Ceiling(jobs=2),
    ):
        yard = Yard()
        yard.queue("b")
        yard.job_class("normal", per_user=ceiling)
        yard.runs(1, at("n1"), queue=QueuePath("b"))
        yard.waits(2)
        yard.waits(3)
        yard.waits(4, user=UserName("bob"))

        assert yard.judge(start(2, at("n1", "g1")), start(4, at("n2"))) == []
        assert yard.judge(start(2, at("n1", "g1")), start(3, at("n2"))) == ["class limit"]


def test_a_class_bounds_what_one_queue_itself_holds() -> None:
    yard = Yard()
    yard.queue("a/b")
    yard.job_class("normal", per_queue=Ceiling(jobs=1))
    yard.runs(1, at("n1"), queue=QueuePath("a/b"))
    yard.waits(2)
    yard.waits(3, user=UserName("bob"))

    assert yard.judge(start(2, at("n1", "g1"))) == []
    assert yard.judge(start(2, at("n1", "g1")), start(3, at("n2"))) == ["class limit"]


def test_a_suspended_job_counts_for_its_class_with_its_memory_alone() -> None:
    yard = Yard()
    yard.runs(1, at("n1"), state=JobState.SUSPENDED)
    yard.waits(2)
    for ceiling, broken in (
        (Ceiling(gpu_milli=1_000, cpu_milli=1_000, jobs=1), []),
        (Ceiling(memory_mib=1_024), ["class limit"]),
    ):
        yard.job_class("normal", per_user=ceiling)
        assert yard.judge(start(2, at("n2"))) == broken


def test_a_time_limit_is_what_class_and_pool_allow() -> None:
    yard = Yard()
    yard.waits(1, time_limit=Duration(2 * HOUR))
    yard.waits(2, time_limit=HOUR)
    yard.waits(3)

    yard.pool("main", max_time=HOUR)
    verdicts = [yard.judge(start(job, at("n1"))) for job in (1, 2, 3)]
    assert verdicts == [["time limit"], [], ["time limit"]]

    yard.pool("main")
    yard.job_class("normal", max_time=HOUR)
    verdicts = [yard.judge(start(job, at("n1"))) for job in (1, 2, 3)]
    assert verdicts == [["time limit"], [], ["time limit"]]


def test_the_pools_default_comes_before_the_policys() -> None:
    yard = Yard()
    yard.policy = Policy(default_time=Duration(2 * HOUR))
    yard.waits(1)

    yard.pool("main", max_time=HOUR)
    assert yard.judge(start(1, at("n1"))) == ["time limit"]

    yard.pool("main", max_time=HOUR, default_time=HOUR)
    assert yard.judge(start(1, at("n1"))) == []
