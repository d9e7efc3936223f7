"""dcgm-exporters of a cluster without a Prometheus: the page of each node, many at once."""

import re
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import urllib3
from urllib3.exceptions import HTTPError

from muster.model.cluster import Node
from muster.model.samples import DeviceSample
from muster.model.site import MeasuredElsewhere
from muster.model.value import Instant
from muster.telemetry.readers.dcgm_page import Page, rows_by_name
from muster.telemetry.readers.dcgm_queries import SIGNALS, Fleet, UnreadableAnswerError, samples_of
from muster.telemetry.readers.fetching import Bound, fetched, headers_with

MOST_NODES = 200
"""More than these are for a Prometheus."""

AT_ONCE = 16
BOUND = Bound(answer_s=5.0, most_mib=8)

NODE = "{node}"
"""Where the name of a node stands in the address."""

_NODE_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


class Exporters:
    """Asked by one thread, which has others ask at the same time.

    silent: nodes that did not answer when they were asked last, and why.
    """

    def __init__(self, source: MeasuredElsewhere) -> None:
        self.where = source.exporter
        self.silent: tuple[str, ...] = ()
        self._source = source
        self._http = urllib3.PoolManager(num_pools=MOST_NODES, retries=False)

    def samples(
        self, nodes: tuple[Node, ...], at: Instant, seconds: int
    ) -> tuple[DeviceSample, ...]:
        """What they say now. Nodes that do not answer are left out; if none does, that is said."""
        asked = [node for node in nodes if node.devices and _NODE_NAME.fullmatch(node.id)]
        if len(asked) > MOST_NODES:
            text = f"{len(asked)} nodes are too many to ask each; name a Prometheus instead"
            raise UnreadableAnswerError(text)
        headers = headers_with(self._source.token_file)
        with ThreadPoolExecutor(AT_ONCE, thread_name_prefix="exporters") as pool:
            pages = list(pool.map(partial(self._page, headers), asked))
        told = [page for page in pages if not isinstance(page, str)]
        self.silent = tuple(page for page in pages if isinstance(page, str))
        if pages and not told:
            raise UnreadableAnswerError(self.silent[0])
        answers = {
            signal: [
                row
                for page in told
                for row in next((page[name] for name in signal.names if name in page), ())
            ]
            for signal in SIGNALS
        }
        return samples_of(answers, Fleet(asked), at, seconds)

    def _page(self, headers: dict[str, str], node: Node) -> Page | str:
        """What its exporter says, or why it says nothing."""
        url = self._source.exporter.replace(NODE, node.id)
        try:
            status, body = fetched(self._http, url, headers=headers, bound=BOUND)
        except (HTTPError, OSError, UnreadableAnswerError) as error:
            return f"{node.id}: {error}"
        if status != 200:
            return f"{node.id}: it answered with status {status}"
        return rows_by_name(body.decode("utf-8", "replace"), node.id)
