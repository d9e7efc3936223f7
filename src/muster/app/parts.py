"""The parts of one running Muster, from the store to the service that doors call."""

import time
from pathlib import Path

from muster.backends.base import Backend
from muster.backends.local.backend import LocalBackend
from muster.backends.local.machine import Machine, find_machine
from muster.backends.local.pretend import Pretend, parse_pretend
from muster.controller.cycle import Parts
from muster.controller.journal import Journal, Writer
from muster.controller.looking import Looking
from muster.controller.record import Record, awaited_by
from muster.controller.run import Controller
from muster.controller.service import Service
from muster.controller.stage import Stage
from muster.controller.thinker_process import ProcessThinker
from muster.doors.config.default import DEFAULT_SITE
from muster.model.event import SiteChanged
from muster.model.site import Site
from muster.model.value import ClusterName, Instant, UserName
from muster.settings import Settings, store_url
from muster.stores.opening import WholeStore, open_store

SOCKET_NAME = "muster.sock"
ITSELF = UserName("muster")


def clock() -> Instant:
    """Now, in milliseconds."""
    return Instant(time.time_ns() // 1_000_000)


class Muster:
    """Everything that runs; `start` it, and `close` it in the end."""

    def __init__(self, home: Path, settings: Settings, site: Site | None = None) -> None:
        self.home = home
        self.store = open_store(store_url(home, settings))
        self.journal = Journal(self.store, _record(self.store, site or DEFAULT_SITE), clock)
        self.writer = Writer(self.journal)
        self.thinker = ProcessThinker()
        self.machine: Machine | None = None
        self.backends: dict[ClusterName, Backend] = {}
        if not settings.doors_only:
            self._add_local(settings)
        parts = Parts(
            store=self.store,
            history=self.store,
            record=self.journal.record,
            write=self.writer.write,
            thinker=self.thinker,
            backends=self.backends,
        )
        leadership = Follower() if settings.doors_only else self.store
        self.controller = Controller(parts, self.journal, clock, leadership)
        looking = Looking(self.journal, self.controller, self.backends, clock)
        self.service = Service(self.writer.write, looking)
        self.store.listen(self.writer.catch_up)

    def start(self) -> None:
        """Write the first rules if there are none, and begin to lead or to stand by."""
        self.writer.write(_first_rules).result()
        self.controller.start()

    def close(self) -> None:
        """Stop deciding, write what is queued, let go; jobs run on."""
        self.controller.stop()
        self.writer.close()
        self.thinker.close()
        for backend in self.backends.values():
            backend.close()
        if self.machine is not None:
            self.machine.close()
        self.store.close()

    def _add_local(self, settings: Settings) -> None:
        self.machine = find_machine(self.home, _pretend(settings))
        backend = LocalBackend(self.home, self.machine, self._wake, clock)
        self.backends[backend.cluster.name] = backend

    def _wake(self) -> None:
        self.controller.wake()


class Follower:
    """For processes that only answer: somebody else leads."""

    def lead(self) -> bool:
        return False

    def step_down(self) -> None:
        """There is nothing to give up."""


def _record(store: WholeStore, site: Site) -> Record:
    state = store.load()
    live = {job.id for job in state.jobs}
    named = {each for job in state.jobs for each in awaited_by(job)} - live
    return Record(state, store.finished(tuple(sorted(named))) if named else {}, site)


def _pretend(settings: Settings) -> Pretend | None:
    if settings.gpus is None and settings.nodes is None:
        return None
    return parse_pretend(settings.gpus or "0", nodes=settings.nodes or 1)


def _first_rules(stage: Stage) -> None:
    """The rules of a new installation are a fact like any other, so that the log begins whole."""
    if stage.record.version == 0:
        stage.tell(SiteChanged(at=stage.now, site=stage.site, by=ITSELF))
