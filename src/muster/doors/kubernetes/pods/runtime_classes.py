"""RuntimeClasses: what pods that name one are given, and what a class itself must be. Pure.

Muster's container tool runs every pod. So a handler chooses nothing here; what a class says of
nodes and of the pod's overhead holds as anywhere.
"""

from collections.abc import Iterator, Mapping

from muster.doors.kubernetes.objects.errors import Cause, forbidden_field, invalid, required
from muster.doors.kubernetes.objects.value import JsonObject, copied, items, part
from muster.doors.kubernetes.pods import quantities
from muster.doors.kubernetes.pods.checks import names
from muster.doors.kubernetes.pods.checks.scheduling import label_causes, toleration_causes

_OTHER_OVERHEAD = "pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead"
_NO_OVERHEAD = "pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead"


def refusal_of(spec: JsonObject, classes: Mapping[str, JsonObject]) -> str:
    """Why a pod of this spec may not be; empty where it may."""
    named = spec.get("runtimeClassName")
    if named and named not in classes:
        return f'pod rejected: RuntimeClass "{named}" not found'
    held = classes.get(str(named), {})
    own, given = part(spec, "overhead"), part(held, "overhead", "podFixed")
    if own and not given:
        return _NO_OVERHEAD
    if own and quantities.totals(own) != quantities.totals(given):
        return _OTHER_OVERHEAD
    has, wants = part(spec, "nodeSelector"), part(held, "scheduling", "nodeSelector")
    for key, value in wants.items():
        if key in has and has[key] != value:
            return (
                f"conflict: runtimeClass.scheduling.nodeSelector[{key}] = {value}; "
                f"pod.spec.nodeSelector[{key}] = {has[key]}"
            )
    return ""


def with_runtime(pod: JsonObject, classes: Mapping[str, JsonObject]) -> JsonObject:
    """The pod with what its class adds. The object is the caller's own."""
    spec = part(pod, "spec")
    held = copied(classes.get(str(spec.get("runtimeClassName")), {}))
    overhead = part(held, "overhead", "podFixed")
    if overhead:
        spec["overhead"] = overhead
    wants = part(held, "scheduling", "nodeSelector")
    if wants:
        spec["nodeSelector"] = {**part(spec, "nodeSelector"), **wants}
    own = items(spec, "tolerations")
    more = [each for each in items(held, "scheduling", "tolerations") if each not in own]
    if more:
        spec["tolerations"] = [*own, *more]
    return pod


def defaulted_runtime(obj: JsonObject) -> JsonObject:
    """With its amounts as they are shown. The object is the caller's own."""
    overhead = part(obj, "overhead", "podFixed")
    for name, text in overhead.items():
        overhead[name] = quantities.canonical(text)
    return obj


def runtime_causes(obj: JsonObject, old: JsonObject | None) -> list[Cause]:
    """All that is wrong with a RuntimeClass."""
    return list(_causes(obj, old))


def _causes(obj: JsonObject, old: JsonObject | None) -> Iterator[Cause]:
    handler = str(obj.get("handler") or "")
    if old is not None and handler != old.get("handler"):
        yield invalid("handler", handler, "field is immutable")
        return
    if not handler:
        yield required("handler")
    yield from (invalid("handler", handler, why) for why in names.label_name(handler) if handler)
    for name, text in part(obj, "overhead", "podFixed").items():
        if name not in ("cpu", "memory"):
            # A GPU or a disk is a container's.
            yield forbidden_field(f"overhead.podFixed[{name}]", "must be cpu or memory here")
        elif not quantities.amount(text) >= 0:
            yield invalid(f"overhead.podFixed[{name}]", text, "must be greater than or equal to 0")
    scheduling = part(obj, "scheduling")
    yield from label_causes(part(scheduling, "nodeSelector"), "scheduling.nodeSelector")
    yield from toleration_causes(scheduling, "scheduling")
