"""From what a mapping sets to the value that it describes."""

from collections.abc import Callable
from typing import Any

from muster.doors.config.of_machines import RESERVATION
from muster.doors.config.of_queues import QUOTA
from muster.doors.config.shapes import Section
from muster.model.cluster import AmountReserved, NodesReserved
from muster.model.queue import Meter, Quota, Scope
from muster.model.site import Confinement, Site
from muster.model.value import Value


def made(section: Section, fields: dict[str, Any], name: str) -> Value | str | None:
    """The value, what is wrong with these fields together, or None where one is missing."""
    if (special := _SPECIAL.get(section.noun)) is not None:
        return special(fields)
    known = {section.named: name} if section.named else {}
    return section.makes[0](**(_required(section) | fields | known))


def _required(section: Section) -> dict[str, Any]:
    """Stands for what is missing, which is noted: others may speak of this value by its name."""
    return {key.target: "" for key in section.keys if key.required}


def _quota(fields: dict[str, Any]) -> Quota | str:
    within = {way.removeprefix("scope."): fields[way] for way in fields if way.startswith("scope.")}
    own = {name: value for name, value in fields.items() if not name.startswith("scope.")}
    scope = Scope(**within)
    if scope.meter is Meter.MIG and scope.profile is None:
        return "`meter: mig` counts one profile; add for example `profile: 1g.5gb`"
    if scope.meter is not Meter.MIG and scope.profile is not None:
        return "`profile` goes with `meter: mig`; add that, or remove the profile"
    return Quota(scope=scope, **own)


def _reservation(fields: dict[str, Any]) -> NodesReserved | AmountReserved | str | None:
    if not {"name", "begins_at", "ends_at"} <= fields.keys():
        return None
    if fields["begins_at"] >= fields["ends_at"]:
        return "`to` must be later than `from`"
    if "nodes" in fields and {"pool", "gpu_milli"}.isdisjoint(fields):
        if not fields["nodes"]:
            return "`nodes` is empty; name at least one node"
        return NodesReserved(**fields)
    wanted = "either `nodes`, or all of `pool`, `gpus` and `queue` or `users`"
    if "nodes" in fields or not {"pool", "gpu_milli"} <= fields.keys():
        return f"a reservation has {wanted}"
    if fields.get("for_queue") is None and not fields.get("for_users"):
        return "a reserved amount needs an owner; add `queue` or `users`, or name `nodes` instead"
    if not fields["gpu_milli"]:
        return "`gpus` is nothing; reserve some, or remove the reservation"
    return AmountReserved(**fields)


def _site(fields: dict[str, Any]) -> Site:
    """A file without `confinement` has what the reference page calls the defaults."""
    known: dict[str, Any] = {"confinement": Confinement()}
    return Site(**(known | fields))


_SPECIAL: dict[str, Callable[[dict[str, Any]], Value | str | None]] = {
    QUOTA.noun: _quota,
    RESERVATION.noun: _reservation,
    "site": _site,
}
