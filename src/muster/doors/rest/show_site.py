"""Classes, people, keys and events as documents."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, cast

import msgspec

from muster import __version__
from muster.api.site import (
    AuditDocument,
    ClassDocument,
    DatesHeldDocument,
    EventDocument,
    MovedDocument,
    RehearsalDocument,
    StatusDocument,
    TokenDocument,
    UserDocument,
)
from muster.controller.messages import Health, Rehearsal
from muster.controller.queries.sight import without_command
from muster.doors.rest.show_jobs import alternative_document, stamp, stamp_or_none, start_document
from muster.doors.rest.words import event_names, happened, kind
from muster.model.cluster import Node
from muster.model.event import (
    CancelAsked,
    ClaimDropped,
    ClusterSeen,
    DeadlineMissForeseen,
    DeviceCut,
    DeviceErred,
    DeviceJudged,
    JobCheckpointed,
    JobClaimed,
    JobEnded,
    JobHeld,
    JobPlaced,
    JobPreempted,
    JobReleased,
    JobRequeued,
    JobResized,
    JobResumed,
    JobStarted,
    JobStruck,
    JobSubmitted,
    JobSuspended,
    JobUpdated,
    NodeChanged,
    NodeGone,
    NodeMarked,
    NodeSeen,
    PodSeen,
    RequeueAsked,
    SignalAsked,
    SiteChanged,
    StepBegan,
    StepEnded,
)
from muster.model.history import AuditEntry
from muster.model.job import FINAL, JobState
from muster.model.launch import NO_LAUNCH
from muster.model.plan import NoEstimate
from muster.model.pod import PodStatus
from muster.model.queue import EVERYONE, JobClass
from muster.model.site import Grant, Token, User
from muster.model.value import JobId, NodeId, QueuePath, UserName, replace
from muster.model.words import Labels
from muster.stores.base import Stored


def status_document(
    health: Health,
    live: Mapping[JobState, int],
    nodes: Mapping[NodeId, Node],
    gpu_milli_held: int,
) -> StatusDocument:
    """The installation at a glance."""
    machines = nodes.values()
    return StatusDocument(
        version=__version__,
        leading=health.leading,
        store=health.store,
        last_event=health.last_event,
        jobs={state.value: count for state, count in sorted(live.items()) if state not in FINAL},
        nodes=dict(sorted(Counter(node.state.value for node in machines).items())),
        gpus=sum(len(node.devices) for node in machines),
        gpus_used=gpu_milli_held / 1_000,
        pretend=any(node.pretend for node in machines),
        plan_ms=health.plan_ms,
        planned_at=stamp_or_none(health.planned_at),
        problems=health.problems,
        dates_told=health.dates.told,
        dates_held=health.dates.held,
        dates=tuple(
            DatesHeldDocument(
                queue=each.queue, job_class=each.job_class, told=each.told, held=each.held
            )
            for each in health.dates.groups
        ),
    )


def class_document(job_class: JobClass, usual: JobClass | None) -> ClassDocument:
    """A job class. usual: that of jobs which name none; nothing more urgent is for everyone."""
    is_open = job_class.lets_use(UserName(""), QueuePath(""), usual)
    return ClassDocument(
        name=job_class.name,
        priority=job_class.priority,
        preempts=job_class.preempts,
        preemptible=job_class.preemptible,
        preempt_mode=job_class.preempt_mode.value,
        grace=job_class.grace // 1_000,
        max_time=None if job_class.max_time is None else job_class.max_time // 1_000,
        spot_only=job_class.spot_only,
        may_use=(EVERYONE,) if is_open else job_class.may_use,
        queues=job_class.queues,
        may_decline=job_class.may_decline,
    )


def user_document(user: User) -> UserDocument:
    """Somebody who is known by name."""
    return UserDocument(
        name=user.name,
        roles=tuple(map(role_text, user.grants)),
        default_queue=user.default_queue,
    )


def role_text(grant: Grant) -> str:
    """`admin`, `queue_admin:acme/nlp`."""
    return grant.role.value if grant.queue is None else f"{grant.role}:{grant.queue}"


def token_document(token: Token, secret: str | None = None) -> TokenDocument:
    """A key; the secret only when it was just made."""
    return TokenDocument(
        id=token.id,
        user=token.user,
        role=token.role.value,
        queue=token.queue,
        made_at=stamp(token.made_at),
        expires_at=stamp(token.expires_at),
        revoked=token.revoked,
        secret=secret,
    )


def audit_document(entry: AuditEntry) -> AuditDocument:
    """Who changed what."""
    return AuditDocument(
        at=stamp(entry.at),
        user=entry.user,
        door=entry.door,
        action=entry.action,
        subject=entry.subject,
        detail=entry.detail,
        token=entry.token,
    )


def rehearsal_document(rehearsal: Rehearsal, explanation: str | None) -> RehearsalDocument:
    """What would be different."""
    expected = rehearsal.expected
    return RehearsalDocument(
        text=rehearsal.text,
        starts=rehearsal.starts,
        waits=rehearsal.waits,
        preempted=rehearsal.preempted,
        explanation=explanation,
        expected_start=stamp_or_none(None if isinstance(expected, NoEstimate) else expected),
        start=start_document(rehearsal.date),
        moved=tuple(
            MovedDocument(job=each.job, before=stamp(each.before), after=stamp(each.after))
            for each in rehearsal.moved
        ),
        alternatives=tuple(map(alternative_document, rehearsal.alternatives)),
    )


def event_document(stored: Stored, labels: Labels) -> EventDocument:
    """A fact with its place in the log. What a job runs, and the rules' text, are left out."""
    event = stored.event
    match event:
        case JobSubmitted() | JobUpdated():
            shown = replace(event, spec=replace(event.spec, launch=NO_LAUNCH))
            # Where it is kept, a request is without what it did not ask for; people see all of it.
            fact = {**_plain(shown), "spec": _whole(shown.spec)}
        case SiteChanged(at=at, by=by):
            fact = {"at": at, "by": by}
        case PodSeen(at=at, job=job, attempt=attempt, status=status, task=task):
            shown = _pod(status)
            fact = {"at": at, "job": job, "attempt": attempt, "task": task, "containers": shown}
        case StepBegan() | StepEnded():
            fact = _plain(replace(event, step=without_command(event.step)))
        case (
            JobHeld()
            | JobReleased()
            | JobClaimed()
            | ClaimDropped()
            | JobPlaced()
            | JobStarted()
            | JobCheckpointed()
            | JobResized()
            | JobSuspended()
            | JobResumed()
            | JobPreempted()
            | CancelAsked()
            | RequeueAsked()
            | SignalAsked()
            | DeadlineMissForeseen()
            | JobEnded()
            | JobRequeued()
            | NodeSeen()
            | DeviceCut()
            | NodeGone()
            | NodeChanged()
            | NodeMarked()
            | DeviceErred()
            | DeviceJudged()
            | JobStruck()
            | ClusterSeen()
        ):
            fact = _plain(event)
    job: JobId | None = getattr(event, "job", None)
    return EventDocument(
        number=stored.number,
        kind=kind(event),
        at=stamp(event.at),
        job=job,
        text=happened(event, labels),
        fact=fact,
        label=None if job is None else labels.get(job, str(job)),
    )


def named_in(events: Sequence[Stored]) -> set[JobId]:
    """The jobs that these events are about, or name."""
    about = (getattr(each.event, "job", None) for each in events)
    named = (job for each in events for job in event_names(each.event))
    return {job for job in (*about, *named) if job is not None}


def _plain(value: object) -> Mapping[str, Any]:
    fact: dict[str, Any] = msgspec.to_builtins(value)
    fact.pop("type", None)
    return fact


def _whole(value: object) -> object:
    """A value with all its fields, also those that are as usual."""
    match value:
        case msgspec.Struct():
            tag = value.__struct_config__.tag
            fields = {name: _whole(getattr(value, name)) for name in value.__struct_fields__}
            return fields if tag is None else {"type": tag, **fields}
        case tuple():
            return [_whole(each) for each in cast("tuple[object, ...]", value)]
        case _:
            return msgspec.to_builtins(value)


def _pod(status: PodStatus) -> list[dict[str, object]]:
    """Its containers; what they said last is their user's own."""
    return [
        {"name": each.name, "phase": str(each.phase), "restarts": each.restarts}
        for each in status.containers
    ]
