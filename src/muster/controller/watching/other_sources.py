"""Those whom rules name to say how a cluster's GPUs are, in the place of its backend."""

from collections.abc import Iterable, Mapping
from threading import Lock

from muster.backends.base import SamplesPort
from muster.controller.world.journal import Clock
from muster.controller.world.record import Record
from muster.model.cluster import Node
from muster.model.site import MeasuredElsewhere, TelemetryRules
from muster.model.value import ClusterName
from muster.telemetry.readers.asking import OthersReader


class OtherSources:
    """Asked while this process leads; they follow the rules."""

    def __init__(self, record: Record, clock: Clock) -> None:
        self._record = record
        self._clock = clock
        self._readers: dict[MeasuredElsewhere, OthersReader] = {}
        self._lock = Lock()

    def of(self, rules: TelemetryRules) -> Mapping[ClusterName, SamplesPort]:
        """By cluster, who is to be asked by these rules."""
        wanted = {each.cluster: each for each in rules.clusters.values()}
        with self._lock:
            for source in self._readers.keys() - set(wanted.values()):
                self._readers.pop(source).close()
            return {name: self._reader(source) for name, source in wanted.items()}

    def troubles(self) -> Mapping[ClusterName, str]:
        """By cluster, what went wrong when it was asked for last."""
        with self._lock:
            found = {source.cluster: reader.trouble() for source, reader in self._readers.items()}
        return {cluster: text for cluster, text in found.items() if text}

    def let_go(self) -> None:
        """Another process leads."""
        with self._lock:
            while self._readers:
                self._readers.popitem()[1].close()

    def _reader(self, source: MeasuredElsewhere) -> OthersReader:
        found = self._readers.get(source)
        if found is None:
            found = OthersReader(source, lambda: self._nodes(source.cluster), self._clock)
            self._readers[source] = found
            found.start()
        return found

    def _nodes(self, cluster: ClusterName) -> Iterable[Node]:
        with self._record.lock:
            nodes = tuple(self._record.nodes.values())
        return (node for node in nodes if node.cluster == cluster)
