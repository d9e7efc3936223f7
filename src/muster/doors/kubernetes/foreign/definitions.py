"""CustomResourceDefinitions, of which some are about kinds that are built in."""

from muster.doors.kubernetes.foreign.kinds import foreign_kinds
from muster.doors.kubernetes.objects import custom
from muster.doors.kubernetes.objects.value import JsonObject, items, name_of
from muster.model.value import replace

BUILT_IN = "BuiltIn"
TEXT = "Muster serves this kind itself, with its own schema; the definition is kept as it is"


def is_built_in(crd: JsonObject) -> bool:
    """Is it about a kind that is served without it?"""
    return name_of(crd) in {each.kind.resource for each in foreign_kinds().values()}


def _prepare(crd: JsonObject, old: JsonObject | None) -> JsonObject:
    prepared = custom.DEFINITIONS.prepare
    new = crd if prepared is None else prepared(crd, old)
    if is_built_in(new):
        said = items(new, "status", "conditions")
        conditions = [each for each in said if each.get("type") != BUILT_IN]
        words = {"reason": "ServedByMuster", "message": TEXT}
        new["status"]["conditions"] = [*conditions, {**conditions[0], "type": BUILT_IN, **words}]
    return new


DEFINITIONS = replace(custom.DEFINITIONS, prepare=_prepare)
