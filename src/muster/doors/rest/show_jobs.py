"""Jobs as documents. A list has thousands of them, so that what repeats is worked out once."""

from collections.abc import Iterable, Mapping
from functools import lru_cache

from muster.api.jobs import (
    AlternativeDocument,
    AttemptDocument,
    ExplanationDocument,
    JobDocument,
    JobLine,
    KnownTimeDocument,
    LaunchDocument,
    ReasonDocument,
    ShareDocument,
    StartDocument,
    TaskDocument,
    TurnDocument,
)
from muster.controller.messages import JobDetail, JobView
from muster.doors.mail_words import words_of
from muster.doors.rest.words import ended, kind, reason
from muster.doors.units import rfc3339, slice_text
from muster.model.cluster import Node
from muster.model.dates import OF_TEN, StartDate
from muster.model.explanation import Alternative, Explanation, KnownTime
from muster.model.history import Attempt
from muster.model.job import (
    FINAL,
    HOLDING,
    Cancelled,
    DeadlinePassed,
    Exited,
    HeldBy,
    Job,
    LaunchFailed,
    NodeFailed,
    OutOfMemory,
    Preempted,
    Requeued,
    Signaled,
    TaskGroup,
    TimedOut,
)
from muster.model.launch import Launch
from muster.model.placement import Allocation, Placement
from muster.model.plan import NoEstimate, Priority, Prospect, Wait
from muster.model.resources import NOTHING, Resources
from muster.model.value import DAY, MINUTE, SECOND, Instant, NodeId, Value, replace
from muster.model.words import Labels


def job_document(view: JobView, now: Instant, prospect: Prospect | None = None) -> JobDocument:
    """A job as one of a list: without its tasks, attempts and launch."""
    job, held = view.job, view.allocation
    spec, wait = job.spec, view.wait
    asked = _asked(spec.groups)
    amount, nodes = (asked.amount, ()) if held is None else _held(held)
    code, number = _ending(job)
    return JobDocument(
        id=job.id,
        name=spec.name,
        user=spec.user,
        queue=spec.queue,
        job_class=spec.job_class,
        state=job.state,
        reason=reason(job, wait, now, view.labels),
        submitted_at=stamp(job.submitted_at),
        started_at=stamp_or_none(view.started_at),
        ended_at=stamp_or_none(view.ended_at),
        expected_start=None if prospect is None else _expected(prospect.expected),
        start=None if prospect is None else start_document(prospect.date),
        time_limit=None if spec.time_limit is None else spec.time_limit // 1_000,
        attempt=job.attempt,
        exit_code=code,
        signal=number,
        task_count=asked.tasks if held is None else len(held.placements),
        cpus=amount.cpu_milli / 1_000,
        memory_mib=amount.memory_mib,
        gpus=amount.gpu_milli / 1_000,
        nodes=nodes,
        cluster=None if held is None else held.cluster,
        pretend=view.pretend,
        priority=spec.priority,
        array=None if spec.array is None else spec.array.array,
        array_index=None if spec.array is None else spec.array.index,
        labels=spec.labels,
        mail_on=words_of(spec.mail),
        mail_to=spec.mail.to,
        checkpointed_at=None if held is None else stamp_or_none(held.checkpointed_at),
        gpu_seconds=0 if held is None else gpu_seconds_held(job, held, now),
    )


def job_line(view: JobView, now: Instant) -> JobLine:
    """A live job in one short line."""
    job, held = view.job, view.allocation
    amount, nodes = (_asked(job.spec.groups).amount, ()) if held is None else _held(held)
    array, why = job.spec.array, None if nodes else reason(job, view.wait, now, view.labels)
    marked = " (pretend)" if view.pretend else ""
    return JobLine(
        id=job.id,
        array=None if array is None else array.array,
        array_index=None if array is None else array.index,
        name=job.spec.name,
        user=job.spec.user,
        queue=job.spec.queue,
        state=job.state,
        since=stamp(job.submitted_at if view.started_at is None else view.started_at),
        gpus=amount.gpu_milli / 1_000,
        where=f"{','.join(nodes)}{marked}" if why is None else why.text,
    )


def with_attempts(
    document: JobDocument, attempts: Iterable[Attempt], nodes: Mapping[NodeId, Node]
) -> JobDocument:
    """With what past attempts add up to; a job that is over was last on the nodes of its last."""
    past = tuple(attempts)
    if not past:
        return document
    last = past[-1]
    return replace(
        document,
        nodes=document.nodes or (last.nodes if document.state in FINAL else ()),
        cluster=document.cluster or (last.cluster if document.state in FINAL else None),
        pretend=document.pretend
        or any(nodes[each].pretend for each in last.nodes if each in nodes),
        checkpointed_at=document.checkpointed_at or stamp_or_none(last.checkpointed_at),
        gpu_seconds=document.gpu_seconds + sum(map(_gpu_seconds, past)),
        lost_gpu_seconds=sum(each.lost_gpu_ms for each in past) / 1_000,
    )


def detail_document(
    detail: JobDetail,
    now: Instant,
    nodes: Mapping[NodeId, Node],
    prospect: Prospect | None = None,
) -> JobDocument:
    """A job with all there is to say about it."""
    held = detail.view.allocation
    document = with_attempts(job_document(detail.view, now, prospect), detail.attempts, nodes)
    return replace(
        document,
        tasks=() if held is None else tuple(map(_task, held.placements)),
        attempts=tuple(attempt_document(each, detail.view.labels) for each in detail.attempts),
        launch=None if detail.launch is None else _launch(detail.launch),
    )


def attempt_document(attempt: Attempt, labels: Labels) -> AttemptDocument:
    """An attempt that is over."""
    used = attempt.used
    return AttemptDocument(
        number=attempt.number,
        nodes=attempt.nodes,
        started_at=stamp_or_none(attempt.started_at),
        ended_at=stamp(attempt.ended_at),
        reason=None
        if attempt.why is None
        else ReasonDocument(kind=kind(attempt.why), text=ended(attempt.why, labels)),
        gpu_seconds=_gpu_seconds(attempt),
        lost_gpu_seconds=attempt.lost_gpu_ms / 1_000,
        checkpointed_at=stamp_or_none(attempt.checkpointed_at),
        cpu_seconds=None if used is None else used.cpu_ms / 1_000,
        max_memory_mib=None if used is None else used.max_memory_mib,
    )


def explanation_document(
    explanation: Explanation, state: str, priority: Priority | None
) -> ExplanationDocument:
    """Why a job waits or where it goes, who is in its way, and what would help."""
    decision = explanation.decision
    why = decision.why if isinstance(decision, Wait) else decision
    expected = explanation.expected
    return ExplanationDocument(
        job=explanation.job,
        state=state,
        kind=state if why is None else kind(why),
        text=explanation.text,
        blockers=explanation.blockers,
        expected_start=_expected(expected),
        no_estimate=expected.value if isinstance(expected, NoEstimate) else None,
        alternatives=tuple(map(alternative_document, explanation.alternatives)),
        turn=None if priority is None else _turn(priority),
        start=start_document(explanation.date),
        time=_known_time(explanation.time),
    )


def _known_time(known: KnownTime | None) -> KnownTimeDocument | None:
    if known is None:
        return None
    return KnownTimeDocument(
        text=known.text,
        expected_s=known.expected // 1_000,
        high_s=known.high // 1_000,
        samples=known.samples,
        like=known.like,
        limit_s=None if known.limit is None else known.limit // 1_000,
        first_from=None if known.first_from is None else stamp(known.first_from),
    )


def start_document(date: StartDate | None) -> StartDocument | None:
    """A date as a range."""
    if date is None:
        return None
    return StartDocument(
        early=stamp(date.early),
        middle=stamp(date.middle),
        late=stamp(date.late),
        of_ten=OF_TEN,
        after=date.after,
        newcomers=date.newcomers,
        passing=date.passing,
    )


def _turn(priority: Priority) -> TurnDocument:
    return TurnDocument(
        points=priority.total,
        own_first=priority.is_own,
        job_class=priority.job_class,
        fair_share=priority.fair_share,
        age=priority.age,
        queue=priority.queue,
        size=priority.size,
        short=priority.short,
        service=priority.service,
        priority=priority.asked,
    )


def stamp(at: Instant) -> str:
    """RFC 3339, as `units.rfc3339` writes it; the texts of days and minutes are kept."""
    day, rest = divmod(at, DAY)
    minute, ms = divmod(rest, MINUTE)
    second, ms = divmod(ms, SECOND)
    if ms:
        return f"{_day(day)}{_MINUTES[minute]}{second:02}.{ms:03}Z"
    return f"{_day(day)}{_MINUTES[minute]}{second:02}Z"


def stamp_or_none(at: Instant | None) -> str | None:
    """The same for what may not have happened."""
    return None if at is None else stamp(at)


def gpu_seconds_held(job: Job, held: Allocation, now: Instant) -> float:
    """What the attempt that goes on has held so far."""
    if job.state not in HOLDING:
        return 0
    return sum(each.amount.gpu_milli for each in held.placements) * (now - held.placed_at) / 1e6


_MINUTES = tuple(f"T{minute // 60:02}:{minute % 60:02}:" for minute in range(24 * 60))


@lru_cache(maxsize=4_096)
def _day(day: int) -> str:
    return rfc3339(Instant(day * DAY)).partition("T")[0]


class _Totals(Value):
    """What all groups of a job ask for together."""

    tasks: int
    amount: Resources


@lru_cache(maxsize=4_096)
def _asked(groups: tuple[TaskGroup, ...]) -> _Totals:
    amount = NOTHING
    for group in groups:
        models = group.each.gpus.models if group.each.gpus else ()
        amount += group.each.amount(models[0] if models else None) * group.count
    return _Totals(tasks=sum(group.count for group in groups), amount=amount)


def _held(held: Allocation) -> tuple[Resources, tuple[str, ...]]:
    placements = held.placements
    if len(placements) == 1:
        return placements[0].amount, (placements[0].node,)
    amount = sum((each.amount for each in placements), NOTHING)
    return amount, tuple(sorted({each.node for each in placements}))


def _ending(job: Job) -> tuple[int | None, int | None]:
    match job.why:
        case Exited(code=code):
            return code, None
        case Signaled(signal=number):
            return None, number
        case TimedOut() | NodeFailed() | Preempted() | Cancelled() | Requeued() | DeadlinePassed():
            return None, None
        case OutOfMemory() | LaunchFailed() | HeldBy() | None:
            return None, None


def _expected(expected: Instant | NoEstimate) -> str | None:
    return None if isinstance(expected, NoEstimate) else stamp(expected)


def _gpu_seconds(attempt: Attempt) -> float:
    return attempt.amount.gpu_milli * (attempt.ended_at - attempt.placed_at) / 1e6


def _task(placement: Placement) -> TaskDocument:
    return TaskDocument(
        group=placement.group,
        index=placement.index,
        node=placement.node,
        pool=placement.pool,
        cpus=placement.amount.cpu_milli / 1_000,
        memory_mib=placement.amount.memory_mib,
        gpus=placement.amount.gpu_milli / 1_000,
        devices=tuple(
            ShareDocument(
                device=share.device,
                slice=None if share.slice is None else slice_text(share.slice),
                enforced=share.enforced.value,
            )
            for share in placement.devices
        ),
    )


def _launch(launch: Launch) -> LaunchDocument:
    return LaunchDocument(
        command=launch.argv,
        script=launch.script,
        image=launch.image,
        env=launch.env,
        workdir=launch.workdir,
        stdout=launch.stdout,
        stderr=launch.stderr,
        submit_line=launch.submit_line,
    )


def alternative_document(found: Alternative) -> AlternativeDocument:
    """What would help a job that waits."""
    return AlternativeDocument(
        text=found.text,
        starts_now=found.starts_now,
        expected_start=_expected(found.expected),
        change=found.change,
    )
