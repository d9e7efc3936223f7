"""Why jobs are slow and what became of GPUs, for those who may see what these jobs use."""

import logging
from collections.abc import Callable, Iterator, Sequence
from typing import Protocol, TypeVar

from muster.controller.messages import Caller, JobDetail, LogQuery
from muster.controller.queries.attempts import AttemptQueries
from muster.controller.queries.history import HistoryQueries
from muster.controller.queries.jobs import JobQueries
from muster.controller.rights import demand_viewer, has_role
from muster.controller.watching.diagnosing import Diagnosing
from muster.controller.world.record import Record
from muster.model.efficiency import JobReport
from muster.model.errors import ForbiddenError, MusterError, UnknownError
from muster.model.event import JobCheckpointed, JobStruck
from muster.model.finding import Cause, Finding
from muster.model.forbidden import NotYourJob
from muster.model.history import Attempt
from muster.model.job import Job, JobState, Preempted
from muster.model.queue import is_within
from muster.model.site import Role
from muster.model.value import Instant, JobId, QueuePath, UserName, Value
from muster.stores.base import EventQuery, Stored
from muster.stores.measured.base import MeasuredStore, PastQuery
from muster.telemetry.diagnosis.ending import Ended, Past, ending_of
from muster.telemetry.diagnosis.enough import Amount, Asked, enough
from muster.telemetry.diagnosis.fixes import Fix, fixes_of
from muster.telemetry.diagnosis.flags import language_of
from muster.telemetry.diagnosis.interruptions import Interruptions, interruptions
from muster.telemetry.diagnosis.ledger import NOBODY, Row, costs
from muster.telemetry.diagnosis.money import Time
from muster.telemetry.diagnosis.timeline import Curves, curves

T = TypeVar("T")

log = logging.getLogger("muster.telemetry")

MOST_LOOKED_AT = 10_000
"""So many of the latest reports are looked through."""

MOST_EVENTS = 10_000
MOST_STEPS = 240
MOST_LINES = 40
LOG_BYTES = 16_384
LONGEST_LINE = 200


class ReportQuery(Value):
    """Which attempts: all that are given must hold; a queue stands for those below it too.

    since: those that were not over before.
    """

    queue: QueuePath | None = None
    user: UserName | None = None
    since: Instant | None = None
    limit: int = 1_000


class Diagnosed(Value):
    """One attempt's report, with what its user could change.

    ended: why it ended, if not well. request: where less would have done. interrupted: of the
    whole job.
    """

    report: JobReport
    fixes: tuple[Fix, ...] = ()
    ended: Ended | None = None
    request: tuple[Amount, ...] = ()
    interrupted: Interruptions | None = None


class Timeline(Value):
    """One attempt on one axis: what was measured, what happened, and the last that it wrote."""

    job: JobId
    attempt: int
    curves: Curves
    events: tuple[Stored, ...] = ()
    log: tuple[str, ...] = ()
    ended: Ended | None = None


class FleetRow(Value):
    """One row of what became of GPUs' time, and its price.

    Its user is empty where nobody held it, and where the caller may not see whose it was.
    """

    row: Row
    time: Time
    cost_micros: int


ITSELF = Caller(user=UserName("muster"), door="reports", root=True)


class DiagnosisSide(Protocol):
    """What is asked of those who watch: what is so now, and what was."""

    diagnosing: Diagnosing
    past: MeasuredStore | None


class DiagnosisQueries:
    """Reports, findings, and the fleet's table."""

    def __init__(
        self,
        record: Record,
        jobs: JobQueries,
        watching: DiagnosisSide,
        history: HistoryQueries,
        attempts: AttemptQueries,
    ) -> None:
        self._record = record
        self._jobs = jobs
        self._history = history
        self._attempts = attempts
        self._watching = watching
        self._diagnosing = watching.diagnosing

    def of_job(self, caller: Caller, job_id: JobId, attempt: int | None = None) -> Diagnosed:
        """One job's last attempt, or the one that is named, live or over."""
        detail = self._seen(caller, job_id)
        job = detail.view.job
        report = self._found(job_id, attempt) or _unmeasured(detail, attempt)
        if report is None:
            raise UnknownError(
                f"nothing was measured of job {job.label}: it has held no GPU lately"
            )
        events = self._events(caller, job_id)
        ended = self._ended(caller, detail, report, events)
        asked = self._asked(job, report)
        return Diagnosed(
            report=report,
            fixes=fixes_of(report, asked, ended),
            ended=ended,
            request=enough(report, asked),
            interrupted=interruptions(
                detail.attempts,
                [each.event.at for each in events if isinstance(each.event, JobCheckpointed)],
                sum(each.gpu_ms for each in report.causes if each.cause is Cause.CHECKPOINT)
                // max(1, len(report.devices)),
            ),
        )

    def told(self, job_id: JobId) -> Diagnosed | None:
        """For its own user, who is told without asking; None where nothing is known."""
        try:
            return self.of_job(ITSELF, job_id)
        except MusterError:
            return None

    def timeline(
        self, caller: Caller, job_id: JobId, attempt: int | None = None, *, steps: int = MOST_STEPS
    ) -> Timeline:
        """What was measured and what happened, on one axis, and the last that it wrote."""
        detail = self._seen(caller, job_id)
        number = attempt or detail.view.job.attempt
        past = self._watching.past
        blocks = {
            (each.hour, each.node, each.device, each.start): each
            for each in (
                *(() if past is None else _if_it_can(lambda: past.minutes(job_id, number), ())),
                *self._diagnosing.minutes(job_id, number),
            )
        }
        events = self._events(caller, job_id)
        report = self._found(job_id, number)
        return Timeline(
            job=job_id,
            attempt=number,
            curves=curves(blocks.values(), steps),
            events=tuple(each for each in events if _is_of(each, number)),
            log=self._log(caller, job_id, number),
            ended=self._ended(caller, detail, report, events, number),
        )

    def known(self, caller: Caller, job: Job) -> JobReport | None:
        """The last attempt of a job that the caller sees, if they may see what it uses."""
        return self._found(job.id, None) if self._jobs.may_see(caller, job) else None

    def sees(self, caller: Caller, job: Job) -> bool:
        """May the caller see what the job uses?"""
        return self._may_see(caller, job.spec.user, job.spec.queue)

    def reports(self, caller: Caller, query: ReportQuery) -> tuple[JobReport, ...]:
        """Of those whose use the caller may see; those that wasted most first."""
        demand_viewer(caller, self._record.site)
        found = [
            each
            for each in self._every(query)
            if _is_meant(each, query) and self._may_see(caller, each.user, each.queue)
        ]
        found.sort(key=lambda each: (-each.wasted_micros, -each.gpu_ms, each.job, each.attempt))
        return tuple(found[: query.limit])

    def findings(self, caller: Caller, query: ReportQuery) -> tuple[Finding, ...]:
        """Of jobs that run, of those that the caller may see; the dearest first."""
        live = (each for each in self.reports(caller, query) if not each.is_over)
        found = [finding for report in live for finding in report.findings]
        found.sort(
            key=lambda each: (-each.micros_per_hour, -each.wasted_gpu_milli, each.job, each.cause)
        )
        return tuple(found[: query.limit])

    def fleet(self, caller: Caller, query: ReportQuery) -> tuple[FleetRow, ...]:
        """What became of every second of every GPU, since then or since this process leads.

        What is kept is kept by the hour, so that a time stands for the hour that it is in.
        Who is viewer of one queue only sees what that queue and those below it held; whose it was
        is said to those who may see what a job of theirs uses.
        """
        demand_viewer(caller, self._record.site)
        rows = self._diagnosing.rows() if query.since is None else self._kept_rows(query.since)
        spent = costs(rows, self._diagnosing.prices())
        sees_all = has_role(caller, self._record.site, Role.VIEWER)
        found: list[FleetRow] = []
        for row, time in rows.items():
            knows = row.queue != NOBODY and self._may_see(caller, row.user, row.queue)
            sees = sees_all or (row.queue != NOBODY and self._is_viewer(caller, row.queue))
            if query.user is not None:
                sees = knows and row.user == query.user
            if sees and (query.queue is None or _is_below(row.queue, query.queue)):
                shown = row if knows else row._replace(user=UserName(""))
                found.append(FleetRow(row=shown, time=time, cost_micros=spent[row]))
        return tuple(found)

    def _found(self, job: JobId, attempt: int | None) -> JobReport | None:
        """As it is now, else as it was kept."""
        report = self._diagnosing.report(job, attempt)
        past = self._watching.past
        if report is not None or past is None:
            return report
        return _if_it_can(lambda: past.report(job, attempt), None)

    def _every(self, query: ReportQuery) -> Iterator[JobReport]:
        """Those that run or ended lately, and then those that are kept alone."""
        lately = self._diagnosing.reports()
        yield from lately
        past = self._watching.past
        if past is None:
            return
        asked = PastQuery(
            queue=query.queue, user=query.user, since=query.since, limit=MOST_LOOKED_AT
        )
        known = {(each.job, each.attempt) for each in lately}
        for each in _if_it_can(lambda: past.reports(asked), ()):
            if (each.job, each.attempt) not in known:
                yield each

    def _kept_rows(self, since: Instant) -> dict[Row, Time]:
        past, found = self._watching.past, dict[Row, Time]()
        for use in () if past is None else _if_it_can(lambda: past.uses(since), ()):
            row = Row(
                cluster=use.cluster,
                pool=use.pool,
                queue=use.queue,
                use=use.use,
                cause=use.cause,
                user=use.user,
            )
            time = Time(milli_ms=use.milli_ms, wasted=use.wasted)
            found[row] = found.get(row, Time()) + time
        return found

    def _seen(self, caller: Caller, job_id: JobId) -> JobDetail:
        detail = self._jobs.detail(caller, job_id)
        job = detail.view.job
        if not self._jobs.may_see(caller, job):
            rule = f"they or a queue_admin of {job.spec.queue} can see what it uses"
            raise ForbiddenError(NotYourJob(job=job.label, owner=job.spec.user, rule=rule))
        return detail

    def _asked(self, job: Job, report: JobReport) -> Asked:
        nodes = [self._record.nodes.get(each.node) for each in report.devices]
        held = {each.device for each in report.devices}
        models = {
            device.model
            for node in nodes
            if node is not None
            for device in node.devices
            if device.id in held
        }
        return Asked(
            spec=job.spec,
            language=language_of(self._jobs.whole_launch(job)),
            model=models.pop() if len(models) == 1 else None,
            ended_well=job.state is JobState.COMPLETED,
        )

    def _ended(
        self,
        caller: Caller,
        detail: JobDetail,
        report: JobReport | None,
        events: Sequence[Stored],
        number: int | None = None,
    ) -> Ended | None:
        """Why the attempt ended, if it is over and did not end well."""
        wanted = report.attempt if report is not None else number
        over = next((each for each in detail.attempts if each.number == wanted), None)
        if over is None:
            return None
        job = detail.view.job
        struck = tuple(each.event for each in events if isinstance(each.event, JobStruck))
        return ending_of(
            Past(
                attempt=over,
                spec=job.spec,
                report=report,
                struck=tuple(each for each in struck if each.attempt == over.number),
                log=self._log(caller, job.id, over.number),
                labels=self._jobs.labels.found(_named_by(over)),
            )
        )

    def _events(self, caller: Caller, job: JobId) -> tuple[Stored, ...]:
        return self._history.events(caller, EventQuery(job=job, limit=MOST_EVENTS))

    def _log(self, caller: Caller, job: JobId, attempt: int) -> tuple[str, ...]:
        """The last lines that it wrote: its errors, where they are apart, after the others."""
        texts: list[str] = []
        for stderr in (False, True):
            asked = LogQuery(
                job=job, attempt=attempt, stderr=stderr, offset=-LOG_BYTES, limit=LOG_BYTES
            )
            try:
                found = self._attempts.output(caller, asked).content
            except (MusterError, OSError):
                continue
            text = found.decode(errors="replace")
            texts.extend([text] if text not in texts else [])
        lines = [_shown(line) for text in texts for line in text.splitlines() if line.strip()]
        return tuple(lines[-MOST_LINES:])

    def _is_viewer(self, caller: Caller, queue: QueuePath) -> bool:
        return has_role(caller, self._record.site, Role.VIEWER, queue)

    def _may_see(self, caller: Caller, user: UserName, queue: QueuePath) -> bool:
        site = self._record.site
        own = caller.user == user and not caller.root
        return (own and has_role(caller, site, Role.USER, queue)) or has_role(
            caller, site, Role.QUEUE_ADMIN, queue
        )


def _is_below(queue: QueuePath, root: QueuePath) -> bool:
    return queue != NOBODY and is_within(queue, root)


def _unmeasured(detail: JobDetail, attempt: int | None) -> JobReport | None:
    """Of a job that asked for no GPU: when it ran, and nothing else."""
    job = detail.view.job
    if any(group.each.gpus for group in job.spec.groups):
        return None
    over = [each for each in detail.attempts if attempt in {None, each.number}]
    if not over or over[-1].started_at is None:
        return None
    last = over[-1]
    return JobReport(
        job=job.id,
        attempt=last.number,
        user=job.spec.user,
        queue=job.spec.queue,
        cluster=last.cluster,
        since=last.started_at or last.placed_at,
        until=last.ended_at,
        is_over=True,
    )


def _is_of(stored: Stored, attempt: int) -> bool:
    """Is it about this attempt, or about the job before and after all of them?"""
    return getattr(stored.event, "attempt", attempt) == attempt


def _shown(line: str) -> str:
    """As much of it as a line of a screen can say, and nothing that moves the cursor."""
    return "".join(each if each.isprintable() else " " for each in line[:LONGEST_LINE])


def _if_it_can(ask: Callable[[], T], otherwise: T) -> T:
    """What is kept of telemetry, or nothing while its store is in trouble: that is no error."""
    try:
        return ask()
    except Exception:
        log.exception("what was measured earlier cannot be read")
        return otherwise


def _is_meant(report: JobReport, query: ReportQuery) -> bool:
    return (
        (query.queue is None or is_within(report.queue, query.queue))
        and (query.user is None or report.user == query.user)
        and (query.since is None or report.until >= query.since)
    )


def _named_by(over: Attempt) -> tuple[JobId, ...]:
    """The jobs that an end names."""
    return (over.why.by,) if isinstance(over.why, Preempted) else ()
