"""The Deployment controller: find or create the ReplicaSet of the template, and move pods to it."""

from muster.doors.kubernetes.controllers.changes import NOTHING, Draft, Outcome
from muster.doors.kubernetes.controllers.cluster import Cluster
from muster.doors.kubernetes.controllers.conditions import found, with_last
from muster.doors.kubernetes.controllers.deployments.revisions import (
    REVISION,
    is_rolling,
    new_replica_set,
    with_annotations,
)
from muster.doors.kubernetes.controllers.deployments.rollout import Rollout
from muster.doors.kubernetes.controllers.deployments.status import (
    condition,
    counted,
    deadline,
    has_deadline,
    is_complete,
    paused_or_resumed,
    with_progress,
)
from muster.doors.kubernetes.controllers.owning import claimed
from muster.doors.kubernetes.controllers.pods import is_finished, is_leaving
from muster.doors.kubernetes.controllers.selecting import is_empty
from muster.doors.kubernetes.objects.kinds import POD, REPLICA_SET
from muster.doors.kubernetes.objects.value import (
    JsonObject,
    annotations_of,
    name_of,
    namespace_of,
    part,
    uid_of,
)
from muster.model.value import Instant

SOURCE = "deployment-controller"


def sync(deployment: JsonObject, cluster: Cluster, now: Instant) -> Outcome:
    """One step of the rollout; the changes that it makes lead to the next."""
    if is_empty(part(deployment, "spec").get("selector")):
        return NOTHING
    draft = Draft(deployment, SOURCE)
    rollout = Rollout(draft, claimed(draft, cluster, REPLICA_SET))
    if is_leaving(deployment):
        conditions = part(deployment, "status").get("conditions", [])
        return _written(draft, rollout, counted(rollout, conditions, now), now)
    conditions = paused_or_resumed(deployment, now)
    if part(deployment, "spec").get("paused"):
        rollout.scale_in_proportion()
        rollout.clean_up()
        return _written(draft, rollout, counted(rollout, conditions, now), now)
    if rollout.is_scaled():
        rollout.scale_in_proportion()
        return _written(draft, rollout, counted(rollout, conditions, now), now)
    if _name_is_taken(rollout, cluster):
        return _collided(draft, deployment)
    had_new = rollout.new is not None
    if is_rolling(deployment):
        _roll(rollout)
    else:
        _recreate(rollout, cluster)
    conditions = _with_news(rollout, conditions, now, had_new=had_new)
    if is_complete(deployment, part(deployment, "status")):
        rollout.clean_up()
    status = with_progress(rollout, counted(rollout, conditions, now), now)
    return _written(draft, rollout, status, now)


def _roll(rollout: Rollout) -> None:
    if rollout.new is None:
        rollout.create_new()
    elif not rollout.scale_new():
        rollout.scale_old()


def _recreate(rollout: Rollout, cluster: Cluster) -> None:
    if rollout.stop_old() or _runs_old_pods(rollout, cluster):
        return
    if rollout.new is None:
        rollout.create_new()
    else:
        rollout.scale(rollout.new, rollout.wanted)


def _runs_old_pods(rollout: Rollout, cluster: Cluster) -> bool:
    space = namespace_of(rollout.deployment)
    for each in rollout.old:
        if part(each, "status").get("replicas"):
            return True
        if any(not is_finished(pod) for pod in cluster.controlled(POD, space, uid_of(each))):
            return True
    return False


def _name_is_taken(rollout: Rollout, cluster: Cluster) -> bool:
    """Would the new ReplicaSet have the name of one that is not ours, or is another's?"""
    if rollout.new is not None:
        return False
    name = name_of(new_replica_set(rollout.deployment))
    return cluster.get(REPLICA_SET, namespace_of(rollout.deployment), name) is not None


def _collided(draft: Draft, deployment: JsonObject) -> Outcome:
    status = part(deployment, "status")
    again = {**status, "collisionCount": (status.get("collisionCount") or 0) + 1}
    draft.update_status({**deployment, "status": again})
    return draft.outcome()


def _with_news(
    rollout: Rollout, conditions: list[JsonObject], now: Instant, *, had_new: bool
) -> list[JsonObject]:
    """With the condition that a new ReplicaSet was created, or was found."""
    if rollout.new is None or not has_deadline(rollout.deployment):
        return conditions
    name = name_of(rollout.new)
    if not had_new:
        words = ("True", "NewReplicaSetCreated", f'Created new replica set "{name}"')
    elif found(conditions, "Progressing") is None:
        words = ("True", "FoundNewReplicaSet", f'Found new replica set "{name}"')
    else:
        return conditions
    return with_last(conditions, condition("Progressing", words, now))


def _written(draft: Draft, rollout: Rollout, status: JsonObject, now: Instant) -> Outcome:
    """Everything that changed, and when to look at the deadline."""
    rollout.write()
    deployment = rollout.deployment
    changed = {**deployment, "status": status}
    if rollout.new is not None:
        told = annotations_of(rollout.new)[REVISION]
        changed = with_annotations(changed, {**annotations_of(deployment), REVISION: told})
    if changed != deployment:
        draft.update_status(changed)
    over = deadline(deployment, status)
    if over is not None and over > now:
        draft.look_again(over)
    return draft.outcome()
