"""Looks at all clusters again and again while this process leads, and tells those who asked.

    watcher.subscribers.append(look)    # look(Look) -> None is told of every pass from now on
    watcher.last                        # the last pass; None before the first
    watcher.took_s                      # how long it took
    watcher.seen                        # when each cluster was measured last

Subscribers are told in the order of the list, in the watching thread: they must be quick, and what
takes long they do elsewhere. One that fails is logged once, and the others are told all the same.
Nothing here writes to the journal, and no commit waits for it.
"""

import logging
import time
from collections.abc import Callable, Mapping
from threading import Condition, Thread

from muster.backends.base import Backend, SamplesPort
from muster.controller.watching.holdings import holdings_of, with_instances
from muster.controller.watching.other_sources import OtherSources
from muster.controller.world.journal import Clock
from muster.controller.world.record import Record
from muster.controller.world.transaction import Transaction
from muster.model.errors import MusterError
from muster.model.holding import Holding
from muster.model.samples import Samples
from muster.model.value import ClusterName, Instant
from muster.telemetry.look import Look, Looker

log = logging.getLogger("muster.telemetry")

STALE_LOOKS = 3
"""What is older than so many looks is not shown."""

CLOSING_PATIENCE_S = 5.0
"""A backend that does not answer does not keep Muster from ending."""


class Watcher:
    """One thread of the leader. `look` is one pass; tests call it with their own time."""

    def __init__(
        self,
        record: Record,
        backends: Mapping[ClusterName, Backend],
        clock: Clock,
        others: OtherSources | None = None,
    ) -> None:
        self.subscribers: list[Looker] = []
        self.last: Look | None = None
        self.took_s = 0.0
        self.seen: Mapping[ClusterName, Instant] = {}
        self._record = record
        self._backends = backends
        self._clock = clock
        self._others = others
        self._failing: dict[object, str] = {}
        self._changed = Condition()
        self._leads = False
        self._is_closing = False
        self._thread = Thread(target=self._run, name="watching", daemon=True)

    def begin(self, transaction: Transaction) -> None:  # noqa: ARG002 - as companions are
        """This process leads from now on."""
        with self._changed:
            if self._thread.ident is None:
                self._thread.start()
            self._leads = True
            self._changed.notify()

    def rest(self) -> None:
        """Another process leads: what was measured here is no longer so."""
        with self._changed:
            self._leads = False
            self.last = None
            self.seen = {}
            self._failing.clear()
        if self._others is not None:
            self._others.let_go()

    def close(self) -> None:
        """Stop looking."""
        with self._changed:
            self._leads = False
            self._is_closing = True
            self._changed.notify()
        if self._others is not None:
            self._others.let_go()
        if self._thread.ident is not None:
            self._thread.join(CLOSING_PATIENCE_S)

    def look(self, now: Instant) -> Look:
        """Look at everything once, and tell everybody."""
        began = time.monotonic()
        samples, silent = self._asked(now)
        self.took_s = time.monotonic() - began
        # Of one that never answered: since when it is asked.
        since = {name: self.seen.get(name, now) for name in silent}
        self.seen = {**since, **{name: told.at for name, told in samples.items()}}
        devices = (each for told in samples.values() for each in told.devices)
        look = Look(
            at=now,
            interval=self._record.site.telemetry.interval,
            samples=samples,
            silent=silent,
            holdings=with_instances(self._holdings(), devices),
        )
        self.last = look
        for subscriber in tuple(self.subscribers):
            self._guarded(subscriber, lambda told=subscriber: told(look))
        return look

    def fresh(self, now: Instant) -> Look | None:
        """The last pass, unless it is too old to be shown: nothing stale is ever repeated."""
        look = self.last
        return None if look is None or now - look.at > STALE_LOOKS * look.interval else look

    def problems(self) -> tuple[str, ...]:
        """What cannot be measured, and why, for the administrator."""
        others: Mapping[ClusterName, str] = {}
        if self._others is not None:
            others = self._others.troubles()
        own = {what: text for what, text in self._failing.copy().items() if what not in others}
        return tuple(sorted({*own.values(), *others.values()}))

    def _run(self) -> None:
        while self._awaits_lead():
            self._guarded(self, lambda: self.look(self._clock()))
            with self._changed:
                self._changed.wait_for(self._is_to_rest, self._pause_s())

    def _awaits_lead(self) -> bool:
        with self._changed:
            self._changed.wait_for(lambda: self._leads or self._is_closing)
            return not self._is_closing

    def _is_to_rest(self) -> bool:
        return self._is_closing or not self._leads

    def _pause_s(self) -> float:
        """Until the next whole interval, so that passes do not drift apart."""
        interval = self._record.site.telemetry.interval
        return (interval - self._clock() % interval) / 1_000

    def _asked(self, now: Instant) -> tuple[Mapping[ClusterName, Samples], tuple[ClusterName, ...]]:
        found: dict[ClusterName, Samples] = {}
        silent: list[ClusterName] = []
        for name, source in sorted(self._sources().items()):
            told = self._samples(name, source, now)
            if told is None:
                silent.append(name)
            else:
                found[name] = told
        return found, tuple(silent)

    def _sources(self) -> Mapping[ClusterName, SamplesPort]:
        """Whom rules name for a cluster is asked; else its backend, if it measures."""
        # Copied whole: backends come and go with the lead.
        own = {
            name: backend
            for name, backend in dict(self._backends).items()
            if isinstance(backend, SamplesPort)
        }
        if self._others is None:
            return own
        return {**own, **self._others.of(self._record.site.telemetry)}

    def _samples(self, name: ClusterName, backend: SamplesPort, now: Instant) -> Samples | None:
        told: list[Samples] = []
        self._guarded(name, lambda: told.append(backend.samples(now)))
        return told[0] if told else None

    def _holdings(self) -> tuple[Holding, ...]:
        with self._record.lock:
            allocations = tuple(self._record.allocations.values())
            jobs = {
                each.job: self._record.jobs[each.job]
                for each in allocations
                if each.job in self._record.jobs
            }
        return holdings_of(allocations, jobs)

    def _guarded(self, what: object, act: Callable[[], object]) -> None:
        """What fails is logged once, and said again when it had been well in between."""
        try:
            act()
        except MusterError as error:
            if what not in self._failing:
                log.warning("not measured: %s", error)
            self._failing[what] = f"not measured: {error}"
        except Exception:
            if what not in self._failing:
                log.exception("a mistake in telemetry")
            self._failing[what] = "a mistake of Muster's in telemetry; its log says which"
        else:
            self._failing.pop(what, None)
