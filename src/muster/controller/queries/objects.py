"""Objects of the Kubernetes API, as they are and as they change."""

from collections.abc import Callable, Mapping

from muster.controller.world.journal import Journal, Listener
from muster.model.kept_object import KeptObject, ObjectKey
from muster.model.value import Value


class ObjectsNow(Value):
    """All objects, as of one version of the store."""

    version: int
    objects: Mapping[ObjectKey, KeptObject]


class ObjectQueries:
    """Whoever follows sees every commit once, in order, from the thread that commits."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal

    def follow(self, listener: Listener) -> Callable[[], None]:
        """Pass on each commit from now on; calling the result ends it.

        Follow first and look then: batches up to the version that was found may come as well.
        """
        return self._journal.subscribers.add(listener)

    def now(self) -> ObjectsNow:
        """All of them."""
        record = self._journal.record
        with record.lock:
            return ObjectsNow(version=record.version, objects=dict(record.objects))
