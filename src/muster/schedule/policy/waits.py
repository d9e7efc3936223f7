"""Why each of the jobs waits that neither moves nor starts; kept from plan to plan."""

from muster.model.job import HeldBy, Job
from muster.model.plan import Wait
from muster.model.reason import WaitReason
from muster.model.value import JobId
from muster.model.versioned import VersionedMapping, VersionHistory
from muster.schedule.policy.decide import Turn
from muster.schedule.state.follow import Memory


class Waits:
    """The waits of one plan after the other; those that did not change stay the same objects."""

    def __init__(self) -> None:
        self._waits: dict[JobId, Wait] = {}
        self._history: VersionHistory[JobId, Wait] = VersionHistory(self._waits)

    def after(self, memory: Memory, turn: Turn) -> VersionedMapping[JobId, Wait]:
        """One wait for each job that waits and about which nothing else was decided."""
        decided, entries, held = turn.decided, memory.roster.entries, memory.held
        for job_id in [
            each
            for each in self._waits
            if each in decided or (each not in entries and each not in held)
        ]:
            del self._waits[job_id]
            self._history.note(job_id)
        for job in held.values():
            self._set(job.id, _held(job))
        for job_id, entry in entries.items():
            if job_id not in decided:
                self._set(job_id, turn.why(entry))
        return self._history.version()

    def _set(self, job: JobId, why: WaitReason) -> None:
        known = self._waits.get(job)
        if known is None or (known.why is not why and known.why != why):
            self._waits[job] = Wait(job=job, why=why)
            self._history.note(job)


def _held(job: Job) -> HeldBy:
    return job.why if isinstance(job.why, HeldBy) else HeldBy(user=job.spec.user)
