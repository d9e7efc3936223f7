"""What happened since a moment, counted: what became of jobs, and how long plans took."""

from threading import Lock

from muster.controller.world.transaction import Change
from muster.model.event import JobStarted, JobSubmitted
from muster.model.job import JobState
from muster.model.value import Instant, Value, replace
from muster.stores.base import Batch


class Counts(Value):
    """Numbers since an instant; those of plans leave out plans with no waiting job.

    waiting: how many jobs the last plan decided for, and all plans together.
    """

    since: Instant
    submitted: int = 0
    started: int = 0
    completed: int = 0
    cancelled: int = 0
    failed: int = 0
    plans: int = 0
    last_us: int = 0
    most_us: int = 0
    total_us: int = 0
    waiting: int = 0
    total_waiting: int = 0


class Counters:
    """Counts: written by the threads that commit and plan, read by doors."""

    def __init__(self, since: Instant) -> None:
        self._lock = Lock()
        self._counts = Counts(since=since)

    @property
    def counts(self) -> Counts:
        return self._counts

    def reset(self, now: Instant) -> None:
        """Count from now on; what the last plan was like stays known."""
        with self._lock:
            old = self._counts
            self._counts = Counts(since=now, last_us=old.last_us, waiting=old.waiting)

    def note(self, batch: Batch, _: tuple[Change, ...]) -> None:
        """Something was committed."""
        submitted = sum(isinstance(event, JobSubmitted) for event in batch.events)
        started = sum(isinstance(event, JobStarted) for event in batch.events)
        if not (submitted or started or batch.ended):
            return
        ended = [each.job.state for each in batch.ended]
        with self._lock:
            old = self._counts
            self._counts = replace(
                old,
                submitted=old.submitted + submitted,
                started=old.started + started,
                completed=old.completed + ended.count(JobState.COMPLETED),
                cancelled=old.cancelled + ended.count(JobState.CANCELLED),
                failed=old.failed + ended.count(JobState.FAILED),
            )

    def planned(self, took_us: int, waiting: int) -> None:
        """A plan was made for so many jobs, and carried out."""
        with self._lock:
            old = self._counts
            self._counts = replace(
                old,
                plans=old.plans + 1,
                last_us=took_us,
                most_us=max(took_us, old.most_us),
                total_us=old.total_us + took_us,
                waiting=waiting,
                total_waiting=old.total_waiting + waiting,
            )
