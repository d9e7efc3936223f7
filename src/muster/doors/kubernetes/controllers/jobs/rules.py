"""What a Job's policies make of its pods: what counts as failed, what ends the Job, what waits."""

from collections.abc import Iterable, Sequence
from enum import Enum

from muster.doors.kubernetes.controllers.jobs.indexes import parsed
from muster.doors.kubernetes.controllers.pods import (
    container_statuses,
    finished_at,
    is_leaving,
    phase,
)
from muster.doors.kubernetes.objects.value import (
    JsonObject,
    annotations_of,
    items,
    metadata,
    name_of,
    namespace_of,
    part,
)
from muster.model.value import MINUTE, SECOND, Instant, Value

TRACKING = "batch.kubernetes.io/job-tracking"
FAILURE_COUNT = "batch.kubernetes.io/job-index-failure-count"
IGNORED_COUNT = "batch.kubernetes.io/job-index-ignored-failure-count"
FIRST_BACKOFF = 10 * SECOND
LONGEST_BACKOFF = 10 * MINUTE
MOST = 2**31 - 1


class Action(Enum):
    """What a rule says about a pod that failed."""

    COUNT = "Count"
    IGNORE = "Ignore"
    FAIL_JOB = "FailJob"
    FAIL_INDEX = "FailIndex"


class Verdict(Value):
    """What becomes of a failure. message: why the Job fails, if it does."""

    action: Action
    message: str = ""


COUNTED = Verdict(action=Action.COUNT)


def is_tracked(pod: JsonObject) -> bool:
    """Is it still to be counted?"""
    return TRACKING in (metadata(pod).get("finalizers") or [])


def replaces_only_failed(job: JsonObject) -> bool:
    """Must a pod have ended before another takes its place?"""
    return part(job, "spec").get("podReplacementPolicy") == "Failed"


def has_failed(pod: JsonObject, job: JsonObject) -> bool:
    """Has it failed, or is it as good as failed because it is being deleted?"""
    if phase(pod) == "Failed":
        return True
    if replaces_only_failed(job):
        return False
    return is_leaving(pod) and phase(pod) != "Succeeded"


def verdict(job: JsonObject, pod: JsonObject) -> Verdict:
    """What the first rule that matches says about a pod that failed."""
    for index, rule in enumerate(items(job, "spec", "podFailurePolicy", "rules")):
        why = _matched(rule, pod)
        if why is None:
            continue
        action = Action(rule["action"])
        text = f"{why} matching {action.value} rule at index {index}"
        return Verdict(action=action, message=text if action is Action.FAIL_JOB else "")
    return COUNTED


def success_rule(job: JsonObject, succeeded: frozenset[int]) -> str | None:
    """Which rule of the success policy is met, in words."""
    if not succeeded:
        return None
    completions = part(job, "spec").get("completions") or 0
    for index, rule in enumerate(items(job, "spec", "successPolicy", "rules")):
        least = rule.get("succeededCount")
        if rule.get("succeededIndexes"):
            wanted = parsed(rule["succeededIndexes"], completions)
            met = wanted & succeeded
            if wanted and (met == wanted or (least is not None and len(met) >= least)):
                return f"Matched rules at index {index}"
        elif least is not None and len(succeeded) >= least:
            return f"Matched rules at index {index}"
    return None


def restarted_too_often(job: JsonObject, pods: Iterable[JsonObject]) -> bool:
    """Have containers that are restarted in place used up the backoff limit?"""
    if part(job, "spec", "template", "spec").get("restartPolicy") != "OnFailure":
        return False
    limit = backoff_limit(job)
    running = [pod for pod in pods if phase(pod) in {"Running", "Pending"}]
    total = sum(each.get("restartCount", 0) for pod in running for each in container_statuses(pod))
    return total > 0 if limit == 0 else total >= limit


def backoff_limit(job: JsonObject) -> int:
    """How often pods may fail. A limit for each index leaves the Job without one of its own."""
    spec = part(job, "spec")
    default = 6 if spec.get("backoffLimitPerIndex") is None else MOST
    return spec.get("backoffLimit", default)


def backoff_until(pods: Sequence[JsonObject], job: JsonObject) -> Instant | None:
    """When the next pod may be created after failures, longer with each since the last success."""
    succeeded = max((finished_at(p) for p in pods if phase(p) == "Succeeded"), default=None)
    # A pod that the controller itself let go of, such as when it suspended the Job, is no failure.
    failed = [
        finished_at(pod)
        for pod in pods
        if has_failed(pod, job) and (is_tracked(pod) or not is_leaving(pod))
    ]
    recent = [at for at in failed if succeeded is None or at > succeeded]
    return _after_failures(len(recent), max(recent)) if recent else None


def index_backoff_until(pod: JsonObject | None) -> Instant | None:
    """When the pod of one index may be replaced."""
    if pod is None:
        return None
    return _after_failures(absolute_failures(pod) + 1, finished_at(pod))


def failure_count(pod: JsonObject) -> int:
    """How often its index had failed before it."""
    return _number(pod, FAILURE_COUNT)


def ignored_count(pod: JsonObject) -> int:
    """How often its index had failed before it in a way that does not count."""
    return _number(pod, IGNORED_COUNT)


def absolute_failures(pod: JsonObject) -> int:
    return failure_count(pod) + ignored_count(pod)


def _after_failures(failures: int, last: Instant) -> Instant:
    wait = min(FIRST_BACKOFF * 2 ** min(failures - 1, 20), LONGEST_BACKOFF)
    return Instant(last + wait)


def _number(pod: JsonObject, annotation: str) -> int:
    text = annotations_of(pod).get(annotation, "")
    return int(text) if text.isdecimal() else 0


def _matched(rule: JsonObject, pod: JsonObject) -> str | None:
    where = f"{namespace_of(pod)}/{name_of(pod)}"
    if rule.get("onExitCodes"):
        status = _exit_code_match(rule["onExitCodes"], pod)
        if status is None:
            return None
        code = status["state"]["terminated"]["exitCode"]
        return f"Container {status['name']} for pod {where} failed with exit code {code}"
    for held in items(pod, "status", "conditions"):
        for wanted in items(rule, "onPodConditions"):
            same = held.get("type") == wanted["type"]
            if same and held.get("status") == wanted.get("status", "True"):
                return f"Pod {where} has condition {held['type']}"
    return None


def _exit_code_match(requirement: JsonObject, pod: JsonObject) -> JsonObject | None:
    for status in container_statuses(pod):
        code = part(status, "state", "terminated").get("exitCode")
        wanted = requirement.get("containerName")
        if not code or (wanted is not None and wanted != status["name"]):
            continue
        if (code in requirement["values"]) == (requirement["operator"] == "In"):
            return status
    return None
