"""The parts of one running Muster, from the store to the service that doors call."""

import platform
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from muster.app.engines import slurm_backend
from muster.app.forecaster import SERVER
from muster.app.recovery import demand_known, take_over
from muster.backends.base import Backend
from muster.backends.local.backend import LocalBackend, place_of
from muster.backends.local.hardware.inventory import CLUSTER
from muster.backends.local.hardware.machine import find_machine
from muster.backends.local.hardware.pretend import Pretend, parse_pretend
from muster.backends.local.hardware.racks import pretend_racks
from muster.controller.dates.board import DateBoard
from muster.controller.dates.process import ProcessForecasts
from muster.controller.dates.protocol import Lessons
from muster.controller.loop.controller import Companion, Controller
from muster.controller.loop.cycle import Parts
from muster.controller.loop.supplies import SupplySource
from muster.controller.mail.notices import NoticeSource
from muster.controller.mail.program import MailProgram
from muster.controller.mail.sender import MailSender, Post
from muster.controller.planner.process import ProcessPlanner
from muster.controller.queries.queries import Queries
from muster.controller.use_cases.service import Service
from muster.controller.world.journal import Journal, Writer
from muster.controller.world.record import Record, dependencies_of
from muster.controller.world.request_keys import latest_requests
from muster.controller.world.transaction import Transaction
from muster.doors.config.default import DEFAULT_SITE
from muster.doors.slurm.mail import letter
from muster.model.cluster import Pool
from muster.model.event import SiteChanged
from muster.model.site import Site
from muster.model.value import ClusterName, Instant, UserName, replace
from muster.settings import BadSettingsError, Settings, jobs_home, mail_program, store_url
from muster.stores.base import HistoryQuery, Leadership
from muster.stores.opening import WholeStore, open_store

LEARNED_AGAIN = 5_000
"""From so many of the latest jobs it is learned at the start how long jobs take."""

DATES_LEARNED_AGAIN = 2_000
"""And from so many of the latest dates, how far ranges must reach."""

ITSELF = UserName("muster")


def clock() -> Instant:
    """Now, in milliseconds."""
    return Instant(time.time_ns() // 1_000_000)


class Muster:
    """Everything that runs; `start` it, and `close` it in the end."""

    def __init__(
        self, home: Path, settings: Settings, site: Site | None = None, *, recovers: bool = False
    ) -> None:
        self.home = home
        self._recovers = recovers
        self._settings = settings
        self.store = open_store(store_url(home, settings))
        self.journal = Journal(
            self.store, _record(self.store, site or _default_site(settings)), clock
        )
        self.writer = Writer(self.journal)
        self.planner = ProcessPlanner()
        self.backends: dict[ClusterName, Backend] = {}
        self.supplies = SupplySource()
        parts = Parts(
            store=self.store,
            history=self.store,
            record=self.journal.record,
            write=self.writer.write,
            planner=self.planner,
            backends=self.backends,
            mail_program="" if settings.doors_only else mail_program(settings),
            supplies=self.supplies,
        )
        here = Lead(self.store, self.backends, self._found)
        self._lead = Follower() if settings.doors_only else here
        self.controller = Controller(parts, self.journal, clock, self._lead)
        self._mailing = self._made_mailing(parts.mail_program)
        self.forecasts = ProcessForecasts(SERVER, lambda: _lessons(self.store))
        self.dates = DateBoard(
            self.journal, self.controller.last_plan, self.forecasts, clock, self.writer.write
        )
        self.controller.companions.append(self.dates)
        self.controller.dates = self.dates
        queries = Queries(self.journal, self.controller, self.backends, clock)
        self.service = Service(self.writer.write, queries)
        self.store.listen(self.writer.catch_up)

    def start(self) -> None:
        """Write the first rules if there are none, and begin to lead or to stand by."""
        # A process that leads at once learns at once what is wrong with the machine.
        self._lead.lead()
        self.writer.write(_first_rules).result()
        if self._recovers and self.backends:
            home = jobs_home(self.home, self._settings)
            self.writer.write(lambda transaction: take_over(home, transaction)).result()
        self.controller.start()
        self.dates.start()

    def accompany(self, companion: Companion) -> None:
        """Have something else done while this process leads, from now on if it does already."""
        self.controller.companions.append(companion)
        if self.controller.is_leading:
            self.writer.write(companion.begin).result()

    def close(self) -> None:
        """Stop deciding, write what is queued, let go; jobs run on."""
        self.controller.stop()
        self.dates.close()
        self.writer.close()
        if self._mailing is not None:
            self._mailing.close()
        self.planner.close()
        self.store.close()

    def _made_mailing(self, program: str | None) -> MailSender | None:
        """What sends mail while we lead, if there is a program for it."""
        if not program:
            return None
        post = Post(written=letter, send=MailProgram(program).send)
        news = NoticeSource(self.journal.record, self.store)
        mailing = MailSender(news, self.store, clock, post)
        self.journal.subscribers.add(mailing.note)
        self.controller.companions.append(mailing)
        return mailing

    def _found(self) -> Iterator[Backend]:
        """This machine, and what the settings name besides."""
        yield self._local()
        for each in self._settings.clusters:
            yield slurm_backend(self.home, each, self.controller.wake, clock)

    def _local(self) -> Backend:
        home, wake = jobs_home(self.home, self._settings), self.controller.wake
        _demand_no_other(home, self.journal.record)
        if not self._recovers:
            demand_known(home, self.journal.record)
        return LocalBackend(home, find_machine(home, _pretend(self._settings), wake), wake, clock)


class Lead:
    """Leads with what is here, found when the lead is taken and let go with it.

    A standby must not touch what the leader uses.
    """

    def __init__(
        self,
        leadership: Leadership,
        backends: dict[ClusterName, Backend],
        find: Callable[[], Iterable[Backend]],
    ) -> None:
        self._leadership = leadership
        self._backends = backends
        self._find = find

    def lead(self) -> bool:
        if not self._leadership.lead():
            self._let_go()
            return False
        try:
            if not self._backends:
                self._backends.update((each.cluster.name, each) for each in self._find())
        except BaseException:
            self._leadership.step_down()
            raise
        return True

    def step_down(self) -> None:
        self._let_go()
        self._leadership.step_down()

    def _let_go(self) -> None:
        while self._backends:
            _, backend = self._backends.popitem()
            backend.close()


class Follower:
    """For processes that only answer: another process leads."""

    def lead(self) -> bool:
        return False

    def step_down(self) -> None:
        """There is nothing to give up."""


def _record(store: WholeStore, site: Site) -> Record:
    state = store.load()
    live = {job.id for job in state.jobs}
    named = {each for job in state.jobs for each in dependencies_of(job)} - live
    record = Record(state, store.finished(tuple(sorted(named))) if named else {}, site)
    past = store.ended(HistoryQuery(limit=LEARNED_AGAIN)).jobs
    record.predictions.relearn(reversed(past))
    record.request_keys.learn(latest_requests(store))
    record.levels.relearn(past)
    return record


def _lessons(store: WholeStore) -> Lessons:
    """What a forecaster learns from when it begins, the oldest first."""
    ended = store.ended(HistoryQuery(limit=LEARNED_AGAIN)).jobs
    kept = store.dates(since=Instant(0), limit=DATES_LEARNED_AGAIN)
    return Lessons(ended=tuple(reversed(ended)), kept=tuple(reversed(kept)))


def _demand_no_other(home: Path, record: Record) -> None:
    """Jobs that run from another folder of this machine would run twice if we led without it."""
    known = record.clusters.get(CLUSTER)
    runs = any(each.cluster == CLUSTER for each in record.every_allocation())
    if known is None or not runs or known.place in {"", place_of(home)}:
        return
    machine, _, other = known.place.partition(":")
    if machine == platform.node() and Path(other).exists():
        raise BadSettingsError(
            f"jobs of this store run from {other}; to take them over, start this one with "
            f"--standby-for {other}"
        )


def _pretend(settings: Settings) -> tuple[Pretend, ...]:
    if settings.racks:
        return pretend_racks(settings.racks)
    if settings.gpus is None and settings.nodes is None:
        return ()
    return (parse_pretend(settings.gpus or "0", nodes=settings.nodes or 1),)


def _default_site(settings: Settings) -> Site:
    """The rules of a new installation, with the pools that its pretend nodes are in."""
    named = {each.pool: Pool(name=each.pool, cluster=CLUSTER) for each in _pretend(settings)}
    return replace(DEFAULT_SITE, pools=named or DEFAULT_SITE.pools)


def _first_rules(transaction: Transaction) -> None:
    """The rules of a new installation are a fact like any other, so that the log begins whole."""
    if transaction.record.version == 0:
        transaction.apply(SiteChanged(at=transaction.now, site=transaction.site, by=ITSELF))
