"""A Prometheus that reads a cluster's dcgm-exporter: one query for each signal."""

import urllib3

from muster.model.cluster import Node
from muster.model.samples import DeviceSample
from muster.model.site import MeasuredElsewhere
from muster.model.value import Instant
from muster.telemetry.readers.dcgm_queries import Fleet, all_samples
from muster.telemetry.readers.fetching import Bound, fetched, headers_with

ANSWER_S = 20.0
BOUND = Bound(answer_s=ANSWER_S, most_mib=64)


class Prometheus:
    """Asked by one thread."""

    def __init__(self, source: MeasuredElsewhere) -> None:
        self.where = source.prometheus
        self.silent: tuple[str, ...] = ()
        self._source = source
        self._http = urllib3.PoolManager(num_pools=1, retries=False)

    def samples(
        self, nodes: tuple[Node, ...], at: Instant, seconds: int
    ) -> tuple[DeviceSample, ...]:
        """Means of the last seconds."""
        return all_samples(self._ask, self._source.match, Fleet(nodes), at, seconds)

    def _ask(self, query: str) -> bytes:
        _, body = fetched(
            self._http,
            f"{self._source.prometheus.rstrip('/')}/api/v1/query",
            headers=headers_with(self._source.token_file),
            bound=BOUND,
            form={"query": query, "timeout": f"{int(ANSWER_S)}s"},
        )
        return body
