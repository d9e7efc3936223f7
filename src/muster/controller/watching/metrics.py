"""All metrics of this instant: what `/metrics` shows, and what rules are judged by.

    metrics.sources.append(source)      # source(now) -> Iterable[Family], called when asked
    metrics.families(now)               # all of them, in the order of their sources

A source says what is so now, and is asked from any thread, of the leader alone: gauges of the whole
installation would be counted twice if several processes told them. Those in `of_every_process` are
about the process itself. One that fails is left out, so that what does not answer disappears; it is
logged once.
"""

import logging
from collections.abc import Callable, Iterable

from muster.model.value import Instant
from muster.telemetry.family import Family

log = logging.getLogger("muster.telemetry")

Source = Callable[[Instant], Iterable[Family]]


class Metrics:
    """Asks whoever knows something."""

    def __init__(self, is_leading: Callable[[], bool]) -> None:
        self.sources: list[Source] = []
        self.of_every_process: list[Source] = []
        self._is_leading = is_leading
        self._failing: set[Source] = set()

    def families(self, now: Instant) -> tuple[Family, ...]:
        found: list[Family] = []
        of_leader = tuple(self.sources) if self._is_leading() else ()
        for source in (*self.of_every_process, *of_leader):
            found.extend(self._told(source, now))
        return tuple(found)

    def _told(self, source: Source, now: Instant) -> tuple[Family, ...]:
        try:
            told = tuple(source(now))
        except Exception:
            if source not in self._failing:
                log.exception("metrics of one source are left out")
            self._failing.add(source)
            return ()
        self._failing.discard(source)
        return told
