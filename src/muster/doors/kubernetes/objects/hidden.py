"""What is kept of an object and shown to no client: whose processes it brings about.

Clients compare what they read with what they sent; it is not theirs to set, and jobs show it.
"""

from muster.doors.kubernetes.objects.value import JsonObject, annotations_of, metadata

CREATOR = "muster.io/creator"
"""An annotation: the person as whom the processes of a workload run."""

CREATED_WITH = "muster.io/created-with"
"""An annotation: what that person came with, where it was more or less than their own rights.

`root` for the machine's administrator, `token/ID` for a token.
"""

HIDDEN = (CREATOR, CREATED_WITH)


def hidden_in(obj: JsonObject) -> dict[str, str]:
    """What only the server says of an object."""
    said = annotations_of(obj)
    return {name: said[name] for name in HIDDEN if name in said}


def shown(obj: JsonObject) -> JsonObject:
    """The object as clients see it."""
    if not hidden_in(obj):
        return obj
    meta = {name: each for name, each in metadata(obj).items() if name != "annotations"}
    said = {name: text for name, text in annotations_of(obj).items() if name not in HIDDEN}
    return {**obj, "metadata": {**meta, "annotations": said} if said else meta}


def kept_on(new: JsonObject, old: JsonObject) -> JsonObject:
    """The new object with what was hidden in the old one, whatever the writer says of it."""
    hidden = hidden_in(old)
    if hidden_in(new) == hidden:
        return new
    found = shown(new)
    if not hidden:
        return found
    said = {**annotations_of(found), **hidden}
    return {**found, "metadata": {**metadata(found), "annotations": said}}
