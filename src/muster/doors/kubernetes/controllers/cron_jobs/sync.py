"""The CronJob controller: starts Jobs when they are due, and forgets those that are long over."""

from collections.abc import Sequence
from datetime import UTC, datetime

from muster.doors.kubernetes.controllers.amounts import without_zeros
from muster.doors.kubernetes.controllers.changes import Create, Draft, Emit, Outcome
from muster.doors.kubernetes.controllers.cluster import Cluster
from muster.doors.kubernetes.controllers.conditions import is_true
from muster.doors.kubernetes.controllers.cron_jobs.schedule import (
    Schedule,
    ScheduleError,
    parsed,
    time_zone,
)
from muster.doors.kubernetes.controllers.jobs.sync import is_finished
from muster.doors.kubernetes.controllers.owning import owner_reference
from muster.doors.kubernetes.controllers.pods import created_at, is_leaving
from muster.doors.kubernetes.objects.kinds import JOB
from muster.doors.kubernetes.objects.times import instant, stamp
from muster.doors.kubernetes.objects.value import (
    JsonObject,
    annotations_of,
    copied,
    items,
    metadata,
    name_of,
    namespace_of,
    part,
    uid_of,
)
from muster.model.value import MINUTE, SECOND, Instant, Value

SOURCE = "cronjob-controller"
SCHEDULED_AT = "batch.kubernetes.io/cronjob-scheduled-timestamp"
TOO_MANY = 100


class Due(Value):
    """The latest time that is past and had no Job yet. missed: how many there were about."""

    at: Instant
    missed: int


def sync(cron_job: JsonObject, cluster: Cluster, now: Instant) -> Outcome:
    """Start the Job that is due, if there is one, and say which Jobs are active."""
    draft = Draft(cron_job, SOURCE)
    jobs = cluster.controlled(JOB, namespace_of(cron_job), uid_of(cron_job))
    status = _seen(draft, jobs)
    if not is_leaving(cron_job):
        status = _started(draft, jobs, status, now)
        _forget(draft, jobs)
    if status != part(cron_job, "status"):
        draft.update_status({**cron_job, "status": status})
    return draft.outcome()


def due(cron_job: JsonObject, schedule: Schedule, now: Instant) -> Due | None:
    """What should have started by now, counted from the last start."""
    spec = part(cron_job, "spec")
    since = instant(part(cron_job, "status").get("lastScheduleTime")) or created_at(cron_job)
    if spec.get("startingDeadlineSeconds") is not None:
        since = max(since, Instant(now - spec["startingDeadlineSeconds"] * SECOND))
    first = schedule.after(since)
    if first is None or first > now:
        return None
    second = schedule.after(first)
    if second is None or second > now:
        return Due(at=first, missed=0)
    between = second - first
    missed, back = (now - first) // between + 1, 2
    at = first
    # Near where the latest should be, and further back where a schedule is not regular.
    while back <= missed:
        near = schedule.after(Instant(max(since, first + (missed - back) * between)))
        if near is not None and near <= now:
            at = near
            break
        back *= 2
    while (following := schedule.after(at)) is not None and following <= now:
        at = following
    return Due(at=at, missed=missed)


def _seen(draft: Draft, jobs: Sequence[JsonObject]) -> JsonObject:
    """The status after a look at the Jobs that there are."""
    cron_job = draft.about
    status = part(cron_job, "status")
    listed = {each["uid"]: each for each in items(cron_job, "status", "active")}
    there = {uid_of(each): each for each in jobs}
    active: list[JsonObject] = []
    for uid, reference in listed.items():
        if uid not in there:
            draft.emit("MissingJob", f"Active job went missing: {reference['name']}")
        elif is_finished(there[uid]):
            job = there[uid]
            how = "Complete" if _has_succeeded(job) else "Failed"
            draft.emit("SawCompletedJob", f"Saw completed job: {name_of(job)}, condition: {how}")
        else:
            active.append(reference)
    # Those that somebody made by hand, with this CronJob as their owner, are not ours to count.
    ours = (each for each in jobs if SCHEDULED_AT in annotations_of(each))
    active += [
        _reference(each) for each in ours if not is_finished(each) and uid_of(each) not in listed
    ]
    ends = [part(each, "status").get("completionTime") for each in jobs if _has_succeeded(each)]
    last = max(filter(None, [*ends, status.get("lastSuccessfulTime")]), default=None)
    return without_zeros({**status, "active": active, "lastSuccessfulTime": last})


def _started(
    draft: Draft, jobs: Sequence[JsonObject], status: JsonObject, now: Instant
) -> JsonObject:
    """The status after the Job that is due was started."""
    spec = part(draft.about, "spec")
    if spec.get("suspend"):
        return status
    try:
        schedule = parsed(spec["schedule"], spec.get("timeZone") or "")
        late = due({**draft.about, "status": status}, schedule, now)
        following = schedule.after(now)
    except ScheduleError as error:
        draft.warn("UnparseableSchedule", f'unparseable schedule: "{spec["schedule"]}" : {error}')
        return status
    draft.look_again(following)
    if late is None:
        return status
    if late.missed > TOO_MANY:
        draft.warn("TooManyMissedTimes", _TOO_MANY_WORDS)
    policy = spec.get("concurrencyPolicy", "Allow")
    active = items(status, "active")
    if policy == "Forbid" and active:
        if now - late.at < MINUTE:
            draft.emit("JobAlreadyActive", _FORBIDDEN_WORDS)
        return status
    name = job_name(draft.about, late.at)
    if any(name_of(each) == name for each in jobs):
        return {**status, "lastScheduleTime": stamp(late.at)}
    if policy == "Replace":
        _replace(draft, jobs, {each["uid"] for each in active})
        status = {key: value for key, value in status.items() if key != "active"}
    draft.make(_create(draft, late.at))
    return {**status, "lastScheduleTime": stamp(late.at)}


def job_name(cron_job: JsonObject, at: Instant) -> str:
    """The same for the same time, so that no Job is started twice."""
    return f"{name_of(cron_job)}-{at // MINUTE}"


def _replace(draft: Draft, jobs: Sequence[JsonObject], active: set[str]) -> None:
    for each in jobs:
        if uid_of(each) in active and not is_leaving(each):
            draft.delete(each, "SuccessfulDelete", f"Deleted job {name_of(each)}")


def _create(draft: Draft, at: Instant) -> Create:
    cron_job = draft.about
    template = part(cron_job, "spec", "jobTemplate")
    zone = time_zone(part(cron_job, "spec").get("timeZone") or "")
    moment = datetime.fromtimestamp(at // SECOND, tz=UTC).astimezone(zone)
    scheduled = moment.isoformat().replace("+00:00", "Z")
    about: JsonObject = {
        "name": job_name(cron_job, at),
        "namespace": namespace_of(cron_job),
        "annotations": {**annotations_of(template), SCHEDULED_AT: scheduled},
        "ownerReferences": [owner_reference(cron_job)],
    }
    if part(template, "metadata").get("labels"):
        about["labels"] = dict(template["metadata"]["labels"])
    job: JsonObject = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": about,
        "spec": copied(part(template, "spec")),
    }
    return Create(
        object=job,
        emitted=_event(cron_job, "Normal", f"Created job {about['name']}"),
        refusal=_event(cron_job, "Warning", "Error creating job: "),
    )


def _event(cron_job: JsonObject, type_: str, message: str) -> Emit:
    if type_ == "Normal":
        return Emit(
            about=cron_job,
            type="Normal",
            reason="SuccessfulCreate",
            message=message,
            source=SOURCE,
        )
    return Emit(
        about=cron_job, type="Warning", reason="FailedCreate", message=message, source=SOURCE
    )


def _forget(draft: Draft, jobs: Sequence[JsonObject]) -> None:
    """Delete the oldest Jobs that are over, beyond what the history keeps."""
    spec = part(draft.about, "spec")
    over = sorted(
        (each for each in jobs if is_finished(each) and not is_leaving(each)),
        key=lambda each: (part(each, "status").get("startTime") or "~", name_of(each)),
    )
    for limit, kept in (
        (spec.get("successfulJobsHistoryLimit"), [e for e in over if _has_succeeded(e)]),
        (spec.get("failedJobsHistoryLimit"), [e for e in over if not _has_succeeded(e)]),
    ):
        for each in kept[: max(0, len(kept) - limit)] if limit is not None else ():
            draft.delete(each, "SuccessfulDelete", f"Deleted job {name_of(each)}")


def _has_succeeded(job: JsonObject) -> bool:
    return is_true(items(job, "status", "conditions"), "Complete")


def _reference(job: JsonObject) -> JsonObject:
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "name": name_of(job),
        "namespace": namespace_of(job),
        "uid": uid_of(job),
        "resourceVersion": metadata(job).get("resourceVersion", ""),
    }


_TOO_MANY_WORDS = (
    "too many missed start times. Set or decrease .spec.startingDeadlineSeconds or check clock skew"
)
_FORBIDDEN_WORDS = (
    "Not starting job because prior execution is running and concurrency policy is Forbid"
)
