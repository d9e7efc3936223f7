"""Who owns what: references to owners, adopting what nobody manages, letting go of what left."""

from muster.doors.kubernetes.controllers.changes import Draft
from muster.doors.kubernetes.controllers.cluster import NO_OWNER, Cluster, controller_uid
from muster.doors.kubernetes.controllers.names import free_name
from muster.doors.kubernetes.controllers.pods import is_finished, is_leaving
from muster.doors.kubernetes.controllers.selecting import selector_of, selects
from muster.doors.kubernetes.objects.kinds import POD
from muster.doors.kubernetes.objects.value import (
    JsonObject,
    Kind,
    copied,
    items,
    labels_of,
    metadata,
    name_of,
    namespace_of,
    part,
    uid_of,
)
from muster.model.value import Instant


def owner_reference(owner: JsonObject, *, is_controller: bool = True) -> JsonObject:
    """As what an owner makes refers to it."""
    reference: JsonObject = {
        "apiVersion": owner["apiVersion"],
        "kind": owner["kind"],
        "name": name_of(owner),
        "uid": uid_of(owner),
    }
    if is_controller:
        reference |= {"controller": True, "blockOwnerDeletion": True}
    return reference


def is_controlled_by(obj: JsonObject, owner: JsonObject) -> bool:
    return controller_uid(obj) == uid_of(owner)


def controller_of(obj: JsonObject) -> JsonObject | None:
    """The reference to the owner that manages it."""
    for owner in items(obj, "metadata", "ownerReferences"):
        if owner.get("controller"):
            return owner
    return None


def claimed(
    draft: Draft, cluster: Cluster, kind: Kind, *, finalizer: str | None = None
) -> list[JsonObject]:
    """What the draft's object manages.

    It lets go of what its selector no longer selects, and adopts what nobody manages.
    finalizer: what an adopted object gets, so that it does not go before it is counted.
    """
    owner = draft.about
    selector = selector_of(owner)
    space = namespace_of(owner)
    kept: list[JsonObject] = []
    for each in cluster.controlled(kind, space, uid_of(owner)):
        if selects(selector, labels_of(each)) or is_leaving(owner):
            kept.append(each)
        else:
            draft.update(_released(each, owner, finalizer))
    if is_leaving(owner):
        return kept
    for each in cluster.controlled(kind, space, NO_OWNER):
        if is_leaving(each) or is_finished(each) or not selects(selector, labels_of(each)):
            continue
        adopted = _adopted(each, owner, finalizer)
        draft.update(adopted)
        kept.append(adopted)
    return kept


def pod_from(template: JsonObject, owner: JsonObject, *, prefix: str | None = None) -> JsonObject:
    """A pod as a template wants it, without a name yet."""
    made: JsonObject = {"generateName": prefix or f"{name_of(owner)}-"}
    for field in ("labels", "annotations", "finalizers"):
        if part(template, "metadata").get(field):
            made[field] = copied(template)["metadata"][field]
    made["namespace"] = namespace_of(owner)
    made["ownerReferences"] = [owner_reference(owner)]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": made,
        "spec": copied(part(template, "spec")),
    }


def named(
    obj: JsonObject, cluster: Cluster, now: Instant, *, kind: Kind = POD, ordinal: int = 0
) -> JsonObject:
    """The object with a name that its generateName begins, and no other object has.

    ordinal: which of those made in one look it is.
    """
    about = metadata(obj)
    space = str(about.get("namespace") or "")
    owner = controller_uid(obj)
    name = free_name(
        about["generateName"],
        f"{owner}/{now}/{ordinal}",
        lambda name: cluster.get(kind, space, name) is not None,
    )
    return {**obj, "metadata": {**about, "name": name}}


def _released(obj: JsonObject, owner: JsonObject, finalizer: str | None) -> JsonObject:
    changed = copied(obj)
    about = changed["metadata"]
    about["ownerReferences"] = [
        each for each in about.get("ownerReferences", []) if each["uid"] != uid_of(owner)
    ]
    if finalizer in about.get("finalizers", []):
        about["finalizers"].remove(finalizer)
    return changed


def _adopted(obj: JsonObject, owner: JsonObject, finalizer: str | None) -> JsonObject:
    changed = copied(obj)
    about = changed["metadata"]
    about.setdefault("ownerReferences", []).append(owner_reference(owner))
    if finalizer and finalizer not in about.setdefault("finalizers", []):
        about["finalizers"].append(finalizer)
    return changed
