"""A backend and everything it was heard to say; the same sentences for pretend and real time."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import TypeVar

import pytest

from muster.backends.base import Action, Backend, Run, Stop
from muster.model.event import Event, JobCheckpointed, JobEnded, JobStarted, JobSuspended
from muster.model.job import EndReason
from muster.model.value import Duration, Instant, Value

JobNews = JobStarted | JobCheckpointed | JobSuspended | JobEnded
_News = TypeVar("_News", JobStarted, JobCheckpointed, JobSuspended, JobEnded)


class Doing(Value):
    """What a job does; each engine makes that of it which its backend runs.

    code: it ends with this after `lasts`; None: it goes on for an hour.
    is_stubborn: SIGTERM does not impress it.
    saves: it writes a checkpoint soon after it began. saves_when_asked: it writes one then.
    """

    code: int | None = None
    lasts: Duration = Duration(0)
    is_stubborn: bool = False
    saves: bool = False
    saves_when_asked: bool = False


class Engine(ABC):
    """What the tests say to a backend, and hear from it.

    slack is how much later than exactly things may happen.
    """

    slack: Duration
    backend: Backend

    def __init__(self) -> None:
        self.heard: list[Event] = []
        self.jobs = 0

    @abstractmethod
    def now(self) -> Instant: ...

    @abstractmethod
    def begins(self, doing: Doing, limit: int | None) -> Run:
        """What begins another job that does this."""

    @abstractmethod
    def until(self, condition: Callable[[], bool]) -> None:
        """Observe until it is so; fails after a while in which it is not."""

    @abstractmethod
    def until_over_unseen(self, run: Run) -> None:
        """Time passes until the attempt is over, and nothing is observed."""

    @abstractmethod
    def is_ready(self, run: Run) -> bool:
        """Is the attempt at its work, and ready for orders?"""

    @abstractmethod
    def lives(self, run: Run) -> bool:
        """Does anything of the attempt still run?"""

    @abstractmethod
    def times_run(self, run: Run) -> int:
        """How often the attempt was really begun."""

    @abstractmethod
    def reopens(self, *adopting: Run) -> None:
        """Another backend object, or what comes next to it, takes these attempts over."""

    @abstractmethod
    def leaves(self) -> None:
        """Let go of the backend; the jobs run on."""

    @abstractmethod
    def ends(self) -> None:
        """The test is over: nothing may be left."""

    def runs(self, doing: Doing, *, limit: int | None = None) -> Run:
        sent = self.begins(doing, limit)
        self.backend.do(sent)
        return sent

    def runs_and_is_ready(self, doing: Doing, *, limit: int | None = None) -> Run:
        sent = self.runs(doing, limit=limit)
        self.sees(JobStarted, sent)
        self.until(lambda: self.is_ready(sent))
        return sent

    def needs_suspend(self) -> None:
        """What an engine cannot do is known, and not asked of it."""
        if not self.backend.cluster.abilities.suspend:
            pytest.skip(f"{self.backend.cluster.backend} does not stop attempts in place")

    def does(self, *actions: Action) -> None:
        for action in actions:
            self.backend.do(action)

    def stops(
        self, run: Run, why: EndReason, *, grace: int = 60_000, saving: bool = False
    ) -> Instant:
        """Tell it to stop; returns when that was."""
        ordered_at = self.now()
        self.backend.do(
            Stop(
                job=run.job.id,
                attempt=run.job.attempt,
                why=why,
                grace=Duration(grace),
                checkpoint=saving,
            )
        )
        return ordered_at

    def sees(self, kind: type[_News], run: Run) -> _News:
        """Wait until the backend says so."""
        self.until(lambda: bool(self._of(kind, run)))
        return self._of(kind, run)[-1]

    def end_of(self, run: Run) -> JobEnded:
        return self.sees(JobEnded, run)

    def story_of(self, run: Run) -> list[type[Event]]:
        """What kinds of things were heard of the attempt, in order."""
        return [type(event) for event in self.heard if _is_about(event, run)]

    def passes(self) -> None:
        """Another job comes and goes: whatever was on its way before has arrived."""
        self.end_of(self.runs(Doing(code=0)))

    def _of(self, kind: type[_News], run: Run) -> list[_News]:
        return [event for event in self.heard if isinstance(event, kind) and _is_about(event, run)]


def _is_about(event: Event, run: Run) -> bool:
    if not isinstance(event, JobNews):
        return False
    return (event.job, event.attempt) == (run.job.id, run.job.attempt)
