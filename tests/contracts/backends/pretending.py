"""The simulated backend as an engine: waiting jumps the clock."""

from collections import Counter
from collections.abc import Callable

from contracts.backends.engine import Doing, Engine
from contracts.backends.given import CLUSTER, NODES, job_of, run_of
from muster.backends.base import Run
from muster.backends.simulated.attempt import Behaviour
from muster.backends.simulated.backend import SimulatedBackend
from muster.model.event import JobStarted
from muster.model.job import Exited, Job
from muster.model.placement import Allocation
from muster.model.value import HOUR, MINUTE, SECOND, Duration, Instant, JobId

SOON = Duration(20)


class PretendEngine(Engine):
    slack = Duration(0)

    def __init__(self) -> None:
        super().__init__()
        self._now = Instant(1_000_000)
        self._doings: dict[JobId, Doing] = {}
        self._begun: Counter[JobId] = Counter()
        self._backend = SimulatedBackend(
            NODES.values(), CLUSTER, self._lasts, now=self._now, tells_every=SOON
        )
        self.backend = self._backend
        self._backend.adopt(())

    def now(self) -> Instant:
        return self._now

    def begins(self, doing: Doing, limit: int | None) -> Run:
        self.jobs += 1
        self._doings[JobId(self.jobs)] = doing
        return run_of(job_of(self.jobs, 1, limit), self._now)

    def until(self, condition: Callable[[], bool]) -> None:
        while not condition():
            at = self._backend.next_at()
            assert at is not None, f"nothing will happen any more: {self.heard}"
            self._now = max(self._now, at)
            self.heard.extend(self._backend.observe(self._now))

    def until_over_unseen(self, run: Run) -> None:
        del run
        self._now = Instant(self._now + MINUTE)

    def is_ready(self, run: Run) -> bool:
        return JobStarted in self.story_of(run)

    def lives(self, run: Run) -> bool:
        return (run.job.id, run.job.attempt) in self._backend.going

    def times_run(self, run: Run) -> int:
        return self._begun[run.job.id]

    def reopens(self, *adopting: Run) -> None:
        self.heard.clear()
        self._backend.adopt(tuple(run.allocation for run in adopting))

    def leaves(self) -> None:
        self._backend.close()

    def ends(self) -> None:
        self._backend.close()

    def _lasts(self, job: Job, _: Allocation) -> Behaviour:
        self._begun[job.id] += 1
        doing = self._doings[job.id]
        return Behaviour(
            work=HOUR if doing.code is None else doing.lasts,
            end=Exited(code=doing.code or 0),
            start_delay=SOON,
            checkpoint_every=SOON if doing.saves else None,
            saves_in=SOON if doing.saves_when_asked else None,
            stops_in=HOUR if doing.is_stubborn else Duration(SECOND // 100),
        )
