"""What is remembered so that mails are sent in time, and each of them once."""

import heapq
from collections import Counter

from muster.lifecycle.notices import ONCE, Notice, marks_of
from muster.model.job import FINAL, Job
from muster.model.mail import Occasion
from muster.model.placement import Allocation
from muster.model.value import Instant, JobId

_SENT = Instant(-1)


class _Attempt:
    """The marks of one attempt: when each is due, or that it was sent."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.at: dict[Occasion, Instant] = {}


class Marks:
    """When parts of running jobs' time are over: each is due once in an attempt."""

    def __init__(self) -> None:
        self._of: dict[JobId, _Attempt] = {}
        self._due: list[tuple[Instant, JobId, Occasion]] = []

    def follow(self, job: Job, held: Allocation | None) -> None:
        """The job is like this now, and holds this."""
        if held is None or job.state in FINAL:
            self._of.pop(job.id, None)
            return
        marks = marks_of(job, held)
        known = self._of.get(job.id)
        if known is None or known.number != held.attempt:
            if not marks:
                return
            known = self._of[job.id] = _Attempt(held.attempt)
        sent = {each: at for each, at in known.at.items() if at == _SENT}
        for each, at in marks.items():
            if each not in sent and known.at.get(each) != at:
                heapq.heappush(self._due, (at, job.id, each))
        known.at = marks | sent

    def due(self, now: Instant) -> list[tuple[JobId, Occasion]]:
        """What is due by now; it is never due again."""
        found: list[tuple[JobId, Occasion]] = []
        while (at := self.next_at()) is not None and at <= now:
            _, job, on = heapq.heappop(self._due)
            self._of[job].at[on] = _SENT
            found.append((job, on))
        return found

    def next_at(self) -> Instant | None:
        """When something is due next; what was moved, or is over, is left out."""
        while self._due:
            at, job, on = self._due[0]
            known = self._of.get(job)
            if known is not None and known.at.get(on) == at:
                return at
            heapq.heappop(self._due)
        return None


class Arrays:
    """How many parts of each array are live, and what was sent of it as a whole."""

    def __init__(self) -> None:
        self._live = Counter[JobId]()
        self._told: set[tuple[JobId, Occasion]] = set()

    def count(self, before: Job | None, after: Job) -> None:
        """The part is like this now."""
        if after.spec.array is not None:
            is_live = after.state not in FINAL
            self._live[after.spec.array.array] += is_live - (before is not None)

    def is_over(self, array: JobId) -> bool:
        """Is no part live any more? Once that was so, the array is forgotten."""
        if array not in self._live or self._live[array] > 0:
            return False
        del self._live[array]
        self._told -= {(array, each) for each in ONCE}
        return True

    def is_news(self, notice: Notice) -> bool:
        """Is this the first of its kind about the array? How it ended is mailed when it has."""
        part = notice.job.spec.array
        if part is None or notice.on not in ONCE or (part.array, notice.on) in self._told:
            return False
        self._told.add((part.array, notice.on))
        return True

    def skip(self, array: JobId) -> None:
        """All of this may have been sent before."""
        self._told |= {(array, each) for each in ONCE}
