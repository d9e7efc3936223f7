"""What to change about what is dearest, and what the planner says that it would bring."""

from controller.observed import PRICE, Observed
from muster.controller.messages import Caller
from muster.controller.queries.advising import Advice
from muster.controller.queries.diagnosis import ReportQuery
from muster.model.queue import Queue, Quota
from muster.model.value import HOUR, QueuePath, UserName


def advice(observed: Observed, user: str = "root") -> dict[str, Advice]:
    asks = Caller(user=UserName(user), door="test", root=user == "root")
    return {each.dear.what: each for each in observed.advising.advice(asks, ReportQuery())}


def limited(observed: Observed, milli: int) -> None:
    """Queue `a` may hold so much."""
    queues = dict(observed.desk.record.site.queues)
    queues[QueuePath("a")] = Queue(path=QueuePath("a"), quotas=(Quota(limit=milli),))
    observed.desk.changes_site(queues=queues)


def test_gpus_that_a_limit_keeps_free_are_worth_what_would_start_without_it() -> None:
    observed = Observed(gpus=4)
    limited(observed, 1_000)
    jobs = [
        observed.desk.submits("ada", gpus=1, queue="a/b", lasts=60_000, limit_s=7_200)
        for _ in range(3)
    ]
    observed.passes(5, busy=950)
    before = observed.desk.record.version

    found = advice(observed)["free_over_limit"]

    assert "queue a hold more" in found.text
    assert (found.jobs, found.dear.queues) == (tuple(jobs[1:]), ("a/b",))
    assert "2 jobs would start now" in found.rehearsed
    assert found.gained_milli_ms == 2 * 1_000 * 2 * HOUR
    assert found.gained_micros == 2 * 2 * PRICE
    # It was a rehearsal.
    assert observed.desk.record.version == before


def test_gpus_that_are_held_and_left_alone_are_worth_what_would_start_on_them() -> None:
    observed = Observed(gpus=4)
    idle = observed.desk.submits("ada", gpus=4, lasts=200_000)
    observed.passes(6, busy=0)
    waits = observed.desk.submits("bob", gpus=3, lasts=200_000, limit_s=3_600)
    observed.passes(1, busy=0)

    found = max(advice(observed).values(), key=lambda each: each.dear.micros)

    assert (found.dear.use, found.jobs, found.dear.users) == ("held_idle", (idle,), ("ada",))
    assert "end jobs that leave their GPUs alone" in found.text
    assert "1 job would start now" in found.rehearsed
    assert found.gained_milli_ms == 3 * 1_000 * HOUR
    assert observed.desk.record.jobs[waits].state == "pending"


def test_more_cpus_are_worth_what_was_wasted_if_the_job_could_start_with_them() -> None:
    observed = Observed(gpus=1)
    job = observed.desk.submits("ada", gpus=1, lasts=200_000, limit_s=3_600)
    observed.passes(6, busy=300, cpu=970, thread=990)

    found = advice(observed)["input_cpu"]

    assert found.jobs == (job,)
    assert found.gained_milli_ms is not None
    assert 0 < found.gained_milli_ms < 1_000 * HOUR


def test_where_all_is_well_there_is_nothing_to_change() -> None:
    observed = Observed(gpus=1)
    observed.desk.submits("ada", gpus=1, lasts=60_000)
    observed.passes(6, busy=950)

    assert advice(observed) == {}


def test_a_stranger_is_told_of_nobodys_jobs() -> None:
    observed = Observed(gpus=4)
    limited(observed, 1_000)
    for _ in range(3):
        observed.desk.submits("ada", gpus=1, queue="a/b", lasts=60_000)
    observed.passes(5, busy=950)

    found = advice(observed, "bob")["free_over_limit"]

    assert (found.jobs, found.dear.users) == ((), ())
    assert found.gained_milli_ms
