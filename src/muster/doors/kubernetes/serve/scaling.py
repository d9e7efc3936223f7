"""The `scale` of a workload, read and written as a part of it."""

from collections.abc import Callable

from muster.doors.kubernetes.controllers.scale import Scaling, scale_causes, scale_of, scaled_to
from muster.doors.kubernetes.objects.errors import conflict, invalid_object
from muster.doors.kubernetes.objects.value import JsonObject, Kind, metadata
from muster.doors.kubernetes.serve.writing import MODIFIED, ObjectWriter, Request
from muster.model.value import replace

SCALE = Kind(
    group="autoscaling", version="v1", kind="Scale", plural="scales", singular="scale", verbs=()
)


def change_scale(
    writer: ObjectWriter,
    request: Request,
    patched: Callable[[JsonObject], JsonObject],
    scaling: Scaling,
) -> JsonObject:
    """The scale after a change. patched: what becomes of the one that is."""
    target = replace(request.target, subresource="")
    whole = replace(request, target=target, writing=replace(request.writing, is_whole=False))

    def mutate(old: JsonObject | None) -> JsonObject | None:
        if old is None:
            return None
        new = patched(scale_of(old, scaling))
        version = metadata(new).get("resourceVersion")
        if version not in {None, "", metadata(old)["resourceVersion"]}:
            raise conflict(target.kind, target.name, MODIFIED)
        causes = scale_causes(new)
        if causes:
            raise invalid_object(SCALE, target.name, causes)
        return scaled_to(old, new, scaling)

    return scale_of(writer.change(whole, mutate).object, scaling)
