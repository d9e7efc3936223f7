"""The containers of a pod, as requests name them."""

from muster.doors.kubernetes.objects.errors import bad_request
from muster.doors.kubernetes.objects.value import JsonObject, items, name_of, part
from muster.doors.kubernetes.serve.call import Query, text

LISTS = ("containers", "initContainers", "ephemeralContainers")


def container_asked_for(pod: JsonObject, query: Query) -> str:
    """The one that a request is about; StatusError where that is not clear."""
    spec, name = part(pod, "spec"), name_of(pod)
    mains = [str(each.get("name")) for each in items(spec, "containers")]
    chosen = text(query, "container")
    if not chosen and len(mains) > 1:
        listed = " ".join(mains)
        raise bad_request(
            f"a container name must be specified for pod {name}, choose one of: [{listed}]"
        )
    chosen = chosen or mains[0]
    if chosen not in [str(each.get("name")) for kind in LISTS for each in items(spec, kind)]:
        raise bad_request(f"container {chosen} is not valid for pod {name}")
    return chosen


def container_status(pod: JsonObject, name: str) -> JsonObject:
    """What is known of it; empty where nothing is."""
    for kind in ("containerStatuses", "initContainerStatuses"):
        for each in items(part(pod, "status"), kind):
            if each.get("name") == name:
                return part({"found": each}, "found")
    return {}
