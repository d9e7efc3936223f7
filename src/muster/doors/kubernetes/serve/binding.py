"""Binding: another scheduler says on which node a pod runs."""

from muster.controller.use_cases.objects import ObjectChangedError
from muster.doors.kubernetes.objects.errors import Reason, StatusError, conflict, not_found
from muster.doors.kubernetes.objects.kinds import POD
from muster.doors.kubernetes.objects.value import JsonObject, copied, items, part
from muster.doors.kubernetes.serve.evicting import DONE
from muster.doors.kubernetes.serve.writing import MODIFIED, TRIES, ObjectWriter, Request


def bind(writer: ObjectWriter, request: Request, given: JsonObject) -> JsonObject:
    """The answer to who gives a pod its place; StatusError where it cannot have that."""
    target = request.target
    for _ in range(TRIES):
        kept = writer.view.find(POD, target.namespace, target.name)
        if kept is None:
            raise not_found(POD, target.name)
        new = copied(writer.view.read(kept))
        _demand_unplaced(new, target.name)
        new["spec"]["nodeName"] = str(part(given, "target").get("name") or "")
        try:
            writer.put_placed(request, kept, new)
        except ObjectChangedError:
            continue
        return dict(DONE)
    raise conflict(POD, target.name, MODIFIED)


def _demand_unplaced(pod: JsonObject, name: str) -> None:
    there = part(pod, "spec").get("nodeName")
    if there:
        raise _refused(name, f'pod {name} is already assigned to node "{there}"')
    if items(pod, "spec", "schedulingGates"):
        raise _refused(name, f"pod {name} has non-empty .spec.schedulingGates")


def _refused(name: str, why: str) -> StatusError:
    error = conflict(POD, name, why)
    text = error.message.replace(f'pods "{name}"', f'pods/binding "{name}"')
    return StatusError(Reason.CONFLICT, text, details={"name": name, "kind": "pods/binding"})
