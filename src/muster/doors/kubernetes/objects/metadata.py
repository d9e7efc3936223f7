"""What the server sets in an object's metadata, and what it refuses there."""

from collections.abc import Callable
from typing import Any

from muster.doors.kubernetes.objects.errors import (
    Cause,
    forbidden_field,
    invalid,
    required,
    too_long,
)
from muster.doors.kubernetes.objects.hidden import kept_on
from muster.doors.kubernetes.objects.names import (
    address_faults,
    key_faults,
    label_faults,
    label_value_faults,
    path_segment_faults,
    subdomain_faults,
)
from muster.doors.kubernetes.objects.value import (
    JsonObject,
    Kind,
    annotations_of,
    copied,
    items,
    labels_of,
    metadata,
)
from muster.model.value import Value

MOST_ANNOTATION_BYTES = 256 * 1_024
LONGEST_GENERATED = 63 - 5

SYSTEM_FIELDS = (
    "uid",
    "resourceVersion",
    "generation",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "selfLink",
)
"""What no user sets when an object is created."""

IMMUTABLE = ("name", "namespace", "uid", "creationTimestamp")
ONLY_BY_DELETING = ("deletionTimestamp", "deletionGracePeriodSeconds")

NameFaults = Callable[[str], list[str]]

NAME_FAULTS: dict[str, NameFaults] = {
    "Namespace": label_faults,
    "Service": label_faults,
    "Role": path_segment_faults,
    "RoleBinding": path_segment_faults,
    "ClusterRole": path_segment_faults,
    "ClusterRoleBinding": path_segment_faults,
    "IPAddress": address_faults,
}
"""Kinds whose names follow other rules than most."""


class Creation(Value):
    """What is decided outside: who the object is, and when it began.

    suffix: five letters that end a generated name. now: as in `2026-11-18T01:34:05Z`.
    """

    uid: str
    suffix: str
    now: str


def begun(kind: Kind, obj: JsonObject, namespace: str, made: Creation) -> JsonObject:
    """A new object with its name, uid and first generation; what users may not set is gone."""
    new = copied(obj)
    given = metadata(new)
    kept = {name: value for name, value in given.items() if name not in SYSTEM_FIELDS}
    if not kept.get("name") and kept.get("generateName"):
        kept["name"] = f"{str(kept['generateName'])[:LONGEST_GENERATED]}{made.suffix}"
    if kind.namespaced:
        kept["namespace"] = namespace
    else:
        kept.pop("namespace", None)
    kept.update(uid=made.uid, creationTimestamp=made.now)
    if _has_generation(kind):
        kept["generation"] = 1
    # In the order in which Kubernetes writes them: people read it, too.
    new["metadata"] = kept
    return {
        "kind": kind.kind,
        "apiVersion": kind.api_version,
        **_without(new, "kind", "apiVersion"),
    }


def carried_on(kind: Kind, obj: JsonObject, old: JsonObject) -> JsonObject:
    """A changed object with what it has from before, and a new generation if its spec changed."""
    new = kept_on(copied(obj), old)
    given, before = metadata(new), metadata(old)
    # Where it is may be left to the path of the request.
    if "namespace" in before:
        given["namespace"] = given.get("namespace") or before["namespace"]
    for name in ("uid", "creationTimestamp", "generation", *ONLY_BY_DELETING):
        if name in before and (name == "generation" or not given.get(name)):
            given[name] = before[name]
        elif name not in before:
            given.pop(name, None)
    given.pop("selfLink", None)
    if before.get("namespace") and not given.get("namespace"):
        # The path says it.
        given["namespace"] = before["namespace"]
    new["metadata"] = given
    if _has_generation(kind) and _specified(new) != _specified(old):
        given["generation"] = int(before.get("generation") or 0) + 1
    return new


WITHOUT_GENERATION = frozenset(
    "ConfigMap Secret Namespace ServiceAccount Node Event Endpoints Lease ClusterRole Role "
    "RoleBinding ClusterRoleBinding ResourceQuota LimitRange PodTemplate ControllerRevision "
    "Service HorizontalPodAutoscaler PriorityClass".split()
)
"""Kinds that count no generations, apart from those that set one of their own."""


def _has_generation(kind: Kind) -> bool:
    return kind.kind not in WITHOUT_GENERATION


def _specified(obj: JsonObject) -> JsonObject:
    found = _without(obj, "metadata", "status", "apiVersion", "kind")
    if obj.get("kind") == "Deployment":
        # Its annotations are copied to its ReplicaSets, and so are wishes too; but for this one.
        said = dict(annotations_of(obj))
        said.pop("deployment.kubernetes.io/revision", None)
        found["annotations"] = said
    return found


def _without(obj: JsonObject, *names: str) -> JsonObject:
    return {name: value for name, value in obj.items() if name not in names}


def metadata_faults(kind: Kind, obj: JsonObject, old: JsonObject | None) -> list[Cause]:
    """All that is wrong with an object's metadata."""
    if old is not None:
        return [*_update_faults(obj, old), *_shared_faults(obj)]
    given = metadata(obj)
    name_faults = NAME_FAULTS.get(kind.kind, subdomain_faults)
    causes: list[Cause] = []
    if given.get("generateName"):
        text = str(given["generateName"])
        # What is generated ends in letters, so that a `-` at the end of the beginning is right.
        checked = name_faults(text.rstrip("-") + "a" if text.endswith("-") else text)
        causes += [invalid("metadata.generateName", text, each) for each in checked]
    name = str(given.get("name") or "")
    if not name:
        causes.append(required("metadata.name", "name or generateName is required"))
    else:
        causes += [invalid("metadata.name", name, each) for each in name_faults(name)]
    return [*causes, *_shared_faults(obj)]


def _update_faults(obj: JsonObject, old: JsonObject) -> list[Cause]:
    given, before = metadata(obj), metadata(old)
    causes: list[Cause] = []
    if before.get("deletionTimestamp"):
        known = set(before.get("finalizers") or ())
        extra = sorted(set(given.get("finalizers") or ()) - known)
        if extra:
            shown = "[]string{" + ", ".join(f'"{each}"' for each in extra) + "}"
            text = (
                "no new finalizers can be added if the object is being deleted, "
                f"found new finalizers {shown}"
            )
            causes.append(forbidden_field("metadata.finalizers", text))
    return causes + [
        invalid(f"metadata.{name}", given.get(name), "field is immutable")
        for name in (*IMMUTABLE, *ONLY_BY_DELETING)
        if given.get(name) != before.get(name)
    ]


def _shared_faults(obj: JsonObject) -> list[Cause]:
    return [
        *label_map_faults(labels_of(obj), "metadata.labels"),
        *_annotation_faults(annotations_of(obj)),
        *_owner_faults(items(obj, "metadata", "ownerReferences")),
        *_finalizer_faults(items(obj, "metadata", "finalizers")),
    ]


def label_map_faults(labels: dict[str, str], field: str) -> list[Cause]:
    """All that is wrong with labels, or with a selector made of them."""
    causes: list[Cause] = []
    for key, value in sorted(labels.items()):
        causes += [invalid(field, key, each) for each in key_faults(key)]
        causes += [invalid(field, value, each) for each in label_value_faults(value)]
    return causes


def _annotation_faults(annotations: dict[str, str]) -> list[Cause]:
    causes = [
        invalid("metadata.annotations", key, each)
        for key in sorted(annotations)
        for each in key_faults(key.lower())
    ]
    size = sum(len(key.encode()) + len(str(value).encode()) for key, value in annotations.items())
    if size > MOST_ANNOTATION_BYTES:
        causes.append(too_long("metadata.annotations", MOST_ANNOTATION_BYTES))
    return causes


def _owner_faults(owners: list[Any]) -> list[Cause]:
    causes: list[Cause] = []
    controllers: list[str] = []
    for place, owner in enumerate(owners):
        field = f"metadata.ownerReferences[{place}]"
        causes += [
            required(f"{field}.{name}", "must not be empty")
            for name in ("apiVersion", "kind", "name", "uid")
            if not owner.get(name)
        ]
        if owner.get("kind") == "Event" and owner.get("apiVersion") == "v1":
            text = "/v1, Kind=Event is disallowed from being an owner"
            causes.append(invalid(field, owner, text))
        if owner.get("controller"):
            controllers.append(f"{owner.get('kind')}/{owner.get('name')}")
    if len(controllers) > 1:
        text = (
            'Only one reference can have Controller set to true. Found "true" in references for '
            f"{controllers[0]} and {controllers[1]}"
        )
        causes.append(invalid("metadata.ownerReferences", owners, text))
    return causes


STANDARD_FINALIZERS = frozenset({"kubernetes", "orphan", "foregroundDeletion"})


def _finalizer_faults(finalizers: list[Any]) -> list[Cause]:
    causes: list[Cause] = []
    for each in map(str, finalizers):
        causes += [invalid("metadata.finalizers", each, text) for text in key_faults(each)]
        if "/" not in each and each not in STANDARD_FINALIZERS and not key_faults(each):
            text = "name is neither a standard finalizer name nor is it fully qualified"
            causes.append(invalid("metadata.finalizers", each, text))
    if {"orphan", "foregroundDeletion"} <= set(map(str, finalizers)):
        text = "finalizer orphan and foregroundDeletion cannot be both set"
        causes.append(invalid("metadata.finalizers", finalizers, text))
    return causes
