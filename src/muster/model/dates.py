"""When waiting jobs start: dates as ranges, and what became of those that were told."""

from muster.model.value import ClassName, Duration, Instant, JobId, QueuePath, Value

OF_TEN = 8
"""So many of ten ranges hold."""


class StartDate(Value):
    """When a waiting job is expected to start: of ten such ranges eight hold.

    middle: it is as likely to start before as after.
    after: jobs that must end first; some of them, the last to end first.
    newcomers: so many jobs that nobody has submitted yet may start before it.
    passing: jobs that wait as well, came later, and may start before it; some of them.
    """

    early: Instant
    middle: Instant
    late: Instant
    after: tuple[JobId, ...] = ()
    newcomers: int = 0
    passing: tuple[JobId, ...] = ()


class Moved(Value, gc=False):
    """A job that waits, and when it would start now and after a change."""

    job: JobId
    before: Instant
    after: Instant


class Foreseen(Value, gc=False):
    """What a forecast says of one job before it is compared with how earlier ones came out.

    wait: until its start, in the middle of all courses that were played.
    spread_milli: how far the courses differ: the deviation of their logarithms, in thousandths.
    waiting: how many jobs wait with it. gpu_milli: what it asks for.
    courses: how many it starts in; 0 if its start is sketched.
    """

    queue: QueuePath
    job_class: ClassName
    wait: Duration
    spread_milli: int
    waiting: int
    gpu_milli: int
    courses: int = 1


class KeptDate(Value, gc=False):
    """The first date that a job was told, what it came from, and when the job really started."""

    job: JobId
    told_at: Instant
    early: Instant
    middle: Instant
    late: Instant
    foreseen: Foreseen
    started_at: Instant

    @property
    def held(self) -> bool:
        return self.early <= self.started_at <= self.late
