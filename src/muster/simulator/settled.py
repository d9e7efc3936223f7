"""What a course takes over from the live world as it is.

There is nothing to learn from jobs whose durations were drawn from what is known already.
"""

from collections.abc import Mapping

from muster.controller.world.levels import LearnedLevels
from muster.controller.world.predictions import Predictions
from muster.lifecycle.predict import Key, Predictor
from muster.model.history import Ended
from muster.model.job import Job
from muster.model.levels import Levels
from muster.model.placement import Allocation
from muster.model.value import Duration, Instant, JobId, replace

Expected = dict[tuple[Key, Duration | None], Duration]
"""What jobs of a kind with this limit are expected to take, as far as it was asked for."""


class SettledPredictions(Predictions):
    """Expects of newcomers what the live world would, and of all others what it does."""

    def __init__(self, predictor: Predictor, expected: Expected) -> None:
        super().__init__()
        self._settled = predictor
        self._expected = expected

    def predicted(self, job: Job) -> Job:
        spec = job.spec
        key = (self._settled.kind(spec), spec.time_limit)
        known = self._expected.get(key)
        if known is None:
            known = self._expected[key] = self._settled.predict(spec).expected
        return replace(job, expected=known)

    def mark(self, job: Job) -> None:
        """Nobody waits for what will be learned."""

    def learn(self, ended: Ended) -> tuple[JobId, ...]:
        del ended
        return ()


class SettledLevels(LearnedLevels):
    """The levels as they are."""

    def __init__(self, levels: Levels) -> None:
        super().__init__()
        self._settled = levels

    def learn(self, ended: Ended) -> None:
        """They stay."""

    def levels(
        self,
        jobs: Mapping[JobId, Job],
        allocations: Mapping[JobId, Allocation],
        now: Instant,
    ) -> Levels:
        del jobs, allocations, now
        return self._settled
