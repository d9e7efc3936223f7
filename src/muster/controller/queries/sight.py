"""What a caller sees of jobs that are not theirs.

A private queue keeps to itself who runs what: people without a role there see that its jobs exist,
where they are and what they ask for, and not whose they are or what they are called.
"""

from collections.abc import Iterable, Iterator, Mapping

from muster.controller.messages import Caller
from muster.controller.rights import owns, sees_names
from muster.model.event import (
    CancelAsked,
    ClaimDropped,
    ClusterSeen,
    DeadlineMissForeseen,
    DeviceCut,
    DeviceErred,
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
)
from muster.model.job import (
    Cancelled,
    DeadlinePassed,
    EndReason,
    Exited,
    HeldBy,
    Job,
    JobSpec,
    LaunchFailed,
    NodeFailed,
    OutOfMemory,
    Preempted,
    Requeued,
    Signaled,
    TimedOut,
)
from muster.model.mail import NO_MAIL
from muster.model.pod import PodStatus
from muster.model.site import Site
from muster.model.steps import Step
from muster.model.value import JobId, QueuePath, UserName, replace

HIDDEN = UserName("(hidden)")
"""In the place of a name that the caller may not see. No user or job can have it."""

MOST_MASKED = 200_000


class Masks:
    """Masked jobs, kept so that the same job is the same object: listings are cached by that."""

    def __init__(self) -> None:
        self._kept: dict[JobId, tuple[Job, Job]] = {}

    def of(self, job: Job) -> Job:
        """The job without names."""
        kept = self._kept.get(job.id)
        if kept is not None and kept[0] is job:
            return kept[1]
        if len(self._kept) > MOST_MASKED:
            self._kept.clear()
        masked = _masked(job)
        self._kept[job.id] = (job, masked)
        return masked


class Sight:
    """What one caller sees, by the rules of this moment."""

    def __init__(self, caller: Caller, site: Site, masks: Masks) -> None:
        self._caller = caller
        self._site = site
        self._masks = masks
        self._queues: dict[QueuePath, bool] = {}
        self.is_clear = caller.root or not any(each.private for each in site.queues.values())
        """Is there nothing that this caller may not see?"""

    def sees(self, job: Job) -> bool:
        """Does the caller see whose job it is, and what it is called?"""
        if self.is_clear or job.spec.user == self._caller.user:
            return True
        queue = job.spec.queue
        known = self._queues.get(queue)
        if known is None:
            known = self._queues[queue] = sees_names(self._caller, self._site, queue)
        return known

    def job(self, job: Job) -> Job:
        """The job as the caller sees it."""
        return job if self.sees(job) else self._masks.of(job)

    def jobs(self, jobs: Iterable[Job]) -> Iterable[Job]:
        """All of them; nothing is looked at where all is clear."""
        return jobs if self.is_clear else map(self.job, jobs)

    def steps(self, steps: Iterable[Step], jobs: Mapping[JobId, Job]) -> Iterator[Step]:
        """Steps with the lines that began them where the job is the caller's own."""
        for step in steps:
            job = jobs.get(step.job)
            if job is not None and owns(self._caller, self._site, job):
                yield _in_one_line(step)
            else:
                is_named = job is not None and self.sees(job)
                yield _in_one_line(
                    without_command(step if is_named else replace(step, name=HIDDEN))
                )


def without_command(step: Step) -> Step:
    """A step without its command line, which may hold what only its user should know."""
    parts = tuple(replace(part, name=step.name, command="") for part in step.parts)
    return replace(step, command="", parts=parts)


def _in_one_line(step: Step) -> Step:
    """Steps are named inside jobs: what is not for a terminal to read is left out of it."""
    if step.name.isprintable() and step.command.isprintable():
        return step
    return replace(step, name=_printable(step.name), command=_printable(step.command))


def _printable(text: str) -> str:
    return "".join(each if each.isprintable() else "?" for each in text)


def masked_event(event: Event) -> Event:
    """An event of a job without the names of people, jobs and steps."""
    match event:
        case JobSubmitted():
            return replace(event, spec=_masked_spec(event.spec))
        case JobUpdated():
            return replace(event, spec=_masked_spec(event.spec), by=HIDDEN)
        case JobHeld() | JobReleased() | CancelAsked() | RequeueAsked() | SignalAsked():
            return replace(event, by=HIDDEN)
        case JobEnded(why=why):
            return replace(event, why=_without_names(why))
        case JobCheckpointed():
            return replace(event, path=None)
        case StepBegan() | StepEnded():
            return replace(event, step=without_command(replace(event.step, name=HIDDEN)))
        case PodSeen():
            return replace(event, status=PodStatus())
        # What machines and the planner did names nobody.
        case (
            JobClaimed()
            | ClaimDropped()
            | JobPlaced()
            | JobStarted()
            | JobResized()
            | JobSuspended()
            | JobResumed()
            | JobPreempted()
            | JobRequeued()
            | DeadlineMissForeseen()
            | JobStruck()
        ):
            return event
        case (
            NodeSeen()
            | DeviceCut()
            | NodeGone()
            | NodeChanged()
            | NodeMarked()
            | DeviceErred()
            | DeviceJudged()
            | ClusterSeen()
            | SiteChanged()
        ):
            return event


def _masked(job: Job) -> Job:
    why = _without_names(job.why)
    return replace(job, spec=_masked_spec(job.spec), why=why, checkpoint=None)


def _masked_spec(spec: JobSpec) -> JobSpec:
    return replace(spec, name=HIDDEN, user=HIDDEN, labels={}, mail=NO_MAIL)


def _without_names(why: EndReason | HeldBy | None) -> EndReason | HeldBy | None:
    match why:
        case Cancelled():
            return replace(why, by=HIDDEN)
        case HeldBy():
            return replace(why, user=HIDDEN)
        case Requeued(held=held):
            return replace(why, by=HIDDEN, held=held and replace(held, user=HIDDEN))
        case LaunchFailed():
            return replace(why, text=HIDDEN)
        case Exited() | Signaled() | TimedOut() | OutOfMemory() | NodeFailed() | Preempted():
            return why
        case DeadlinePassed() | None:
            return why
