"""Those who measure a cluster already: asked again and again, in a thread of its own."""

import logging
from collections.abc import Callable, Iterable
from threading import Event, Thread

from urllib3.exceptions import HTTPError

from muster.model.cluster import Node
from muster.model.errors import BackendDownError
from muster.model.samples import DeviceSample, Samples
from muster.model.site import MeasuredElsewhere
from muster.model.value import Instant
from muster.telemetry.readers.dcgm_queries import UnreadableAnswerError
from muster.telemetry.readers.exporters import Exporters
from muster.telemetry.readers.prometheus import Prometheus

log = logging.getLogger("muster.telemetry")

PAUSE_S, LONG_PAUSE_S = 60, 300
MANY_DEVICES = 5_000
"""Above so many devices they are asked less often."""

STALE_PAUSES = 3
LONGEST_TEXT = 200


class OthersReader:
    """Says what it was told last, and nothing once that is too old; any thread may ask."""

    def __init__(
        self,
        source: MeasuredElsewhere,
        nodes: Callable[[], Iterable[Node]],
        clock: Callable[[], Instant],
    ) -> None:
        self._cluster = source.cluster
        self._nodes = nodes
        self._clock = clock
        self._asked = Exporters(source) if source.exporter else Prometheus(source)
        self._told: tuple[Instant, tuple[DeviceSample, ...]] | None = None
        self._why = "it was not asked yet"
        self._trouble = ""
        self._pause_s = PAUSE_S
        self._ending = Event()
        self._thread = Thread(target=self._run, name=f"asking of {source.cluster}", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def close(self) -> None:
        """Nobody is waited for: it may be slow to answer."""
        self._ending.set()

    def samples(self, now: Instant) -> Samples:
        """BackendDownError says why nothing is known."""
        told = self._told
        if told is None or now - told[0] > 1_000 * STALE_PAUSES * self._pause_s:
            raise BackendDownError(self._cluster, f"{self._asked.where} told nothing: {self._why}")
        return Samples(at=told[0], devices=told[1], secondhand=True)

    def trouble(self) -> str:
        """What went wrong when it was asked last, for the administrator; empty if nothing did."""
        if not self._trouble:
            return ""
        return (
            f"cluster {self._cluster} is not measured whole by {self._asked.where}: {self._trouble}"
        )

    def ask_once(self) -> None:
        """Ask for everything; what goes wrong is said to who asks for samples."""
        nodes = tuple(self._nodes())
        devices = sum(len(node.devices) for node in nodes)
        many = devices > MANY_DEVICES
        self._pause_s = LONG_PAUSE_S if many else PAUSE_S
        at = self._clock()
        try:
            found = self._asked.samples(nodes, at, self._pause_s)
        except (HTTPError, OSError, UnreadableAnswerError, UnicodeError) as error:
            self._why = self._trouble = _shown(str(error))
        else:
            self._told = (at, found)
            self._trouble = _gaps(devices, len({each.device for each in found}), self._asked.silent)

    def _run(self) -> None:
        while not self._ending.is_set():
            try:
                self.ask_once()
            except Exception:
                self._why = self._trouble = "a mistake of ours; see the log"
                log.exception("a mistake in asking %s", self._asked.where)
            self._ending.wait(self._pause_s)


def _gaps(devices: int, told: int, silent: tuple[str, ...]) -> str:
    """What an answer does not tell of. Some GPUs may be out of order; all of them are not."""
    if silent:
        first, *others = silent
        more = f", and {len(others)} more nodes" if others else ""
        return f"{_shown(first)}{more}"
    if devices and not told:
        return f"it tells of none of {devices} GPUs; look at its address and at `match`"
    return ""


def _shown(text: str) -> str:
    """As much of what others say as a line can show."""
    return "".join(each if each.isprintable() else " " for each in text[:LONGEST_TEXT])
