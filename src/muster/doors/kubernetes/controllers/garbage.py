"""Garbage collection: what is owned goes with the last of its owners, or is let go by them.

A deletion in the foreground waits for those that block it; one that orphans lets them go first.
"""

from collections.abc import Sequence

from muster.doors.kubernetes.controllers.changes import (
    NOTHING,
    Delete,
    Draft,
    Outcome,
    Propagation,
)
from muster.doors.kubernetes.controllers.cluster import Cluster
from muster.doors.kubernetes.controllers.pods import is_leaving
from muster.doors.kubernetes.objects.value import (
    JsonObject,
    copied,
    items,
    metadata,
    namespace_of,
    uid_of,
)
from muster.model.value import Instant

FOREGROUND = "foregroundDeletion"
ORPHAN = "orphan"
SOURCE = "garbage-collector-controller"


def collect(obj: JsonObject, cluster: Cluster, now: Instant) -> Outcome:  # noqa: ARG001 - as all are
    """Delete an object that no owner is left of, and finish deletions that wait for others."""
    draft = Draft(obj, SOURCE)
    if _has(obj, ORPHAN) and is_leaving(obj):
        _let_dependents_go(draft, cluster)
    elif _waits_for_dependents(obj):
        _finish_if_none_blocks(draft, cluster)
    elif is_leaving(obj):
        return NOTHING
    else:
        _delete_if_unowned(draft, cluster)
    return draft.outcome()


def _let_dependents_go(draft: Draft, cluster: Cluster) -> None:
    owner = draft.about
    for each in cluster.dependents(uid_of(owner)):
        if _is_near(owner, each):
            draft.update(_without_owners(each, {uid_of(owner)}))
    draft.update(_without_finalizer(owner, ORPHAN))


def _finish_if_none_blocks(draft: Draft, cluster: Cluster) -> None:
    owner = draft.about
    dependents = [each for each in cluster.dependents(uid_of(owner)) if _is_near(owner, each)]
    if not any(_blocks(each, owner) for each in dependents):
        draft.update(_without_finalizer(owner, FOREGROUND))


def _delete_if_unowned(draft: Draft, cluster: Cluster) -> None:
    obj = draft.about
    references = items(obj, "metadata", "ownerReferences")
    owners = {each["uid"]: _owner(each, obj, cluster) for each in references}
    waiting = [uid for uid, owner in owners.items() if owner and _waits_for_dependents(owner)]
    solid = [uid for uid, owner in owners.items() if owner and uid not in waiting]
    if solid:
        gone = set(owners) - set(solid)
        if gone:
            draft.update(_without_owners(obj, gone))
    elif references:
        _delete(draft, cluster, is_awaited=bool(waiting))


def _delete(draft: Draft, cluster: Cluster, *, is_awaited: bool) -> None:
    """Delete what nobody owns any more; with all that it owns, where an owner waits for it."""
    obj = draft.about
    dependents = cluster.dependents(uid_of(obj))
    if is_awaited and dependents:
        if any(_waits_for_dependents(each) for each in dependents):
            # Two that wait for each other would wait for ever.
            obj = _unblocking(obj)
            draft.update(obj)
        draft.remove(Delete(object=obj, propagation="Foreground"))
        return
    draft.remove(Delete(object=obj, propagation=_propagation(obj)))


def _propagation(obj: JsonObject) -> Propagation:
    if _has(obj, ORPHAN):
        return "Orphan"
    return "Foreground" if _has(obj, FOREGROUND) else "Background"


def _owner(reference: JsonObject, obj: JsonObject, cluster: Cluster) -> JsonObject | None:
    """The owner itself, if it exists where an owner may be."""
    owner = cluster.by_uid(reference["uid"])
    return owner if owner is not None and _is_near(owner, obj) else None


def _is_near(owner: JsonObject, obj: JsonObject) -> bool:
    """An owner is in the same namespace, or in none."""
    return namespace_of(owner) in ("", namespace_of(obj))


def _waits_for_dependents(obj: JsonObject) -> bool:
    return is_leaving(obj) and _has(obj, FOREGROUND)


def _blocks(obj: JsonObject, owner: JsonObject) -> bool:
    return any(
        each["uid"] == uid_of(owner) and each.get("blockOwnerDeletion")
        for each in items(obj, "metadata", "ownerReferences")
    )


def _has(obj: JsonObject, finalizer: str) -> bool:
    return finalizer in items(obj, "metadata", "finalizers")


def _without_finalizer(obj: JsonObject, finalizer: str) -> JsonObject:
    left = [each for each in items(obj, "metadata", "finalizers") if each != finalizer]
    return _with_metadata(obj, "finalizers", left)


def _without_owners(obj: JsonObject, gone: set[str]) -> JsonObject:
    left = [each for each in items(obj, "metadata", "ownerReferences") if each["uid"] not in gone]
    return _with_metadata(obj, "ownerReferences", left)


def _unblocking(obj: JsonObject) -> JsonObject:
    changed = copied(obj)
    for each in items(changed, "metadata", "ownerReferences"):
        each["blockOwnerDeletion"] = False
    return changed


def _with_metadata(obj: JsonObject, field: str, left: Sequence[object]) -> JsonObject:
    """With another list in the metadata; none where it is empty."""
    about = {key: value for key, value in metadata(obj).items() if key != field}
    return {**obj, "metadata": {**about, field: left} if left else about}
