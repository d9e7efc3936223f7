"""Which ReplicaSet of a Deployment is for which template, and what they remember of it."""

from collections.abc import Iterable, Sequence

from muster.doors.kubernetes.controllers.amounts import scaled
from muster.doors.kubernetes.controllers.names import template_hash
from muster.doors.kubernetes.controllers.owning import owner_reference
from muster.doors.kubernetes.controllers.pods import created_at
from muster.doors.kubernetes.objects.value import (
    JsonObject,
    annotations_of,
    copied,
    labels_of,
    name_of,
    namespace_of,
    part,
)

HASH = "pod-template-hash"
REVISION = "deployment.kubernetes.io/revision"
HISTORY = "deployment.kubernetes.io/revision-history"
DESIRED = "deployment.kubernetes.io/desired-replicas"
MOST = "deployment.kubernetes.io/max-replicas"
NOT_COPIED = frozenset(
    {
        "kubectl.kubernetes.io/last-applied-configuration",
        "deprecated.deployment.rollback.to",
        REVISION,
        HISTORY,
        DESIRED,
        MOST,
    }
)
LONGEST_HISTORY = 2000
LONGEST_NAME = 253


def by_age(replica_sets: Iterable[JsonObject]) -> list[JsonObject]:
    """Oldest first."""
    return sorted(replica_sets, key=lambda each: (created_at(each), name_of(each)))


def current(deployment: JsonObject, replica_sets: Sequence[JsonObject]) -> JsonObject | None:
    """The oldest ReplicaSet that has the Deployment's template."""
    wanted = _without_hash(part(deployment, "spec", "template"))
    for each in by_age(replica_sets):
        if _without_hash(part(each, "spec", "template")) == wanted:
            return each
    return None


def revision(replica_set: JsonObject) -> int:
    text = annotations_of(replica_set).get(REVISION, "")
    return int(text) if text.isdecimal() else 0


def replicas(obj: JsonObject) -> int:
    """How many pods it is to have."""
    return part(obj, "spec").get("replicas", 1)


def new_replica_set(deployment: JsonObject) -> JsonObject:
    """The ReplicaSet of the Deployment's template, without pods."""
    spec = part(deployment, "spec")
    template = copied(spec["template"])
    collisions = part(deployment, "status").get("collisionCount")
    hashed = template_hash(template, collisions=collisions)
    labels = {**labels_of(template), HASH: hashed}
    template.setdefault("metadata", {})["labels"] = labels
    selector = copied(spec["selector"])
    selector.setdefault("matchLabels", {})[HASH] = hashed
    wanted: JsonObject = {"replicas": 0, "selector": selector, "template": template}
    if spec.get("minReadySeconds"):
        wanted["minReadySeconds"] = spec["minReadySeconds"]
    return {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": {
            "name": f"{name_of(deployment)[: LONGEST_NAME - len(hashed) - 1]}-{hashed}",
            "namespace": namespace_of(deployment),
            "labels": dict(labels),
            "ownerReferences": [owner_reference(deployment)],
        },
        "spec": wanted,
    }


def brought_up_to_date(
    replica_set: JsonObject, deployment: JsonObject, number: int, *, is_new: bool
) -> JsonObject:
    """With the Deployment's annotations, and a revision that is not below this number."""
    kept = dict(annotations_of(replica_set))
    kept |= {
        key: value for key, value in annotations_of(deployment).items() if key not in NOT_COPIED
    }
    before = revision(replica_set)
    if before < number:
        if REVISION in kept:
            kept[HISTORY] = _history(kept.get(HISTORY, ""), kept[REVISION])
        kept[REVISION] = str(number)
    if is_new:
        kept |= size_annotations(deployment)
    changed = with_annotations(replica_set, kept)
    min_ready_s = part(deployment, "spec").get("minReadySeconds") or 0
    if (part(changed, "spec").get("minReadySeconds") or 0) != min_ready_s:
        changed = {**changed, "spec": {**changed["spec"], "minReadySeconds": min_ready_s}}
    return changed


def with_annotations(obj: JsonObject, annotations: dict[str, str]) -> JsonObject:
    """The object with these annotations and no others."""
    if annotations == annotations_of(obj):
        return obj
    return {**obj, "metadata": {**obj["metadata"], "annotations": annotations}}


def size_annotations(deployment: JsonObject) -> dict[str, str]:
    """What a ReplicaSet remembers of the size of the whole."""
    wanted = replicas(deployment)
    return {DESIRED: str(wanted), MOST: str(wanted + max_surge(deployment))}


def is_rolling(deployment: JsonObject) -> bool:
    return part(deployment, "spec", "strategy").get("type", "RollingUpdate") == "RollingUpdate"


def max_surge(deployment: JsonObject) -> int:
    """How many pods there may be beyond those wanted."""
    if not is_rolling(deployment):
        return 0
    bounds = part(deployment, "spec", "strategy", "rollingUpdate")
    return scaled(bounds.get("maxSurge", "25%"), replicas(deployment), up=True)


def max_unavailable(deployment: JsonObject) -> int:
    """How many of the pods wanted may be missing."""
    wanted = replicas(deployment)
    if not is_rolling(deployment) or wanted == 0:
        return 0
    bounds = part(deployment, "spec", "strategy", "rollingUpdate")
    missing = scaled(bounds.get("maxUnavailable", "25%"), wanted, up=False)
    # Without leave to go either way nothing could ever move.
    if missing == 0 and max_surge(deployment) == 0:
        missing = 1
    return min(missing, wanted)


def _without_hash(template: JsonObject) -> JsonObject:
    about = part(template, "metadata")
    labels = {key: value for key, value in part(about, "labels").items() if key != HASH}
    return {**template, "metadata": {**about, "labels": labels}}


def _history(held: str, revision_before: str) -> str:
    revisions = [*filter(None, held.split(",")), revision_before]
    while revisions and len(",".join(revisions)) > LONGEST_HISTORY:
        revisions.pop(0)
    return ",".join(revisions)
