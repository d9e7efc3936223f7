"""How many pods of a Job are created or deleted now."""

from collections.abc import Sequence
from itertools import islice

from muster.doors.kubernetes.controllers.changes import Draft
from muster.doors.kubernetes.controllers.cluster import Cluster
from muster.doors.kubernetes.controllers.jobs.indexes import COMPLETION_INDEX, index_of
from muster.doors.kubernetes.controllers.jobs.look import Look
from muster.doors.kubernetes.controllers.jobs.rules import (
    FAILURE_COUNT,
    IGNORED_COUNT,
    TRACKING,
    Action,
    backoff_until,
    failure_count,
    ignored_count,
    index_backoff_until,
    replaces_only_failed,
    verdict,
)
from muster.doors.kubernetes.controllers.names import LONGEST_PREFIX
from muster.doors.kubernetes.controllers.owning import named, pod_from
from muster.doors.kubernetes.controllers.pods import first_to_go
from muster.doors.kubernetes.objects.value import JsonObject, copied, items, name_of, part
from muster.model.value import Instant, Value

MOST_AT_ONCE = 500
INDEX_VARIABLE = "JOB_COMPLETION_INDEX"


class Managed(Value):
    """What there will be: pods to delete, and how many were created."""

    deleted: tuple[JsonObject, ...] = ()
    created: int = 0


def manage(look: Look, draft: Draft, cluster: Cluster) -> Managed:
    """Create the pods that are missing, or say which are too many. Never both in one look."""
    if look.is_suspended:
        return Managed(deleted=tuple(_to_remove(look, len(look.active))))
    wanted = _wanted(look)
    surplus = _to_remove(look, max(0, len(look.active) - wanted))[:MOST_AT_ONCE]
    if surplus:
        return Managed(deleted=tuple(surplus))
    ending = len(look.terminating) if replaces_only_failed(look.job) else 0
    missing = min(wanted - ending - len(look.active), MOST_AT_ONCE)
    if missing <= 0:
        return Managed()
    return Managed(created=_create(look, draft, cluster, missing))


def _wanted(look: Look) -> int:
    """How many pods there should be."""
    if look.completions is None:
        return len(look.active) if look.succeeded > 0 else look.parallelism
    return max(0, min(look.completions - look.succeeded, look.parallelism))


def _to_remove(look: Look, least: int) -> list[JsonObject]:
    """Pods to delete: those whose index is not theirs, then those that have done least."""
    if not look.is_indexed:
        return first_to_go(look.active)[:least]
    wrong, right = _by_right_to_index(look)
    return wrong + first_to_go(right)[: max(0, least - len(wrong))]


def _by_right_to_index(look: Look) -> tuple[list[JsonObject], list[JsonObject]]:
    """Pods whose index is missing, too high or another's; and the others."""
    wrong = [pod for pod in look.active if not look.may_be_counted(pod)]
    by_index: dict[int | None, list[JsonObject]] = {}
    for pod in look.active:
        if look.may_be_counted(pod):
            by_index.setdefault(index_of(pod), []).append(pod)
    right: list[JsonObject] = []
    for pods in by_index.values():
        *doubles, best = first_to_go(pods)
        wrong += doubles
        right.append(best)
    return wrong, right


def _create(look: Look, draft: Draft, cluster: Cluster, missing: int) -> int:
    if not look.has_limit_per_index and _must_wait(draft, look, backoff_until(look.pods, look.job)):
        return 0
    indexes = _indexes_to_create(look, draft, missing) if look.is_indexed else [None] * missing
    for ordinal, index in enumerate(indexes):
        wanted = _pod(look, index)
        pod = named(wanted, cluster, look.now, ordinal=ordinal)
        draft.create(pod, "SuccessfulCreate", f"Created pod: {name_of(pod)}")
    return len(indexes)


def _must_wait(draft: Draft, look: Look, until: Instant | None) -> bool:
    if until is None or until <= look.now:
        return False
    draft.look_again(until)
    return True


def _indexes_to_create(look: Look, draft: Draft, missing: int) -> Sequence[int]:
    """The first indexes that nobody works on, but for those that wait after a failure."""
    taken = look.succeeded_indexes | look.indexes(look.active)
    if look.has_limit_per_index:
        taken |= look.failed_indexes
    if replaces_only_failed(look.job):
        taken |= look.indexes(look.terminating)
    free = (each for each in range(look.completions or 0) if each not in taken)
    return [
        index
        for index in islice(free, missing)
        if not _must_wait(draft, look, index_backoff_until(look.awaiting_replacement.get(index)))
    ]


def _pod(look: Look, index: int | None) -> JsonObject:
    """The pod of an index, or of none, before it has a name."""
    job = look.job
    template = part(job, "spec", "template")
    if index is None:
        return _tracked(pod_from(template, job))
    middle = f"-{index}-"
    pod = pod_from(template, job, prefix=name_of(job)[: LONGEST_PREFIX - len(middle)] + middle)
    pod["metadata"].setdefault("labels", {})[COMPLETION_INDEX] = str(index)
    annotations = pod["metadata"].setdefault("annotations", {})
    annotations[COMPLETION_INDEX] = str(index)
    if look.has_limit_per_index:
        annotations.update(_failure_counts(look, look.awaiting_replacement.get(index)))
    pod["spec"]["hostname"] = f"{name_of(job)}-{index}"
    for group in ("initContainers", "containers"):
        if pod["spec"].get(group):
            pod["spec"][group] = [_with_variable(each) for each in items(pod, "spec", group)]
    return _tracked(pod)


def _tracked(pod: JsonObject) -> JsonObject:
    finalizers = pod["metadata"].setdefault("finalizers", [])
    if TRACKING not in finalizers:
        finalizers.append(TRACKING)
    return pod


def _failure_counts(look: Look, replaced: JsonObject | None) -> dict[str, str]:
    if replaced is None:
        return {FAILURE_COUNT: "0"}
    ignored = verdict(look.job, replaced).action is Action.IGNORE
    counts = {FAILURE_COUNT: str(failure_count(replaced) + (not ignored))}
    if ignored_count(replaced) + ignored:
        counts[IGNORED_COUNT] = str(ignored_count(replaced) + ignored)
    return counts


def _with_variable(container: JsonObject) -> JsonObject:
    """With the variable that tells a process its index."""
    variables = items(container, "env")
    if any(each.get("name") == INDEX_VARIABLE for each in variables):
        return container
    path = f"metadata.labels['{COMPLETION_INDEX}']"
    source = {"fieldRef": {"apiVersion": "v1", "fieldPath": path}}
    added = {"name": INDEX_VARIABLE, "valueFrom": source}
    return {**copied(container), "env": [*variables, added]}
