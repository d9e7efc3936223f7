"""What an object is when it is new, and what a change makes of it: filled in, and checked."""

from collections.abc import Callable

from muster.doors.kubernetes.objects.errors import invalid_object
from muster.doors.kubernetes.objects.metadata import (
    Creation,
    begun,
    carried_on,
    metadata_faults,
)
from muster.doors.kubernetes.objects.rules import Rules
from muster.doors.kubernetes.objects.schemas.types import Schema
from muster.doors.kubernetes.objects.shaping import Shaped
from muster.doors.kubernetes.objects.value import JsonObject, Kind, copied, items, metadata, name_of
from muster.model.value import Value

STATUS = "status"
STATUS_PATHS = (STATUS, "approval")
"""Paths that write the status and nothing else; `approval` is that of signing requests."""


class Blueprint(Value):
    """All that is known of a kind where its objects are made.

    read: an object that is kept, as one of this version of the kind.
    """

    kind: Kind
    rules: Rules
    schema: Schema | None = None
    read: Callable[[JsonObject], JsonObject] = copied

    @property
    def has_status(self) -> bool:
        """Is its status a thing of its own, that only its path changes?"""
        return any(each.name == STATUS for each in self.kind.subresources)

    def empty(self) -> JsonObject:
        """An object of this kind in which nobody has set anything."""
        return {"metadata": {}} if self.schema is None else Shaped(self.schema, {}).object

    def in_shape(self, obj: JsonObject) -> JsonObject:
        """The object as its type writes it: what is empty is there, or not, as it should be."""
        return obj if self.schema is None else Shaped(self.schema, obj).object


def new_object(
    blueprint: Blueprint, given: JsonObject, namespace: str, made: Creation
) -> JsonObject:
    """A new object, complete; StatusError says all that is wrong with it."""
    kind, rules = blueprint.kind, blueprint.rules
    obj = begun(kind, given, namespace, made)
    if blueprint.has_status and not rules.keeps_status:
        obj.pop(STATUS, None)
    obj = _filled_in(blueprint, obj, None)
    _demand_valid(blueprint, obj, None)
    return obj


def before_admission(
    blueprint: Blueprint, given: JsonObject, namespace: str, made: Creation
) -> JsonObject:
    """A new object with its defaults, and without what is added to it: what its writer manages."""
    obj = begun(blueprint.kind, given, namespace, made)
    if blueprint.rules.default is not None:
        obj = blueprint.rules.default(obj)
    return {**_named(blueprint.kind), **blueprint.in_shape(obj)}


def next_object(
    blueprint: Blueprint, given: JsonObject, old: JsonObject, subresource: str
) -> JsonObject:
    """The object after a change; StatusError says all that is wrong with it."""
    new = _merged(blueprint, given, old, subresource)
    new = _filled_in(blueprint, new, old)
    new = carried_on(blueprint.kind, new, old)
    _demand_valid(blueprint, new, old)
    return new


def is_done_with(obj: JsonObject) -> bool:
    """Is it being deleted, and nobody has anything to finish any more?"""
    given = metadata(obj)
    return (
        bool(given.get("deletionTimestamp"))
        and not given.get("finalizers")
        and not given.get("deletionGracePeriodSeconds")
        and not items(obj, "spec", "finalizers")
    )


def _merged(
    blueprint: Blueprint, given: JsonObject, old: JsonObject, subresource: str
) -> JsonObject:
    """Of the status the path of the status decides, of the rest any other path."""
    new = copied(given)
    if subresource in STATUS_PATHS:
        return {**copied(old), "metadata": metadata(new), STATUS: new.get(STATUS, {})}
    if subresource == "finalize":
        return {**copied(old), "spec": new.get("spec", {})}
    if blueprint.has_status and STATUS in old:
        new[STATUS] = copied(old)[STATUS]
    return new


def _filled_in(blueprint: Blueprint, obj: JsonObject, old: JsonObject | None) -> JsonObject:
    rules = blueprint.rules
    if rules.default is not None:
        obj = rules.default(obj)
    if rules.prepare is not None:
        obj = rules.prepare(obj, old)
    return {**_named(blueprint.kind), **blueprint.in_shape(obj)}


def _named(kind: Kind) -> JsonObject:
    return {"kind": kind.kind, "apiVersion": kind.api_version}


def _demand_valid(blueprint: Blueprint, obj: JsonObject, old: JsonObject | None) -> None:
    causes = metadata_faults(blueprint.kind, obj, old)
    if blueprint.rules.validate is not None:
        causes += blueprint.rules.validate(obj, old)
    if causes:
        raise invalid_object(blueprint.kind, name_of(obj), causes)
