"""Objects that a door keeps as they were given, under a name: those of the Kubernetes API."""

from muster.model.value import Value

PLACES_IN_A_BATCH = 10_000
"""So many objects one batch can write, each with a version of its own."""


Shelf = tuple[str, str, str]
"""Group, resource and namespace: what lists of objects are about."""


class ObjectKey(Value, gc=False):
    """Where an object is. resource: in the plural, as in paths. namespace: "" where it has none."""

    group: str
    resource: str
    namespace: str
    name: str

    @property
    def shelf(self) -> Shelf:
        """Where it stands beside others of its kind."""
        return self.group, self.resource, self.namespace


class KeptObject(Value, gc=False):
    """One object. body: JSON, which only its door reads.

    version: which batch wrote it last, and at which place in it; it grows with every change.
    """

    key: ObjectKey
    version: int
    body: str


class RemovedObject(Value, gc=False):
    """An object that is there no more, and the version of its removal."""

    key: ObjectKey
    version: int


def object_version(batch: int, place: int) -> int:
    """The version of what stands at this place of a batch; later batches have greater ones."""
    return batch * PLACES_IN_A_BATCH + place
