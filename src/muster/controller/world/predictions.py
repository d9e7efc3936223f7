"""What jobs are expected to take: learned as they end, kept with those that wait.

What is expected is an estimate, not a fact: there are no events for it. It is written with a job
whenever the job is written, and after a restart it is learned again from the history.
"""

from collections.abc import Iterable, Iterator

from muster.lifecycle.predict import Accuracy, Key, Prediction, Predictor
from muster.model.history import Ended
from muster.model.job import WAITING, Job
from muster.model.value import JobId, replace


class Predictions:
    """The predictor, and who waits for what it may learn."""

    def __init__(self) -> None:
        self.predictor = Predictor()
        self._waiting: dict[Key, set[JobId]] = {}

    @property
    def accuracy(self) -> Accuracy:
        """How good predictions were so far."""
        return self.predictor.accuracy

    def predicted(self, job: Job) -> Job:
        """A job that comes in, with what it is expected to take."""
        return replace(job, expected=self.predictor.expect(job.id, job.spec))

    def of(self, job: Job) -> Prediction:
        """What jobs like this one take, as it is known now."""
        return self.predictor.predict(job.spec)

    def mark(self, job: Job) -> None:
        """A job waits, or does not wait any more."""
        kind = self.predictor.kind(job.spec)
        if job.state in WAITING:
            self._waiting.setdefault(kind, set()).add(job.id)
        elif kind in self._waiting:
            self._leave(kind, job.id)

    def learn(self, ended: Ended) -> tuple[JobId, ...]:
        """A job is over. The waiting jobs of which much more is known now."""
        job = ended.job
        kind = self.predictor.kind(job.spec)
        if kind in self._waiting:
            self._leave(kind, job.id)
        if ended.started_at is None:
            self.predictor.forget(job.id)
            return ()
        is_news = self.predictor.learn(job.id, job.spec, ended.ended_at - ended.started_at)
        return tuple(sorted(self._waiting.get(kind, ()))) if is_news else ()

    def relearn(self, past: Iterable[Ended]) -> None:
        """What ended before this process began, the oldest first."""
        for ended in past:
            self.learn(ended)

    def refreshed(self, alike: Iterable[Job]) -> Iterator[Job]:
        """These jobs of one kind, where they are expected to take another time now."""
        for job, expected in self.predictor.again(alike):
            yield replace(job, expected=expected)

    def _leave(self, kind: Key, job: JobId) -> None:
        self._waiting[kind].discard(job)
        if not self._waiting[kind]:
            del self._waiting[kind]
