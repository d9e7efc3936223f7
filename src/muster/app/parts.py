"""The parts of one running Muster, from the store to the service that doors call."""

import os
import platform
import time
from collections.abc import Iterator
from pathlib import Path

from muster import __version__
from muster.app.engines import backend_of
from muster.app.forecaster import SERVER
from muster.app.leading import Follower, Lead, leadership_of
from muster.app.log import LogToSinks, log_also_to
from muster.app.recovery import demand_known, take_over
from muster.backends.base import Backend
from muster.backends.local.backend import LocalBackend, place_of
from muster.backends.local.hardware.inventory import CLUSTER
from muster.backends.local.hardware.machine import find_machine
from muster.backends.local.hardware.pretend import Pretend, parse_pretend
from muster.backends.local.hardware.racks import pretend_racks
from muster.controller.alerting.delivery import Delivery
from muster.controller.alerting.job_news import JobNewsSource, Knowledge
from muster.controller.alerting.job_teller import JobTeller
from muster.controller.alerting.loop import AlertLoop
from muster.controller.alerting.outbox import Outbox
from muster.controller.dates.board import DateBoard
from muster.controller.dates.process import ProcessForecasts
from muster.controller.dates.protocol import Lessons
from muster.controller.loop.controller import Companion, Controller
from muster.controller.loop.cycle import Parts
from muster.controller.loop.supplies import SupplySource
from muster.controller.mail.notices import NoticeSource
from muster.controller.mail.program import MailProgram
from muster.controller.mail.sender import Letter, MailSender, Post
from muster.controller.planner.process import ProcessPlanner
from muster.controller.queries.queries import Queries
from muster.controller.queries.running import RunningAttempts
from muster.controller.sending.channel import Channel
from muster.controller.sending.sending import Sending
from muster.controller.sending.tail import Tail
from muster.controller.use_cases.service import Service
from muster.controller.watching.idling import Idling
from muster.controller.watching.own_source import ProcessFacts
from muster.controller.watching.watching import Watching
from muster.controller.world.journal import Journal, Writer
from muster.controller.world.record import Record, dependencies_of
from muster.controller.world.request_keys import latest_requests
from muster.controller.world.transaction import Transaction
from muster.doors.config.default import DEFAULT_SITE
from muster.doors.rest.words import ended
from muster.doors.slurm.mail import letter
from muster.lifecycle.notices import Notice
from muster.model.cluster import Pool
from muster.model.event import SiteChanged
from muster.model.job import Job
from muster.model.launch import Launch
from muster.model.site import Site
from muster.model.value import ClusterName, Instant, UserName, replace
from muster.settings import (
    BadSettingsError,
    Settings,
    clusters_of,
    jobs_home,
    mail_program,
    sqlite_file,
    store_url,
)
from muster.stores.base import HistoryQuery, Leadership
from muster.stores.measured.opening import open_measured
from muster.stores.opening import WholeStore, open_store
from muster.telemetry.sinks.otlp import Origin

LEARNED_AGAIN = 5_000
"""From so many of the latest jobs it is learned at the start how long jobs take."""

DATES_LEARNED_AGAIN = 2_000
"""And from so many of the latest dates, how far ranges must reach."""

ITSELF = UserName("muster")

MEASURED_NAME = "telemetry.db"
"""What was measured and judged, where the store is a file: it may be deleted at any time."""

OFFSETS_NAME = "output-sent.json"
"""How far the output of jobs was read that is sent elsewhere; it may be deleted at any time."""


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
        self._log: LogToSinks | None = None
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
        self._lead = self._made_lead()
        self.controller = Controller(parts, self.journal, clock, self._lead)
        self._mailing = self._made_mailing(parts.mail_program)
        self.forecasts = ProcessForecasts(SERVER, lambda: _lessons(self.store))
        self.dates = DateBoard(
            self.journal, self.controller.last_plan, self.forecasts, clock, self.writer.write
        )
        self.controller.companions.append(self.dates)
        self.controller.dates = self.dates
        facts = ProcessFacts(
            version=__version__,
            waiting=lambda: self.writer.waiting,
            room=lambda: store_room(home, settings),
        )
        self.watching = Watching(self.journal, self.controller, self.backends, clock, facts)
        self.watching.keep_in(open_measured(store_url(home, settings), home / MEASURED_NAME))
        self.controller.companions.append(self.watching)
        outbox = self._made_outbox(parts.mail_program)
        self.alerts = self._made_alerts(outbox)
        self.job_teller = self._made_job_teller(outbox)
        queries = Queries(self.journal, self.controller, self.backends, clock, self.watching)
        self.sending = self._made_sending(queries)
        self.service = Service(self.writer.write, queries)
        self.watching.watcher.subscribers.append(
            Idling(
                self.journal.record,
                self.watching.diagnosing.idle,
                self.service,
                self._tell_owner,
                queries.jobs.whole_launch,
            ).look
        )
        self.store.listen(self.writer.catch_up)

    def start(self) -> None:
        """Write the first rules if there are none, and begin to lead or to stand by."""
        # A process that leads at once learns at once what is wrong with the machine.
        self._lead.lead()
        self.writer.write(_first_rules).result()
        if self._recovers and self.backends:
            home = jobs_home(self.home, self._settings)
            self.writer.write(lambda transaction: take_over(home, transaction)).result()
        self.sending.start()
        self._log = log_also_to(self.sending.write)
        self.controller.start()
        self.dates.start()

    def accompany(self, companion: Companion) -> None:
        """Have something else done while this process leads, from now on if it does already."""
        self.controller.accompany(companion)

    def close(self) -> None:
        """Stop deciding, write what is queued, let go; jobs run on."""
        self.controller.stop()
        self.watching.close()
        if self._log is not None:
            self._log.detach()
        self.sending.close()
        self.job_teller.close()
        self.alerts.close()
        self.dates.close()
        self.writer.close()
        if self._mailing is not None:
            self._mailing.close()
        self.planner.close()
        self.store.close()

    def _made_lead(self) -> Leadership:
        if self._settings.doors_only:
            return Follower()
        leadership = leadership_of(self.store, self._settings.lease, self._ask_who_leads)
        return Lead(leadership, self.backends, self._found)

    def _ask_who_leads(self) -> None:
        self.controller.wake()

    def _made_mailing(self, program: str | None) -> MailSender | None:
        """What sends mail while we lead, if there is a program for it."""
        if not program:
            return None
        post = Post(written=self._letter, send=MailProgram(program).send)
        news = NoticeSource(self.journal.record, self.store)
        mailing = MailSender(news, self.store, clock, post)
        self.journal.subscribers.add(mailing.note)
        self.controller.companions.append(mailing)
        return mailing

    def _letter(self, notice: Notice, launch: Launch | None) -> Letter:
        told = self.service.queries.diagnosis.told(notice.job.id)
        return letter(notice, launch, None if notice.is_of_array else told)

    def _tell_owner(self, job: Job, text: str) -> None:
        """By mail, where mail is sent."""
        if self._mailing is not None:
            subject = f"Job {job.label} does not use its GPUs"
            to = job.spec.mail.to or job.spec.user
            self._mailing.post(Letter(to=to, subject=subject, body=text))

    def _made_outbox(self, program: str | None) -> Outbox:
        """What sends messages to whom the rules name."""
        mail = MailProgram(program).send if program else None
        delivery = Delivery(
            None
            if mail is None
            else lambda to, subject, text: mail(Letter(to=to, subject=subject, body=text))
        )
        return Outbox(delivery)

    def _made_alerts(self, outbox: Outbox) -> AlertLoop:
        """What judges the rules after every look, and tells whoever must act."""
        metrics = self.watching.metrics
        alerts = AlertLoop(self.journal.record, metrics.families, self.watching.board, outbox)
        metrics.sources.append(alerts.families)
        self.watching.watcher.subscribers.append(alerts.note)
        self.controller.companions.append(alerts)
        return alerts

    def _made_job_teller(self, outbox: Outbox) -> JobTeller:
        """What tells receivers what happens to jobs."""
        record = self.journal.record
        knowledge = Knowledge(last_plan=self.controller.last_plan, words=ended)
        news = JobNewsSource(record, knowledge)
        teller = JobTeller(record, news, outbox, clock, self.watching.left_out)
        self.journal.subscribers.add(teller.note)
        self.controller.companions.append(teller)
        return teller

    def _made_sending(self, queries: Queries) -> Sending:
        """What sends logs and metrics to whom the rules name."""
        tail = Tail(RunningAttempts(self.backends).output, queries.jobs.whole_launch)
        origin = Origin(node=platform.node(), version=__version__, began=clock())
        sending = Sending(
            self.journal.record,
            tail,
            lambda sink: Channel(sink, queries.telemetry.families_of, origin),
            self.home / OFFSETS_NAME,
        )
        self.watching.metrics.of_every_process.append(sending.families)
        self.watching.of_problems.append(sending.problems)
        self.watching.watcher.subscribers.append(sending.note)
        self.journal.subscribers.add(sending.note_commit)
        self.controller.companions.append(sending)
        return sending

    def _found(self) -> Iterator[Backend]:
        """This machine, unless it is to have no jobs, and what the settings name besides."""
        home, wake = jobs_home(self.home, self._settings), self.controller.wake
        _demand_no_other(home, self.journal.record)
        if not self._recovers:
            demand_known(home, self.journal.record)
        if not self._settings.only_clusters:
            machine = find_machine(home, _pretend(self._settings), wake)
            yield LocalBackend(home, machine, wake, clock)
        for each in clusters_of(self.home, self._settings):
            yield backend_of(home, each, wake, clock)


def store_room(home: Path, settings: Settings) -> tuple[int, int] | None:
    """How large the database file is, and how much room is left there; None for other stores."""
    file = sqlite_file(home, settings)
    if file is None:
        return None
    room = os.statvfs(file.parent)
    return file.stat().st_size, room.f_bavail * room.f_frsize


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
