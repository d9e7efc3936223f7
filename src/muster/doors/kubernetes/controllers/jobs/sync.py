"""The Job controller: what ends a Job is looked for first, then pods are counted and managed."""

from collections.abc import Sequence

from muster.doors.kubernetes.controllers.amounts import without_zeros
from muster.doors.kubernetes.controllers.changes import NOTHING, Draft, Outcome
from muster.doors.kubernetes.controllers.cluster import Cluster, controller_uid
from muster.doors.kubernetes.controllers.conditions import found, is_true
from muster.doors.kubernetes.controllers.jobs.indexes import index_of, written
from muster.doors.kubernetes.controllers.jobs.look import Look
from muster.doors.kubernetes.controllers.jobs.managing import Managed, manage
from muster.doors.kubernetes.controllers.jobs.rules import (
    TRACKING,
    Action,
    backoff_limit,
    has_failed,
    is_tracked,
    restarted_too_often,
    success_rule,
    verdict,
)
from muster.doors.kubernetes.controllers.owning import claimed
from muster.doors.kubernetes.controllers.pods import is_leaving, is_ready, phase
from muster.doors.kubernetes.objects.kinds import JOB, POD
from muster.doors.kubernetes.objects.times import after, stamp
from muster.doors.kubernetes.objects.value import (
    JsonObject,
    copied,
    items,
    name_of,
    namespace_of,
    part,
    uid_of,
)
from muster.model.value import Instant, Value

SOURCE = "job-controller"
OWN_NAME = "kubernetes.io/job-controller"


class Ending(Value):
    """Why a Job ends. interim: the condition that says so while its last pods leave."""

    interim: str
    reason: str
    message: str

    @property
    def has_succeeded(self) -> bool:
        return self.interim == "SuccessCriteriaMet"

    @property
    def final(self) -> str:
        """The condition of a Job that is over."""
        return "Complete" if self.has_succeeded else "Failed"


def sync(job: JsonObject, cluster: Cluster, now: Instant) -> Outcome:
    """Count the pods that ended, end the Job if it is time, create or delete pods, and say so."""
    if is_finished(job) or part(job, "spec").get("managedBy", OWN_NAME) != OWN_NAME:
        return NOTHING
    draft = Draft(job, SOURCE)
    look = Look(job, claimed(draft, cluster, POD, finalizer=TRACKING), now)
    status = _started(look)
    ending = _ending(look, status.get("startTime"))
    if ending is not None:
        managed = Managed(deleted=tuple(look.active))
    elif is_leaving(job):
        managed = Managed()
    else:
        managed = manage(look, draft, cluster)
        ending = _completed(look, managed)
        if ending is None:
            _look_at_deadline(look, draft, status.get("startTime"))
            status = _suspended_or_resumed(look, draft, status)
    _count(look, draft, managed, ending)
    status = _counters(look, status, managed, ending)
    if ending is not None:
        status = _ended(look, draft, status, ending)
    if status != part(job, "status"):
        draft.update_status({**job, "status": status})
    return draft.outcome()


def release(pod: JsonObject, cluster: Cluster, now: Instant) -> Outcome:  # noqa: ARG001 - as all are
    """Let go of a pod that no Job counts any more, so that it can be deleted."""
    if not is_tracked(pod):
        return NOTHING
    owner = cluster.by_uid(controller_uid(pod)) if controller_uid(pod) else None
    if owner is not None and not is_finished(owner):
        return NOTHING
    draft = Draft(pod, SOURCE)
    draft.update(_untracked(pod))
    return draft.outcome()


def is_finished(job: JsonObject) -> bool:
    """Is it over, well or not?"""
    conditions = items(job, "status", "conditions")
    return is_true(conditions, "Complete") or is_true(conditions, "Failed")


def job_of(pod: JsonObject, cluster: Cluster) -> JsonObject | None:
    """The Job that manages a pod."""
    owner = cluster.by_uid(controller_uid(pod)) if controller_uid(pod) else None
    if owner is None or cluster.get(JOB, namespace_of(owner), name_of(owner)) is None:
        return None
    return owner


def _started(look: Look) -> JsonObject:
    """The status with the time since which the Job runs."""
    status: JsonObject = {**look.status, "uncountedTerminatedPods": {}}
    if not status.get("startTime") and not look.is_suspended:
        status["startTime"] = stamp(look.now)
    return status


def _ending(look: Look, started: str | None) -> Ending | None:
    """What ends the Job, in the order in which reasons count."""
    return _already_ending(look) or _failing(look, started) or _failing_by_index(look)


def _already_ending(look: Look) -> Ending | None:
    conditions = items(look.job, "status", "conditions")
    for interim in ("SuccessCriteriaMet", "FailureTarget"):
        held = found(conditions, interim)
        if held is not None and held["status"] == "True":
            return Ending(interim=interim, reason=held["reason"], message=held["message"])
    return None


def _failing(look: Look, started: str | None) -> Ending | None:
    for pod in look.pods:
        if look.spec.get("podFailurePolicy") and has_failed(pod, look.job):
            told = verdict(look.job, pod)
            if told.action is Action.FAIL_JOB:
                return _failure("PodFailurePolicy", told.message)
    if look.failed > backoff_limit(look.job) or restarted_too_often(look.job, look.pods):
        return _failure("BackoffLimitExceeded", "Job has reached the specified backoff limit")
    deadline_s = look.spec.get("activeDeadlineSeconds")
    if deadline_s is not None and not look.is_suspended:
        over_at = after(started, deadline_s)
        if over_at is not None and look.now >= over_at:
            return _failure("DeadlineExceeded", "Job was active longer than specified deadline")
    return None


def _failing_by_index(look: Look) -> Ending | None:
    if not look.is_indexed:
        return None
    if look.has_limit_per_index and look.failed_indexes:
        most = look.spec.get("maxFailedIndexes")
        if most is not None and len(look.failed_indexes) > most:
            return _failure(
                "MaxFailedIndexesExceeded",
                "Job has exceeded the specified maximal number of failed indexes",
            )
        if len(look.failed_indexes) + look.succeeded >= (look.completions or 0):
            return _failure("FailedIndexes", "Job has failed indexes")
    met = success_rule(look.job, look.succeeded_indexes)
    if met is not None:
        return Ending(interim="SuccessCriteriaMet", reason="SuccessPolicy", message=met)
    return None


def _failure(reason: str, message: str) -> Ending:
    return Ending(interim="FailureTarget", reason=reason, message=message)


def _completed(look: Look, managed: Managed) -> Ending | None:
    if len(look.active) - len(managed.deleted) + managed.created > 0:
        return None
    enough = 1 if look.completions is None else look.completions
    if look.succeeded < enough:
        return None
    return Ending(
        interim="SuccessCriteriaMet",
        reason="CompletionsReached",
        message="Reached expected number of succeeded pods",
    )


def _look_at_deadline(look: Look, draft: Draft, started: str | None) -> None:
    deadline_s = look.spec.get("activeDeadlineSeconds")
    if deadline_s is not None and not look.is_suspended:
        draft.look_again(after(started, deadline_s))


def _suspended_or_resumed(look: Look, draft: Draft, status: JsonObject) -> JsonObject:
    conditions = items(look.job, "status", "conditions")
    if look.is_suspended == is_true(conditions, "Suspended"):
        return status
    if look.is_suspended:
        draft.emit("Suspended", "Job suspended")
        new = _condition(look, "Suspended", "JobSuspended", "Job suspended")
        return {**status, "startTime": None, "conditions": _replaced(conditions, new)}
    draft.emit("Resumed", "Job resumed")
    new = {**_condition(look, "Suspended", "JobResumed", "Job resumed"), "status": "False"}
    resumed = _replaced(conditions, new)
    return {**status, "startTime": stamp(look.now), "conditions": resumed}


def _count(look: Look, draft: Draft, managed: Managed, ending: Ending | None) -> None:
    """Let go of pods that are counted now, and delete those that must go."""
    leaving = {uid_of(pod) for pod in managed.deleted}
    for pod in look.pods:
        if is_tracked(pod) and (_may_go(look, pod, ending) or uid_of(pod) in leaving):
            draft.update(_untracked(pod))
    for pod in managed.deleted:
        draft.delete(pod, "SuccessfulDelete", f"Deleted pod: {name_of(pod)}")


def _may_go(look: Look, pod: JsonObject, ending: Ending | None) -> bool:
    if is_leaving(look.job) or ending is not None or phase(pod) == "Succeeded":
        return True
    if not has_failed(pod, look.job):
        return False
    index = index_of(pod)
    kept = look.awaiting_replacement.get(index) if index is not None else None
    return kept is None or uid_of(kept) != uid_of(pod)


def _untracked(pod: JsonObject) -> JsonObject:
    changed = copied(pod)
    changed["metadata"]["finalizers"].remove(TRACKING)
    if not changed["metadata"]["finalizers"]:
        del changed["metadata"]["finalizers"]
    return changed


def _counters(
    look: Look, status: JsonObject, managed: Managed, ending: Ending | None
) -> JsonObject:
    failed = look.failed - len(_uncounted_failures(look, ending))
    if ending is not None and not ending.has_succeeded:
        # When a Job fails, every pod that has not ended counts as failed.
        failed += sum(is_tracked(pod) and look.may_be_counted(pod) for pod in managed.deleted)
    counted: JsonObject = {
        "active": len(look.active) - len(managed.deleted) + managed.created,
        "ready": look.ready - sum(is_ready(pod) for pod in managed.deleted),
        "terminating": len(look.terminating) + len(managed.deleted),
        "succeeded": look.succeeded,
        "failed": failed,
    }
    if look.is_indexed:
        counted["completedIndexes"] = written(look.succeeded_indexes)
    if look.is_indexed and look.has_limit_per_index:
        counted["failedIndexes"] = written(look.failed_indexes)
    return without_zeros(
        status | counted, "ready", "terminating", "uncountedTerminatedPods", "failedIndexes"
    )


def _uncounted_failures(look: Look, ending: Ending | None) -> Sequence[JsonObject]:
    """Failures that are counted later, when the pod that replaces them is there."""
    return [pod for pod in look.newly_failed if not _may_go(look, pod, ending)]


def _ended(look: Look, draft: Draft, status: JsonObject, ending: Ending) -> JsonObject:
    """The conditions of a Job that ends: the interim one now, the last when all pods are gone."""
    conditions: list[JsonObject] = list(status.get("conditions") or [])
    if not is_true(conditions, ending.interim):
        conditions.append(_condition(look, ending.interim, ending.reason, ending.message))
    if status["terminating"] == 0:
        last = _condition(look, ending.final, ending.reason, ending.message)
        conditions.append(last)
        if ending.has_succeeded:
            status = {**status, "completionTime": last["lastTransitionTime"]}
            draft.emit("Completed", "Job completed")
        else:
            draft.warn(ending.reason, ending.message)
    return {**status, "conditions": conditions}


def _condition(look: Look, type_: str, reason: str, message: str) -> JsonObject:
    return {
        "type": type_,
        "status": "True",
        "lastProbeTime": stamp(look.now),
        "lastTransitionTime": stamp(look.now),
        "reason": reason,
        "message": message,
    }


def _replaced(conditions: Sequence[JsonObject], new: JsonObject) -> list[JsonObject]:
    """With the condition of that type in its old place, or at the end."""
    if found(conditions, new["type"]) is None:
        return [*conditions, new]
    return [new if each["type"] == new["type"] else each for each in conditions]
