"""Why each of the jobs waits that neither starts, resumes nor has room cleared for it.

Only what may have changed is looked at: jobs that came, went or changed, jobs about which something
was found out by themselves in this plan or the one before, and all jobs of a shape for which
another reason was found. The waits of all others stay as they are.
"""

from collections.abc import Iterable, Mapping

from muster.model.job import HeldBy, Job
from muster.model.plan import Move, Wait
from muster.model.reason import WaitReason
from muster.model.value import JobId
from muster.model.versioned import VersionedMapping, VersionHistory
from muster.schedule.policy.decide import Decider
from muster.schedule.policy.verdicts import Verdicts
from muster.schedule.state.follow import PlannerState
from muster.schedule.state.roster import Shape


class Waits:
    """The waits of one plan after the other; those that did not change stay the same objects."""

    def __init__(self) -> None:
        self._waits: dict[JobId, Wait] = {}
        self._history: VersionHistory[JobId, Wait] = VersionHistory(self._waits)
        # About whom something was said in the last plan.
        self._single: set[JobId] = set()
        self._by_shape: dict[Shape, WaitReason] = {}

    def after(
        self, kept: PlannerState, decider: Decider, verdicts: Verdicts
    ) -> VersionedMapping[JobId, Wait]:
        """One wait for each job that waits and about which nothing else was decided."""
        single = {*verdicts.reasons, *decider.decided}
        touched = self._single | single | kept.take_touched()
        self._look_at(touched, kept, decider.decided, verdicts)
        self._look_at_shapes(kept, decider, verdicts)
        self._single = single
        return self._history.version()

    def _look_at_shapes(self, kept: PlannerState, decider: Decider, verdicts: Verdicts) -> None:
        said: dict[Shape, WaitReason] = {}
        for shape in kept.roster.shapes():
            said[shape] = shape.verdict.why
            if self._by_shape.get(shape) != shape.verdict.why:
                self._look_at_all(shape, decider.decided, verdicts)
        self._by_shape = said

    def _look_at_all(self, shape: Shape, decided: Mapping[JobId, Move], verdicts: Verdicts) -> None:
        reasons, why = verdicts.reasons, shape.verdict.why
        for job in shape.entries:
            if job not in decided:
                self._set(job, reasons.get(job) or why)

    def _look_at(
        self,
        jobs: Iterable[JobId],
        kept: PlannerState,
        decided: Mapping[JobId, Move],
        verdicts: Verdicts,
    ) -> None:
        entries, held = kept.roster.entries, kept.held
        for job in jobs:
            entry = entries.get(job)
            if entry is not None and job not in decided:
                self._set(job, verdicts.why(entry))
            elif job in held:
                self._set(job, _held(held[job]))
            elif job in self._waits:
                self._history.drop(job)

    def _set(self, job: JobId, why: WaitReason) -> None:
        known = self._waits.get(job)
        if known is None or (known.why is not why and known.why != why):
            self._history.set(job, Wait(job=job, why=why))


def _held(job: Job) -> HeldBy:
    return job.why if isinstance(job.why, HeldBy) else HeldBy(user=job.spec.user)
