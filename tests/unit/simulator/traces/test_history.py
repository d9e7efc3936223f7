"""Our own past as a trace."""

from muster.model.gpu import GpuAsk
from muster.model.history import Attempt, Ended
from muster.model.job import Ask, Dependency, DependencyKind, Exited, Job, JobSpec, TaskGroup
from muster.model.job import JobState as State
from muster.model.resources import Resources
from muster.model.value import (
    ClusterName,
    Duration,
    Instant,
    JobId,
    QueuePath,
    UserName,
)
from muster.simulator.traces import history
from muster.simulator.traces.traced import Outcome
from muster.stores.base import Batch, HistoryQuery
from muster.stores.memory import MemoryStore


def test_the_past_comes_back_page_by_page_in_the_order_of_submission() -> None:
    store = _store(*(_ended(number) for number in (3, 1, 2)))

    found = list(history.past(store, HistoryQuery(limit=2)))

    assert [each.ended.job.id for each in found] == [1, 2, 3]


def test_work_is_what_was_saved_by_earlier_attempts_and_the_last_one() -> None:
    store = _store(
        _ended(1),
        attempts=(_attempt(1, 1, 100, 160, saved_at=140), _attempt(1, 2, 200, 250)),
    )

    (past,) = history.past(store)

    assert past.work == Duration(90)
    assert past.behaviour is not None
    assert past.behaviour.end == Exited(code=1)


def test_a_request_comes_again_as_it_was_but_by_itself() -> None:
    (past,) = history.past(_store(_ended(1)))

    assert past.arrival.at == Instant(1)
    assert past.arrival.spec.after == ()
    assert past.arrival.spec.groups == past.ended.job.spec.groups
    assert past.behaviour is None


def test_the_past_is_a_trace_like_any_other() -> None:
    (job,) = history.jobs(_store(_ended(1), attempts=(_attempt(1, 1, 100, 160),)))

    assert (job.tasks, job.gpus, job.gpu_milli) == (2, 4, 1_000)
    assert (job.user, job.queue, job.outcome) == ("ann", "acme", Outcome.FAILED)
    assert (job.duration, job.started_at) == (Duration(60), Instant(100))


def _store(*ended: Ended, attempts: tuple[Attempt, ...] = ()) -> MemoryStore:
    store = MemoryStore()
    first = store.load().version + 1
    store.append(Batch(version=first, next_job=JobId(100), ended=ended, attempts=attempts))
    return store


def _ended(number: int) -> Ended:
    groups = (
        TaskGroup(name="main", count=2, each=Ask(gpus=GpuAsk(count=4))),
        TaskGroup(name="log", each=Ask(cpu_milli=1_000)),
    )
    spec = JobSpec(
        name="train",
        user=UserName("ann"),
        queue=QueuePath("acme"),
        groups=groups,
        after=(Dependency(kind=DependencyKind.AFTER, job=JobId(99)),),
    )
    job = Job(
        id=JobId(number),
        spec=spec,
        state=State.FAILED,
        why=Exited(code=1),
        submitted_at=Instant(number),
    )
    return Ended(job=job, started_at=Instant(100), ended_at=Instant(250))


def _attempt(
    job: int, number: int, started_at: int, ended_at: int, saved_at: int | None = None
) -> Attempt:
    return Attempt(
        job=JobId(job),
        number=number,
        cluster=ClusterName("here"),
        pools=(),
        nodes=(),
        amount=Resources(),
        placed_at=Instant(started_at),
        started_at=Instant(started_at),
        ended_at=Instant(ended_at),
        why=Exited(code=1),
        checkpointed_at=None if saved_at is None else Instant(saved_at),
    )
