"""Why a job is where it is, and what happened, in the words that every screen shows."""

import signal
from functools import lru_cache

from muster.api.jobs import ReasonDocument
from muster.doors.units import rfc3339
from muster.model.event import (
    CancelAsked,
    ClaimDropped,
    ClusterSeen,
    DeadlineMissForeseen,
    DeviceCut,
    DeviceErred,
    DeviceEvent,
    DeviceJudged,
    Event,
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
    StepEvent,
)
from muster.model.job import (
    FINAL,
    Cancelled,
    DeadlinePassed,
    EndReason,
    Exited,
    HeldBy,
    Job,
    JobSpec,
    JobState,
    LaunchFailed,
    NodeFailed,
    OutOfMemory,
    Preempted,
    Requeued,
    Signaled,
    TaskGroup,
    TimedOut,
)
from muster.model.plan import Wait
from muster.model.queue import PreemptMode
from muster.model.reason import ForOthers, WaitReason, told
from muster.model.value import DeviceId, Instant, JobId, QueuePath, UserName, Value
from muster.model.words import NO_LABELS, Labels, exact_span, jobs_listed
from muster.model.xid import xid_of, xid_text
from muster.schedule.explain.words import where

NEW = ReasonDocument(kind="new", text="Is new or was changed; the next plan looks at it.")

_NO_USER = UserName("")

_LabelPairs = tuple[tuple[JobId, str], ...]

_OPENINGS = {
    JobState.STOPPING: "Is being stopped. ",
    JobState.PENDING: "Waits for another attempt. ",
    JobState.HELD: "Is held. ",
}
"""Of a job that is not over, before what it stops for, or why it waits again."""


def reason(
    job: Job, wait: Wait | None, now: Instant, labels: Labels = NO_LABELS
) -> ReasonDocument | None:
    """Why the job is where it is; None for one that runs, which needs no reason."""
    if wait is not None:
        return waiting(wait.why, job, now, labels)
    if job.state in {JobState.STARTING, JobState.RUNNING}:
        return None
    if isinstance(job.why, HeldBy):
        return waiting(job.why, job, now)
    if job.why is None:
        return NEW if job.state is JobState.PENDING else None
    opening = "" if job.state in FINAL else _OPENINGS.get(job.state, "")
    return _past(job.why, opening, _labels_of(end_names(job.why), labels))


def waiting(why: WaitReason, job: Job, now: Instant, labels: Labels = NO_LABELS) -> ReasonDocument:
    """Why it waits. Many jobs wait for the same reason, so the texts are kept.

    Of the job, only what it asks for can be in the text; the time, only where the reason is dated.
    """
    dated = now if why.facts.dated else Instant(0)
    return _waiting(why, job.spec.groups, dated, _labels_of(wait_names(why), labels))


def wait_names(why: WaitReason) -> tuple[JobId, ...]:
    """The jobs that the sentence names."""
    return why.names if isinstance(why, ForOthers) else ()


def end_names(why: EndReason | HeldBy | None) -> tuple[JobId, ...]:
    """The same, of how an attempt ended."""
    return (why.by,) if isinstance(why, Preempted) else ()


def event_names(event: Event) -> tuple[JobId, ...]:
    """The same, of an event, beside the job that it is about."""
    if isinstance(event, JobEnded):
        return end_names(event.why)
    return (event.by,) if isinstance(event, JobPreempted) else ()


def ended(why: EndReason, labels: Labels = NO_LABELS) -> str:
    """How an attempt came to its end."""
    match why:
        case Exited() | Signaled():
            return _by_its_processes(why)
        case TimedOut(limit=limit):
            return f"Ran to its time limit of {exact_span(limit)}."
        case OutOfMemory(node=node):
            return f"Used more memory than it had asked for on {node}."
        case NodeFailed(node=node):
            return f"Node {node} was lost under it."
        case LaunchFailed(text=text):
            return f"Could not be started: {text}"
        case DeadlinePassed(deadline=deadline):
            return f"Could no longer end by its deadline, {rfc3339(deadline)}."
        case Preempted() | Cancelled() | Requeued():
            return _asked_for(why, labels)


def kind(why: Value) -> str:
    """The tag of a reason, for programs."""
    return str(why.__struct_config__.tag)


def happened(event: Event, labels: Labels = NO_LABELS) -> str:
    """An event in one sentence."""
    match event:
        case JobSubmitted() | JobHeld() | JobReleased() | CancelAsked() | RequeueAsked():
            return _by_people(event)
        case JobUpdated() | SignalAsked() | DeadlineMissForeseen():
            return _meanwhile(event)
        case JobEnded() | StepBegan() | StepEnded() | PodSeen():
            return _running(event, labels)
        case JobClaimed() | ClaimDropped() | JobPlaced() | JobResized() | JobPreempted():
            return _by_the_planner(event, labels)
        case JobStarted() | JobCheckpointed() | JobSuspended() | JobResumed() | JobRequeued():
            return _by_itself(event)
        case NodeSeen() | NodeGone() | NodeChanged() | NodeMarked() | DeviceCut():
            return _on_node(event)
        case DeviceErred() | DeviceJudged() | JobStruck():
            return _of_device(event)
        case ClusterSeen() | SiteChanged():
            return _around(event)


@lru_cache(maxsize=4_096)
def _waiting(
    why: WaitReason, groups: tuple[TaskGroup, ...], now: Instant, labels: _LabelPairs
) -> ReasonDocument:
    spec = JobSpec(name="", user=_NO_USER, queue=QueuePath(""), groups=groups)
    return ReasonDocument(kind=kind(why), text=told(why, spec, now, dict(labels)))


@lru_cache(maxsize=4_096)
def _past(why: EndReason, opening: str, labels: _LabelPairs) -> ReasonDocument:
    return ReasonDocument(kind=kind(why), text=opening + ended(why, dict(labels)))


def _labels_of(jobs: tuple[JobId, ...], labels: Labels) -> _LabelPairs:
    """Of these jobs alone, as something that texts can be kept by."""
    return tuple((job, labels[job]) for job in jobs if job in labels)


def _by_its_processes(why: Exited | Signaled) -> str:
    match why:
        case Exited(code=0):
            return "Ended by itself."
        case Exited(code=code):
            return f"Ended by itself with exit code {code}."
        case Signaled(signal=number):
            name = _signal_name(number)
            return f"Was ended by signal {number} ({name}) that Muster did not send."


def _asked_for(why: Preempted | Cancelled | Requeued, labels: Labels) -> str:
    match why:
        case Preempted(by=job, mode=PreemptMode.SUSPEND):
            return f"Was suspended to make room for {jobs_listed([job], labels)}."
        case Preempted(by=job):
            return f"Made room for {jobs_listed([job], labels)}."
        case Cancelled(by=user):
            return f"Was cancelled by {user}."
        case Requeued(by=user):
            return f"Was sent back to wait by {user}."


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return "without a name"


def _running(event: JobEnded | StepEvent | PodSeen, labels: Labels) -> str:
    match event:
        case PodSeen(status=status):
            told = ", ".join(f"{each.name} {each.phase}" for each in status.containers)
            return f"Containers: {told}."
        case JobEnded(attempt=attempt, why=why):
            return f"Attempt {attempt} is over. {ended(why, labels)}"
        case StepBegan(step=step):
            return f"Step {step.number} began: {step.name}."
        case StepEnded(step=step):
            how = f"signal {step.signal}" if step.signal else f"code {step.code}"
            return f"Step {step.number} ended with {how}."


def _by_people(
    event: JobSubmitted | JobHeld | JobReleased | CancelAsked | RequeueAsked,
) -> str:
    match event:
        case JobSubmitted(spec=spec, held=is_held):
            held = ", held until it is released" if is_held else ""
            return f"{spec.user} submitted it to queue {spec.queue}{held}."
        case JobHeld(by=by):
            return f"{by} holds it back."
        case JobReleased(by=by):
            return f"{by} released it."
        case CancelAsked(by=by):
            return f"{by} asked for its end."
        case RequeueAsked(by=by):
            return f"{by} sent it back to wait."


def _meanwhile(event: JobUpdated | SignalAsked | DeadlineMissForeseen) -> str:
    match event:
        case JobUpdated(by=by):
            return f"{by} changed what it asks for."
        case SignalAsked(by=by, signal=number):
            return f"{by} sent it signal {number} ({_signal_name(number)})."
        case DeadlineMissForeseen(deadline=deadline, starts_at=starts_at):
            return (
                f"It is expected to start about {rfc3339(starts_at)}, "
                f"too late for its deadline, {rfc3339(deadline)}."
            )


def _by_the_planner(
    event: JobClaimed | ClaimDropped | JobPlaced | JobResized | JobPreempted,
    labels: Labels,
) -> str:
    match event:
        case JobClaimed(claim=claim):
            return f"Room is being made for it on {where(claim.placements)}."
        case ClaimDropped():
            return "The room that was being made for it is given up."
        case JobPlaced(attempt=attempt, placements=placements):
            return f"Attempt {attempt} was placed on {where(placements)}."
        case JobResized(placements=placements):
            return f"It was given {where(placements)} beside what it has."
        case JobPreempted(by=job):
            return f"It was preempted to make room for {jobs_listed([job], labels)}."


def _by_itself(
    event: JobStarted | JobCheckpointed | JobSuspended | JobResumed | JobRequeued,
) -> str:
    match event:
        case JobStarted(attempt=attempt):
            return f"Attempt {attempt} runs."
        case JobCheckpointed():
            return "It wrote a checkpoint."
        case JobSuspended():
            return "It is suspended."
        case JobResumed():
            return "It goes on."
        case JobRequeued():
            return "It waits again."


def _on_node(event: NodeSeen | NodeGone | NodeChanged | NodeMarked | DeviceCut) -> str:
    match event:
        case NodeSeen(node=node):
            return f"Node {node.id} reports itself {node.state}."
        case NodeGone(node=name):
            return f"Node {name} does not exist any more."
        case NodeChanged(node=name, state=state, by=by, reason=why):
            return f"{by} made node {name} {state}" + (f": {why}" if why else ".")
        case NodeMarked(node=name, by=by):
            return f"{by} gave node {name} other labels or taints."
        case DeviceCut(node=name, device=device):
            return f"Device {device} of node {name} was repartitioned."


def _of_device(event: DeviceEvent) -> str:
    match event:
        case DeviceErred(node=node, device=device, xid=xid):
            return f"{_called(device)} of node {node} reported {xid_text(xid)}."
        case DeviceJudged(node=node, device=device, state=state, why=why):
            because = f": {why}" if why else ""
            return f"{_called(device)} of node {node} is {state}{because}."
        case JobStruck(node=node, device=device, xid=xid):
            advice = xid_of(xid).advice
            return (
                f"{_called(device)} of node {node}, which it holds, reported {xid_text(xid)}; "
                f"NVIDIA's advice: {advice}."
            )


def _called(device: DeviceId) -> str:
    return f"GPU {device}" if device else "A GPU"


def _around(event: ClusterSeen | SiteChanged) -> str:
    match event:
        case ClusterSeen(cluster=cluster):
            answers = "answers" if cluster.reachable else "does not answer"
            return f"Cluster {cluster.name} {answers}."
        case SiteChanged(by=by):
            return f"{by} changed the configuration."
