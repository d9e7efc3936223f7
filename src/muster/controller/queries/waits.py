"""Why jobs wait, as far as the last plan knows them as they are now."""

from muster.controller.loop.controller import LastPlan
from muster.controller.world.journal import Journal
from muster.controller.world.transaction import Change
from muster.model.job import WAITING, Job
from muster.model.plan import Wait
from muster.model.reason import DependsOn
from muster.model.value import JobId
from muster.stores.base import Batch


class CurrentWaits:
    """The waits of the last plan, without those of jobs that changed since its snapshot.

    A job that was released while a plan was made is not held any more, whatever that plan says.
    """

    def __init__(self, journal: Journal, last_plan: LastPlan) -> None:
        self._jobs = journal.record.jobs
        self._last_plan = last_plan
        # By a live job, the version at which it changed last, if the last plan is older than that.
        self._changed_at: dict[JobId, int] = {}
        self._version = last_plan.version
        journal.subscribers.add(self._note)

    def of(self, job: Job) -> Wait | None:
        """Why it waits; None if it does not, or until a plan has seen it as it is."""
        if job.state not in WAITING:
            return None
        # A plan's waits are there before its version is: in this order they are never older.
        version = self._last_plan.version
        wait = self._last_plan.waits.get(job.id)
        if wait is None or self._changed_at.get(job.id, version) > version:
            return None
        why = wait.why
        return wait if type(why) is not DependsOn or self._still_depends(why, version) else None

    def _still_depends(self, why: DependsOn, version: int) -> bool:
        """Is the other job as the plan knew it? What can no longer happen stays so."""
        if why.never or why.job is None:
            return True
        return why.job in self._jobs and self._changed_at.get(why.job, version) <= version

    def _note(self, batch: Batch, changes: tuple[Change, ...]) -> None:
        if self._version != self._last_plan.version:
            self._version = self._last_plan.version
            self._changed_at = {
                job: at for job, at in self._changed_at.items() if at > self._version
            }
        for change in changes:
            if change.before is not None and _is_another(change.before, change.after):
                self._changed_at[change.after.id] = batch.version
        for ended in batch.ended:
            self._changed_at.pop(ended.job.id, None)


def _is_another(before: Job, after: Job) -> bool:
    """Did anything change that a wait may say? Predictions and claims are the planner's own."""
    return (
        before.state is not after.state
        or (before.spec is not after.spec and before.spec != after.spec)
        or before.why != after.why
        or before.not_before != after.not_before
        or before.attempt != after.attempt
    )
