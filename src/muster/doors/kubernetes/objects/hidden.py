"""What is kept of an object and shown to no client: whose processes it brings about.

Clients compare what they read with what they sent; it is not theirs to set, and jobs show it.
"""

from muster.doors.kubernetes.objects.value import JsonObject, annotations_of, metadata

CREATOR = "muster.io/creator"
"""An annotation: the person as whom the processes of a workload run."""


def shown(obj: JsonObject) -> JsonObject:
    """The object as clients see it."""
    if CREATOR not in annotations_of(obj):
        return obj
    meta = {name: each for name, each in metadata(obj).items() if name != "annotations"}
    said = {name: text for name, text in annotations_of(obj).items() if name != CREATOR}
    return {**obj, "metadata": {**meta, "annotations": said} if said else meta}


def kept_on(new: JsonObject, old: JsonObject) -> JsonObject:
    """The new object with what was hidden in the old one, whatever the writer says of it."""
    hidden = annotations_of(old).get(CREATOR)
    if annotations_of(new).get(CREATOR) == hidden:
        return new
    found = shown(new)
    if hidden is None:
        return found
    said = {**annotations_of(found), CREATOR: hidden}
    return {**found, "metadata": {**metadata(found), "annotations": said}}
