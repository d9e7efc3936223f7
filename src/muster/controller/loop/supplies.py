"""What pods are supplied with while they run: whoever keeps ConfigMaps and Secrets says."""

from collections.abc import Callable, Iterator, Mapping, Sequence

from muster.backends.base import Supplies
from muster.launch.pods.variables import wanted_sources
from muster.model.kept_object import ObjectKey
from muster.model.pod import PodLaunch
from muster.model.value import JobId

FindSupplies = Callable[[PodLaunch], Supplies]

SourceOf = Callable[[ObjectKey], str | None]
"""What pods call this object when they name it as a source; None where they cannot."""


class SupplySource:
    """Asked when an attempt begins; it knows nothing until somebody does."""

    def __init__(self) -> None:
        self._find: FindSupplies | None = None
        self._source_of: SourceOf | None = None

    def use(self, find: FindSupplies, source_of: SourceOf) -> None:
        """From now on these are asked."""
        self._find, self._source_of = find, source_of

    def of(self, pods: Sequence[PodLaunch]) -> Supplies:
        """All that the pods of an attempt name; where two mean the same, as the first has it."""
        if self._find is None:
            return {}
        found: dict[str, Mapping[str, bytes] | None] = {}
        for pod in reversed(pods):
            found |= self._find(pod)
        return found

    def source_of(self, key: ObjectKey) -> str | None:
        """How pods of its namespace name this object."""
        return None if self._source_of is None else self._source_of(key)


class Readers:
    """Which running jobs read which sources, so that a change of one is told to them."""

    def __init__(self) -> None:
        self._reads: dict[JobId, frozenset[tuple[str, str]]] = {}

    def note(self, job: JobId, pods: Sequence[PodLaunch]) -> None:
        reads = {(pod.namespace, source) for pod in pods for source in wanted_sources(pod)}
        if reads:
            self._reads[job] = frozenset(reads)

    def forget(self, job: JobId) -> None:
        self._reads.pop(job, None)

    def of(self, changed: frozenset[tuple[str, str]]) -> Iterator[JobId]:
        """Who reads any of these, by their number."""
        if changed:
            yield from sorted(job for job, reads in self._reads.items() if reads & changed)
