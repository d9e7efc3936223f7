"""Jobs of srun and salloc: submitted, waited for, given up. What they print is Slurm's."""

from muster.controller.messages import JobView
from muster.doors.slurm.call import Again, Door, Reply
from muster.doors.slurm.commands.sbatch import world_of
from muster.doors.slurm.submit.refusals import refusal, warnings_of
from muster.doors.slurm.submit.request import Request
from muster.doors.slurm.submit.submission import held_for_steps
from muster.doors.slurm.words.errors import SlurmError, failed
from muster.model.errors import MusterError
from muster.model.job import FINAL, JobState, LaunchFailed
from muster.model.value import Duration, Instant, JobId, Value

BUSY = "Unable to allocate resources: Requested nodes are busy"
SOON = Duration(2_000)
"""A job that has not started by then waits, whatever the planner is doing."""


class Waiting(Value):
    """A job that was submitted: when, and whether its user knows that it waits."""

    job: JobId
    since: Instant
    said: bool = False

    def memo(self) -> dict[str, str]:
        """What the command gives back with its next call."""
        found = {"job": str(self.job), "since": str(self.since)}
        return found | ({"said": "yes"} if self.said else {})


class Granted(Value):
    """The job runs; `messages` is what its user reads first."""

    view: JobView
    messages: str = ""


def submitted(requests: tuple[Request, ...], door: Door, warnings: str) -> Reply:
    """Hand in a job that runs nothing by itself; a request for each of its components."""
    request, want = requests[0], held_for_steps(requests, world_of(door))
    try:
        receipt = door.service.submit(door.caller, want.spec, held=want.held).result()
    except MusterError as error:
        raise refusal(request, error) from error
    waiting = Waiting(job=receipt.jobs[0], since=door.now)
    given = warnings + warnings_of(request.command, receipt)
    return Reply(err=given, then=Again(memo=waiting.memo()))


def waited(request: Request, door: Door) -> Granted | Reply:
    """The job, if it runs; else what to say and when to ask again."""
    waiting = _waiting(request)
    view = door.queries.jobs.detail(door.caller, waiting.job).view
    if view.job.state in FINAL:
        raise _lost(request, view)
    if view.job.state is JobState.RUNNING:
        is_shown = waiting.said and not request.has("quiet")
        text = f"{request.command}: job {waiting.job} has been allocated resources\n"
        return Granted(view=view, messages=text if is_shown else "")
    elapsed = door.now - waiting.since
    if _is_out_of_time(request, view, elapsed):
        door.service.cancel(door.caller, (waiting.job,)).result()
        raise failed(request.command, BUSY)
    return _goes_on(request, view, waiting, elapsed)


def given_up(request: Request, door: Door) -> Reply:
    """The user pressed Ctrl-C, or ended the command, before the job ran."""
    waiting = _waiting(request)
    door.service.cancel(door.caller, (waiting.job,)).result()
    name = request.command
    if name == "salloc":
        lines = f"salloc: Job allocation {waiting.job} has been revoked.\n"
        return Reply(err=lines + "salloc: Job aborted due to signal\n", code=1)
    lines = f"{name}: Job allocation {waiting.job} has been revoked\n"
    is_killed = request.call.memo["cancel"] != "SIGINT"
    last = f"{name}: Force Terminated JobId={waiting.job}\n" if is_killed else ""
    return Reply(err=lines + last, code=1)


def _waiting(request: Request) -> Waiting:
    memo = request.call.memo
    try:
        job, since = JobId(int(memo["job"])), Instant(int(memo["since"]))
    except (KeyError, ValueError):
        raise failed(request.command, "the call cannot be read") from None
    return Waiting(job=job, since=since, said="said" in memo)


def _goes_on(request: Request, view: JobView, waiting: Waiting, elapsed: int) -> Reply:
    says = not waiting.said and _has_to_wait(view, elapsed)
    name, job = request.command, waiting.job
    text = f"{name}: job {job} queued and waiting for resources\n" if says else ""
    if says and name == "salloc":
        text = f"salloc: Pending job allocation {job}\n{text}"
    now = Waiting(job=job, since=waiting.since, said=waiting.said or says)
    pause = min(500, 5 + elapsed // 8)
    return Reply(
        err="" if request.has("quiet") else text, then=Again(memo=now.memo(), after_ms=pause)
    )


def _is_out_of_time(request: Request, view: JobView, elapsed: int) -> bool:
    if not request.has("immediate"):
        return False
    text = request.text("immediate")
    patience = request.number("immediate", least=0) if text else 0
    if not patience:
        return _has_to_wait(view, elapsed)
    return elapsed > patience * 1_000


def _has_to_wait(view: JobView, elapsed: int) -> bool:
    """A job that is starting has its room already."""
    is_placed = view.job.state is JobState.STARTING
    return not is_placed and (view.wait is not None or elapsed > SOON)


def _lost(request: Request, view: JobView) -> SlurmError:
    """It ended before its user had it."""
    job, name = view.job, request.command
    lines = [f"{name}: Job allocation {job.id} has been revoked{'.' * (name == 'salloc')}"]
    if isinstance(job.why, LaunchFailed):
        lines.insert(0, f"{name}: error: {job.why.text}")
    return SlurmError(*lines)
