"""Victims, and the right to have them."""

import pytest

from muster.model.cluster import Abilities
from muster.model.gpu import Mig, MigInstance
from muster.model.job import JobState
from muster.model.plan import Clear
from muster.model.policy import Policy, PreemptPolicy
from muster.model.queue import PreemptMode, Quota
from muster.model.value import HOUR, ClassName, Duration, Instant, JobId, QueuePath, replace
from unit.schedule.yard import NOW, Yard, asking, at, claim_on, clear, group, preempt, start

LOW, HIGH = ClassName("low"), ClassName("high")


def ranks() -> Yard:
    """A yard where `high` may preempt `low`, and a `low` job 1 runs on n1."""
    yard = Yard()
    yard.job_class("low", priority=1)
    yard.job_class("high", priority=2, preempts=(LOW,))
    yard.runs(1, at("n1"), job_class=LOW)
    yard.waits(2, job_class=HIGH)
    return yard


def cleared(job: int = 2, victims: tuple[int, ...] = (1,)) -> Clear:
    return clear(job, at("n1"), victims=victims)


def test_a_higher_class_clears_a_lower_one_away() -> None:
    assert ranks().judge(cleared(), preempt(1, 2)) == []


def test_every_victim_is_stopped_and_no_other_job() -> None:
    yard = ranks()
    yard.runs(3, at("n1", "g1"), job_class=LOW)

    assert yard.judge(cleared()) == ["preempt"]
    assert yard.judge(cleared(), preempt(1, 2), preempt(3, 2)) == ["preempt"]
    assert yard.judge(cleared(), preempt(1, 2), preempt(1, 2)) == ["preempt"]
    assert yard.judge(preempt(1, 2)) == ["preempt"]


def test_a_victim_gives_room_on_a_node_that_is_cleared() -> None:
    yard = ranks()
    yard.runs(3, at("n2"), job_class=LOW)

    found = yard.judge(cleared(victims=(1, 3)), preempt(1, 2), preempt(3, 2))

    assert found == ["victim"]


def test_a_victim_must_be_running_or_starting() -> None:
    yard = ranks()
    yard.jobs[JobId(1)] = replace(yard.jobs[JobId(1)], state=JobState.STOPPING)

    assert yard.judge(cleared(), preempt(1, 2)) == ["victim"]


def test_jobs_and_classes_may_refuse_to_be_preempted() -> None:
    yard = ranks()
    yard.runs(1, at("n1"), job_class=LOW, preemptible=False)
    assert yard.judge(cleared(), preempt(1, 2)) == ["victim"]

    yard = ranks()
    yard.job_class("low", priority=1, preemptible=False)
    assert yard.judge(cleared(), preempt(1, 2)) == ["victim"]


def test_a_victim_has_had_its_time() -> None:
    yard = ranks()
    yard.job_class("low", priority=1, min_run=HOUR)
    assert yard.judge(cleared(), preempt(1, 2)) == []

    yard.policy = Policy(preempt=PreemptPolicy(min_run=Duration(HOUR + 1)))
    assert yard.judge(cleared(), preempt(1, 2)) == ["victim"]

    yard.policy = Policy()
    yard.runs(1, at("n1"), job_class=LOW, started_at=None, state=JobState.STARTING)
    assert yard.judge(cleared(), preempt(1, 2)) == ["victim"]


def test_a_victim_stops_in_its_own_way() -> None:
    yard = ranks()
    yard.job_class("low", priority=1, preempt_mode=PreemptMode.SUSPEND)
    suspended = preempt(1, 2, mode=PreemptMode.SUSPEND)
    assert yard.judge(cleared(), suspended) == []
    assert yard.judge(cleared(), preempt(1, 2)) == ["mode"]

    yard.cluster(abilities=Abilities(suspend=False))
    assert yard.judge(cleared(), suspended) == ["mode"]
    assert yard.judge(cleared(), preempt(1, 2)) == []

    yard.runs(1, at("n1"), job_class=LOW, preempt_mode=PreemptMode.CANCEL)
    assert yard.judge(cleared(), preempt(1, 2, mode=PreemptMode.CANCEL)) == []


def test_a_victim_with_a_mig_instance_is_not_suspended() -> None:
    small = Mig(profile="1g.10gb")
    yard = ranks()
    yard.job_class("low", priority=1, preempt_mode=PreemptMode.SUSPEND)
    yard.device("n1", 0, mig=(MigInstance(profile="1g.10gb", start=0),))
    yard.runs(
        1,
        at("n1", "g1"),
        at("n1", "g0", small, starts=(0,), group="side"),
        groups=(group(), group(each=asking(1, small), name="side")),
        job_class=LOW,
    )
    cleared = clear(2, at("n1", "g1"), victims=(1,))

    assert yard.judge(cleared, preempt(1, 2, mode=PreemptMode.SUSPEND)) == ["mode"]
    assert yard.judge(cleared, preempt(1, 2)) == []


def test_a_preemption_names_the_current_attempt() -> None:
    assert ranks().judge(cleared(), preempt(1, 2, attempt=2)) == ["attempt"]


@pytest.mark.parametrize("higher", [False, True])
def test_a_class_must_name_the_other_and_be_the_higher_one(higher: bool) -> None:
    yard = ranks()
    yard.job_class("high", priority=2 if higher else 1, preempts=() if higher else (LOW,))

    assert yard.judge(cleared(), preempt(1, 2)) == ["right"]


def test_policy_may_forbid_preemption_by_class() -> None:
    yard = ranks()
    yard.policy = Policy(preempt=PreemptPolicy(by_class=False))

    assert yard.judge(cleared(), preempt(1, 2)) == ["right"]


def teams() -> Yard:
    """Teams x and y of `a`; job 1 of y has the GPUs of n1, and job 2 of x wants one of them."""
    yard = Yard()
    yard.queue("a/x", quotas=(Quota(guaranteed=1_000),))
    yard.queue("a/y", quotas=(Quota(guaranteed=1_000),))
    yard.runs(1, at("n1", "g0 g1"), groups=(group(1, asking(2)),), queue=QueuePath("a/y/z"))
    yard.waits(2, queue=QueuePath("a/x/w"))
    yard.queue("a/x/w")
    yard.queue("a/y/z")
    return yard


def test_a_queue_takes_back_what_it_is_guaranteed() -> None:
    assert teams().judge(cleared(), preempt(1, 2)) == []


def test_policy_may_forbid_taking_back() -> None:
    yard = teams()
    yard.policy = Policy(preempt=PreemptPolicy(reclaim=False))

    assert yard.judge(cleared(), preempt(1, 2)) == ["right"]


def test_a_queue_that_has_its_guarantee_takes_no_more_back() -> None:
    yard = teams()
    yard.runs(3, at("n2"), queue=QueuePath("a/x"))

    assert yard.judge(cleared(), preempt(1, 2)) == ["right"]


def test_what_starts_before_counts_and_what_starts_after_does_not() -> None:
    yard = teams()
    yard.waits(3, queue=QueuePath("a/x"))
    other = start(3, at("n2"))

    assert yard.judge(other, cleared(), preempt(1, 2)) == ["right"]
    assert yard.judge(cleared(), other, preempt(1, 2)) == []


def test_a_queue_within_its_guarantee_is_protected_even_from_higher_classes() -> None:
    yard = teams()
    yard.job_class("high", priority=1, preempts=(ClassName("normal"),))
    yard.waits(2, queue=QueuePath("a/x/w"), job_class=HIGH)
    yard.queue("a/y", quotas=(Quota(guaranteed=2_000),))

    assert yard.judge(cleared(), preempt(1, 2)) == ["protected"]


def test_inside_one_queue_nobody_is_protected() -> None:
    yard = ranks()
    yard.queue("a", quotas=(Quota(guaranteed=9_000),))

    assert yard.judge(cleared(), preempt(1, 2)) == []


def over_by_one() -> Yard:
    """Team y has two jobs of one GPU each on n1, and one GPU is guaranteed to it."""
    yard = teams()
    yard.runs(1, at("n1", "g0"), queue=QueuePath("a/y"))
    yard.runs(3, at("n1", "g1"), queue=QueuePath("a/y"))
    yard.queue("a/x", quotas=(Quota(guaranteed=4_000),))
    return yard


def test_only_what_exceeds_the_guarantee_can_be_taken() -> None:
    yard = over_by_one()
    assert yard.judge(cleared(), preempt(1, 2)) == []

    yard.waits(2, group(1, asking(2)), queue=QueuePath("a/x/w"))
    both = clear(2, at("n1", "g0 g1"), victims=[1, 3])
    assert yard.judge(both, preempt(1, 2), preempt(3, 2)) == ["protected"]


def test_those_who_stop_for_a_claim_count_no_more() -> None:
    yard = over_by_one()
    yard.jobs[JobId(3)] = replace(yard.jobs[JobId(3)], state=JobState.STOPPING)
    yard.waits(4, queue=QueuePath("a/x/w"), claim=claim_on(at("n1", "g1"), victims=[3]))

    assert yard.judge(cleared(), preempt(1, 2)) == ["protected"]


def test_a_claim_that_ran_out_stops_nobody() -> None:
    yard = over_by_one()
    yard.jobs[JobId(3)] = replace(yard.jobs[JobId(3)], state=JobState.STOPPING)
    claim = claim_on(at("n1", "g1"), victims=[3], until=NOW)
    yard.waits(4, queue=QueuePath("a/x/w"), claim=claim)

    assert yard.judge(cleared(), preempt(1, 2)) == []


def test_by_service_a_victim_has_run_for_its_part_of_the_time_that_it_waited() -> None:
    yard = Yard()
    yard.runs(1, at("n1"))
    yard.jobs[JobId(1)] = replace(yard.jobs[JobId(1)], submitted_at=Instant(NOW - 5 * HOUR))
    yard.waits(2)

    found = {}
    for percent in (25, 26):
        rules = PreemptPolicy(by_service=True, waited_percent=percent)
        yard.policy = Policy(preempt=rules)
        found[percent] = yard.judge(cleared(), preempt(1, 2))

    assert found == {25: [], 26: ["right"]}
