"""Who manages which field of an object: `managedFields`, and server-side apply."""

from collections.abc import Iterable, Mapping
from typing import Any

from muster.doors.kubernetes.objects.errors import (
    Cause,
    CauseReason,
    Reason,
    StatusError,
    cause_json,
)
from muster.doors.kubernetes.objects.fields import (
    NO_FIELDS,
    Difference,
    Fields,
    Path,
    compared,
    fields_of,
    from_fields_v1,
    merged,
    path_text,
    to_fields_v1,
    without,
)
from muster.doors.kubernetes.objects.last_applied import applied_before, noted
from muster.doors.kubernetes.objects.schemas.types import Schema
from muster.doors.kubernetes.objects.value import JsonObject, copied, is_map, items, metadata
from muster.model.value import Value, replace

MOST_UPDATERS = 10
"""More managers that only update are counted together, the oldest first."""

ANCIENT = "ancient-changes"

APPLY, UPDATE = "Apply", "Update"

_SERVERS_OWN = frozenset(
    {
        ("f:apiVersion",),
        ("f:kind",),
        ("f:metadata",),
        *(
            ("f:metadata", f"f:{name}")
            for name in (
                "name",
                "namespace",
                "creationTimestamp",
                "selfLink",
                "uid",
                "clusterName",
                "generation",
                "managedFields",
                "resourceVersion",
                "deletionTimestamp",
                "deletionGracePeriodSeconds",
            )
        ),
    }
)
"""Fields that belong to the server: nobody manages them."""


class Manager(Value):
    """Who manages fields, and how. version: the apiVersion in which the fields are named."""

    name: str
    operation: str
    version: str
    subresource: str = ""


class Managed(Value):
    """What one manager manages. since: when that changed last."""

    manager: Manager
    fields: Fields
    since: str


Managers = dict[Manager, Managed]


def managers_of(obj: JsonObject) -> Managers:
    """Who manages what of this object; entries that cannot be read are left out."""
    found: Managers = {}
    for each in items(obj, "metadata", "managedFields"):
        if not is_map(each) or each.get("fieldsType", "FieldsV1") != "FieldsV1":
            continue
        manager = Manager(
            name=str(each.get("manager", "")),
            operation=str(each.get("operation", UPDATE)),
            version=str(each.get("apiVersion", "")),
            subresource=str(each.get("subresource", "")),
        )
        fields = from_fields_v1(each.get("fieldsV1") or {})
        found[manager] = Managed(manager=manager, fields=fields, since=str(each.get("time", "")))
    return found


def with_managers(obj: JsonObject, managers: Managers) -> JsonObject:
    """The object, saying who manages what of it."""
    new = copied(obj)
    written = [_entry(each) for each in sorted(managers.values(), key=_order) if each.fields]
    if written:
        metadata(new)["managedFields"] = written
    else:
        metadata(new).pop("managedFields", None)
    return new


def _order(each: Managed) -> tuple[str, ...]:
    manager = each.manager
    return manager.operation, each.since, manager.name, manager.version, manager.subresource


def _entry(each: Managed) -> JsonObject:
    manager = each.manager
    entry: JsonObject = {
        "manager": manager.name,
        "operation": manager.operation,
        "apiVersion": manager.version,
        "time": each.since,
        "fieldsType": "FieldsV1",
        "fieldsV1": to_fields_v1(each.fields),
    }
    return {**entry, "subresource": manager.subresource} if manager.subresource else entry


class Change(Value):
    """A change of an object by one manager. live: the object before, or an empty one of its kind.

    ignored: fields that this change leaves as they are, such as the status.
    """

    live: JsonObject
    manager: Manager
    now: str
    schema: Schema | None = None
    ignored: tuple[Path, ...] = ()


def updated(change: Change, new: JsonObject) -> JsonObject:
    """The new object: its manager has what is new or different, and others have it no more."""
    managers = managers_of(new)
    if not managers and not _was_cleared(new):
        managers = managers_of(change.live)
    if _was_cleared(new):
        managers = {}
    difference = _difference(change, _plain(change.live), _plain(new))
    taken = difference.added | difference.changed
    others = _without_fields(managers, change.manager, taken, difference.removed)
    before = managers.get(change.manager)
    had = before.fields if before is not None else NO_FIELDS
    own = (had - difference.removed) | taken
    since = before.since if before is not None and had == own else change.now
    others[change.manager] = Managed(manager=change.manager, fields=own, since=since)
    return with_managers(new, _capped(others))


def applied(change: Change, config: JsonObject, *, force: bool) -> JsonObject:
    """The live object with this configuration applied.

    StatusError: others manage fields to which the configuration gives another value.
    """
    live, managers = _plain(change.live), managers_of(change.live)
    wanted = _plain(config)
    new = merged(live, wanted, change.schema)
    own = fields_of(wanted, change.schema) - _SERVERS_OWN
    own = frozenset(path for path in own if not _is_ignored(path, change.ignored))
    before = managers.get(change.manager)
    had = before.fields if before is not None else NO_FIELDS
    owned = own.union(
        *(each.fields for manager, each in managers.items() if manager != change.manager)
    )
    new = _pruned(new, had, owned, change.schema)
    difference = _difference(change, live, new)
    taken = difference.added | difference.changed
    if not force:
        known = applied_before(change.live, change.manager.name, change.schema)
        _demand_no_conflict(managers, change.manager, taken - known)
    others = _without_fields(managers, change.manager, taken, difference.removed)
    since = before.since if before is not None and had == own else change.now
    others[change.manager] = Managed(manager=change.manager, fields=own, since=since)
    new = noted({**new, "metadata": dict(metadata(new))}, config, change.manager.name)
    return with_managers(new, others)


def _was_cleared(new: JsonObject) -> bool:
    """Did somebody reset the managers, by a list with one empty entry or none?"""
    given = metadata(new).get("managedFields")
    return given is not None and all(not each for each in given)


def _plain(obj: JsonObject) -> JsonObject:
    """The object without what it says about managers."""
    kept = {name: each for name, each in metadata(obj).items() if name != "managedFields"}
    return {**obj, "metadata": kept}


def _difference(change: Change, live: JsonObject, new: JsonObject) -> Difference:
    found = compared(live, new, change.schema)

    def ours(fields: Fields) -> Fields:
        return frozenset(
            path
            for path in fields
            if path not in _SERVERS_OWN and not _is_ignored(path, change.ignored)
        )

    return Difference(
        added=ours(found.added), changed=ours(found.changed), removed=ours(found.removed)
    )


def _is_ignored(path: Path, ignored: Iterable[Path]) -> bool:
    return any(path[: len(each)] == each for each in ignored)


def _without_fields(
    managers: Mapping[Manager, Managed], own: Manager, taken: Fields, removed: Fields
) -> Managers:
    """The others, without what was taken from them or is not there any more."""
    return {
        manager: replace(each, fields=each.fields - taken - removed)
        for manager, each in managers.items()
        if manager != own
    }


def _pruned(new: Any, had: Fields, owned: Fields, schema: Schema | None) -> Any:
    """What the manager applied before and applies no more goes, unless others have it too."""
    parents = {path[:depth] for path in owned for depth in range(1, len(path))}
    gone = [path for path in had if path not in owned and path not in parents]
    for path in sorted(gone, key=lambda each: (-len(each), each)):
        new = without(new, path, schema)
    return new


def _demand_no_conflict(managers: Managers, own: Manager, taken: Fields) -> None:
    conflicts = [
        (manager, path)
        for manager, each in sorted(managers.items(), key=lambda item: _order(item[1]))
        if manager != own
        for path in sorted(each.fields & taken)
    ]
    if not conflicts:
        return
    causes = [
        Cause(
            reason=CauseReason.MANAGER_CONFLICT,
            message=f"conflict with {_named(manager)}",
            field=path_text(path),
        )
        for manager, path in conflicts
    ]
    details = {"causes": [cause_json(each) for each in causes]}
    raise StatusError(Reason.CONFLICT, _conflict_text(conflicts), details=details)


def _conflict_text(conflicts: list[tuple[Manager, Path]]) -> str:
    if len(conflicts) == 1:
        manager, path = conflicts[0]
        text = f"conflict with {_named(manager)}: {path_text(path)}"
        return f"Apply failed with 1 conflict: {text}"
    lines: list[str] = []
    for manager in dict.fromkeys(manager for manager, _ in conflicts):
        lines.append(f"conflicts with {_named(manager)}:")
        lines += [f"- {path_text(path)}" for other, path in conflicts if other == manager]
    return f"Apply failed with {len(conflicts)} conflicts: " + "\n".join(lines)


def _named(manager: Manager) -> str:
    name = f'"{manager.name}"'
    if manager.subresource:
        name += f' with subresource "{manager.subresource}"'
    return f"{name} using {manager.version}" if manager.operation == UPDATE else name


def _capped(managers: Managers) -> Managers:
    """Of many that only updated, the oldest are counted as one."""
    updaters = sorted(
        (each for each in managers.values() if each.manager.operation == UPDATE and each.fields),
        key=lambda each: (each.since, _order(each)),
    )
    if len(updaters) <= MOST_UPDATERS:
        return managers
    old = updaters[: len(updaters) - MOST_UPDATERS + 1]
    ancient = Manager(name=ANCIENT, operation=UPDATE, version=old[-1].manager.version)
    fields = NO_FIELDS.union(*(each.fields for each in old))
    kept = {manager: each for manager, each in managers.items() if each not in old}
    return {**kept, ancient: Managed(manager=ancient, fields=fields, since=old[-1].since)}
