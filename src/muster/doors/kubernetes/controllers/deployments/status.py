"""What a Deployment says of itself: counts, and whether its rollout gets on."""

from collections.abc import Sequence

from muster.doors.kubernetes.controllers.amounts import without_zeros
from muster.doors.kubernetes.controllers.conditions import found, with_last, without
from muster.doors.kubernetes.controllers.deployments.revisions import max_unavailable, replicas
from muster.doors.kubernetes.controllers.deployments.rollout import Rollout, available, total
from muster.doors.kubernetes.objects.times import after, stamp
from muster.doors.kubernetes.objects.value import JsonObject, items, metadata, name_of, part
from muster.model.value import SECOND, Instant

NO_DEADLINE = 2**31 - 1


def counted(rollout: Rollout, conditions: Sequence[JsonObject], now: Instant) -> JsonObject:
    """The counts of all ReplicaSets, and whether enough pods are available."""
    deployment, everything = rollout.deployment, rollout.all()
    there = sum(map(available, everything))
    if there >= replicas(deployment) - max_unavailable(deployment):
        words = ("True", "MinimumReplicasAvailable", "Deployment has minimum availability.")
    else:
        words = (
            "False",
            "MinimumReplicasUnavailable",
            "Deployment does not have minimum availability.",
        )
    return without_zeros(
        {
            "observedGeneration": metadata(deployment).get("generation"),
            "replicas": _sum(everything, "replicas"),
            "updatedReplicas": _sum([rollout.new] if rollout.new else [], "replicas"),
            "readyReplicas": _sum(everything, "readyReplicas"),
            "availableReplicas": there,
            "unavailableReplicas": max(0, total(everything) - there),
            "terminatingReplicas": _sum(everything, "terminatingReplicas"),
            "collisionCount": part(deployment, "status").get("collisionCount"),
            "conditions": with_last(conditions, condition("Available", words, now)),
        },
        "terminatingReplicas",
        "collisionCount" if part(deployment, "status").get("collisionCount") is not None else "",
    )


def with_progress(rollout: Rollout, status: JsonObject, now: Instant) -> JsonObject:
    """The status with what is to be said about the rollout's progress, and about refused pods."""
    deployment = rollout.deployment
    conditions: list[JsonObject] = status.get("conditions", [])
    if not has_deadline(deployment):
        conditions = without(conditions, "Progressing")
    elif not _is_over(status, conditions):
        conditions = _progress(rollout, status, conditions, now)
    failure = _replica_failure(rollout)
    conditions = (
        without(conditions, "ReplicaFailure") if failure is None else with_last(conditions, failure)
    )
    return {**status, "conditions": conditions}


def paused_or_resumed(deployment: JsonObject, now: Instant) -> list[JsonObject]:
    """The conditions, with one that stops the clock of the deadline while it is paused."""
    conditions = items(deployment, "status", "conditions")
    held = found(conditions, "Progressing")
    reason = held.get("reason") if held else None
    if not has_deadline(deployment) or reason == "ProgressDeadlineExceeded":
        return conditions
    is_paused = bool(part(deployment, "spec").get("paused"))
    if is_paused and reason != "DeploymentPaused":
        words = ("Unknown", "DeploymentPaused", "Deployment is paused")
    elif not is_paused and reason == "DeploymentPaused":
        words = ("Unknown", "DeploymentResumed", "Deployment is resumed")
    else:
        return conditions
    return with_last(conditions, condition("Progressing", words, now))


def is_complete(deployment: JsonObject, status: JsonObject) -> bool:
    """Are all pods new, and available?"""
    wanted = replicas(deployment)
    counts = ("updatedReplicas", "replicas", "availableReplicas")
    return all(status.get(each, 0) == wanted for each in counts) and (
        status.get("observedGeneration", 0) >= metadata(deployment).get("generation", 0)
    )


def deadline(deployment: JsonObject, status: JsonObject) -> Instant | None:
    """When a rollout that does not get on will have taken too long."""
    held = found(status.get("conditions", []), "Progressing")
    if not has_deadline(deployment) or held is None or is_complete(deployment, status):
        return None
    if held["reason"] in {"ProgressDeadlineExceeded", "NewReplicaSetAvailable"}:
        return None
    limit_s: int = part(deployment, "spec")["progressDeadlineSeconds"]
    over = after(held.get("lastUpdateTime"), limit_s)
    return None if over is None else Instant(over + SECOND)


def has_deadline(deployment: JsonObject) -> bool:
    return part(deployment, "spec").get("progressDeadlineSeconds") not in (None, NO_DEADLINE)


def condition(type_: str, words: tuple[str, str, str], now: Instant) -> JsonObject:
    """A condition of a Deployment, in words: status, reason, message."""
    status, reason, message = words
    return {
        "type": type_,
        "status": status,
        "lastUpdateTime": stamp(now),
        "lastTransitionTime": stamp(now),
        "reason": reason,
        "message": message,
    }


def _sum(replica_sets: Sequence[JsonObject], count: str) -> int:
    return sum(part(each, "status").get(count, 0) for each in replica_sets)


def _is_over(status: JsonObject, conditions: Sequence[JsonObject]) -> bool:
    held = found(conditions, "Progressing")
    same = status.get("replicas", 0) == status.get("updatedReplicas", 0)
    return same and held is not None and held["reason"] == "NewReplicaSetAvailable"


def _progress(
    rollout: Rollout, status: JsonObject, conditions: Sequence[JsonObject], now: Instant
) -> list[JsonObject]:
    deployment = rollout.deployment
    what = f'Deployment "{name_of(deployment)}"'
    if rollout.new is not None:
        what = f'ReplicaSet "{name_of(rollout.new)}"'
    if is_complete(deployment, status):
        words = ("True", "NewReplicaSetAvailable", f"{what} has successfully progressed.")
        return with_last(conditions, condition("Progressing", words, now))
    if _gets_on(part(deployment, "status"), status):
        words = ("True", "ReplicaSetUpdated", f"{what} is progressing.")
        new = condition("Progressing", words, now)
        held = found(conditions, "Progressing")
        if held is not None and held["status"] == "True":
            new["lastTransitionTime"] = held["lastTransitionTime"]
        return [*without(conditions, "Progressing"), new]
    over = deadline(deployment, status)
    if over is not None and now >= over:
        words = ("False", "ProgressDeadlineExceeded", f"{what} has timed out progressing.")
        return with_last(conditions, condition("Progressing", words, now))
    return list(conditions)


def _gets_on(old: JsonObject, new: JsonObject) -> bool:
    def grew(count: str) -> bool:
        return new.get(count, 0) > old.get(count, 0)

    def outdated(status: JsonObject) -> int:
        return status.get("replicas", 0) - status.get("updatedReplicas", 0)

    fewer_old = outdated(new) < outdated(old)
    return fewer_old or any(map(grew, ("updatedReplicas", "readyReplicas", "availableReplicas")))


def _replica_failure(rollout: Rollout) -> JsonObject | None:
    """The first failure of a ReplicaSet; one of the new ReplicaSet before others."""
    order = [rollout.new, *rollout.old] if rollout.new else rollout.old
    for each in order:
        held = found(items(each, "status", "conditions"), "ReplicaFailure")
        if held is not None:
            return {**held, "lastUpdateTime": held["lastTransitionTime"]}
    return None
