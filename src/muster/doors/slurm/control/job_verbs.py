"""What scontrol does to jobs by a word alone, and its words for what cannot be done."""

from collections.abc import Callable
from concurrent.futures import Future
from functools import partial

from muster.controller.messages import (
    HasInstances,
    HeldByAdmin,
    JobGone,
    JobView,
    NotDoneReason,
    Outcome,
    WrongState,
)
from muster.doors.slurm.call import Call, Door, Reply
from muster.doors.slurm.lists.filters import (
    Filter,
    JobName,
    ended_views,
    in_any_state,
    job_name,
    live_views,
    split_ids,
)
from muster.doors.slurm.permissions import DENIED, STRANGER, may_change
from muster.doors.slurm.words.errors import SlurmError
from muster.doors.slurm.words.hostlist import ranges_text
from muster.doors.slurm.words.options import Parsed
from muster.doors.slurm.words.states import State
from muster.model.errors import MusterError
from muster.model.forbidden import NotYourJob
from muster.model.job import ArrayPart, JobSpec, JobState
from muster.model.value import Instant, JobId, replace

Act = Callable[[tuple[str, ...], Parsed, Call, Door], Reply]

FINISHED = "Job has already finished"
UNKNOWN = "Invalid job id specified"
UNEXPECTED = "Unexpected message received"
PENDING = "Job is pending execution"
OVER = "Job/step already completing or completed"
NOT_WHOLE = "Operation not permitted on individual component of heterogeneous job"

HOLDING = frozenset({"hold", "uhold", "release"})
"""After their own words, these say once more what went wrong."""

STANDING = frozenset({"suspend", "resume"})
"""Of jobs that never were, these say something else."""


def moves(verb: str) -> Act:
    """A keyword that names jobs: `hold 12 13_4`, `release job=12`, `hold name=train`."""

    def act(words: tuple[str, ...], _line: Parsed, _call: Call, door: Door) -> Reply:
        given: list[str] = []
        for word in (each for text in words for each in split_ids(text)):
            given += _moved(verb, word, door)
        return Reply(err="".join(f"{line}\n" for line in given), code=1 if given else 0)

    return act


def top(words: tuple[str, ...], _line: Parsed, _call: Call, door: Door) -> Reply:
    """One's own waiting jobs, the first of them first, before one's others."""
    asked = [each for text in words for each in split_ids(text)]
    chosen: list[JobView] = []
    for word in asked:
        name = job_name(word)
        views = [] if name is None else live_views(door, in_any_state(name))
        if not views:
            raise SlurmError(f"{UNKNOWN} for job {word}")
        if not all(may_change(door, view.job) for view in views):
            raise SlurmError(f"{DENIED} for job {word}")
        chosen += [view for view in views if view.job.state is JobState.PENDING]
    if not chosen:
        raise SlurmError(f"Job is no longer pending execution for job {asked[0]}")
    _put_first(chosen, door)
    return Reply()


def absent(name: JobName, door: Door, never: str = UNKNOWN) -> str:
    """What Slurm says of a job that is not there: it is over, or never was."""
    return FINISHED if ended_views(door, in_any_state(name), Instant(0)) else never


def _put_first(chosen: list[JobView], door: Door) -> None:
    user = chosen[0].job.spec.user
    first = {view.job.id for view in chosen}
    mine = live_views(door, Filter(users=frozenset({user}), states=frozenset({State.PENDING})))
    others = [view.job.spec.priority for view in mine if view.job.id not in first]
    best = max(others, default=0)
    for place, view in enumerate(reversed(chosen), 1):
        priority = best + place

        def change(spec: JobSpec, priority: int = priority) -> JobSpec:
            return replace(spec, priority=priority)

        try:
            door.service.update(door.caller, view.job.id, change).result()
        except MusterError as error:
            raise SlurmError(f"{DENIED} for job {view.job.id}") from error


def _moved(verb: str, word: str, door: Door) -> list[str]:
    key, equals, value = word.partition("=")
    if equals and key.lower() in {"name", "jobname"}:
        wish = Filter(job_names=frozenset({value}), users=frozenset({door.caller.user}))
        found: list[str] = []
        for view in live_views(door, wish):
            found += _report(verb, JobName(job=view.job.id), [view], _done(verb, [view], door))
        return found
    text = value if equals and key.lower() in {"job", "jobid"} else word
    name = job_name(text)
    if name is None:
        return [f"{UNKNOWN} for job {text}", *_once_more(verb, UNKNOWN)]
    views = live_views(door, in_any_state(name))
    if not views:
        return _missed(verb, name, door)
    if name.component is not None and verb in {"suspend", "resume", "requeue", "requeuehold"}:
        return [f"{NOT_WHOLE} for job {name.text}"]
    return _report(verb, name, views, _done(verb, views, door))


def _missed(verb: str, name: JobName, door: Door) -> list[str]:
    """It is over, or never was."""
    if name.indices is not None:
        return [f"{name.text}: {absent(name, door)}"]
    why = absent(name, door, UNEXPECTED if verb in STANDING else UNKNOWN)
    if verb in STANDING and why == FINISHED:
        why = OVER
    return [f"{why} for job {name.text}", *_once_more(verb, why)]


def _once_more(verb: str, why: str) -> list[str]:
    return [f"slurm_suspend error: {why}"] if verb in HOLDING else []


def _done(verb: str, views: list[JobView], door: Door) -> Outcome:
    ids = tuple(view.job.id for view in views if not _needs_nothing(verb, view, door))
    outcome = _service(door, verb)(door.caller, ids).result() if ids else Outcome()
    if verb == "requeuehold" and outcome.done:
        door.service.hold(door.caller, outcome.done).result()
    return outcome


def _needs_nothing(verb: str, view: JobView, door: Door) -> bool:
    """Slurm lets one hold and release one's running jobs: nothing changes until they wait again."""
    if not may_change(door, view.job):
        return False
    if verb == "suspend":
        return view.job.state is JobState.SUSPENDED
    return verb in HOLDING and view.job.state not in {JobState.PENDING, JobState.HELD}


def _service(door: Door, verb: str) -> "Callable[..., Future[Outcome]]":
    service = door.service
    return {
        "hold": service.hold,
        "uhold": partial(service.hold, for_owner=True),
        "release": service.release,
        "requeue": service.requeue,
        "requeuehold": service.requeue,
        "suspend": service.suspend,
        "resume": service.resume,
    }[verb]


def _report(verb: str, name: JobName, views: list[JobView], outcome: Outcome) -> list[str]:
    """One job: what is wrong with it. An array: which parts were done, and which were not."""
    if not outcome.failed:
        return []
    by_id = {view.job.id: view for view in views}
    words = {job: _move_words(verb, by_id[job], why) for job, why in outcome.failed.items()}
    parts = {view.job.id: view.job.spec.array for view in views}
    if any(part is None for part in parts.values()):
        return [
            line
            for job, text in words.items()
            for line in (f"{text} for job {job}", *_once_more(verb, text))
        ]
    lines = [_parts_line(name, parts, outcome.done, "No error")] if outcome.done else []
    for text in sorted(set(words.values())):
        jobs = tuple(job for job, each in words.items() if each == text)
        lines.append(_parts_line(name, parts, jobs, text))
    return lines


def _parts_line(
    name: JobName,
    parts: dict[JobId, ArrayPart | None],
    jobs: tuple[JobId, ...],
    text: str,
) -> str:
    indices = sorted(part.index for job in jobs if (part := parts[job]) is not None)
    return f"{name.job}_{ranges_text(indices)}: {text}"


def _move_words(verb: str, view: JobView, why: NotDoneReason) -> str:
    match why:
        case NotYourJob():
            return STRANGER if verb in HOLDING else DENIED
        case HeldByAdmin():
            return DENIED
        case JobGone() | WrongState() | HasInstances():
            if view.job.state in {JobState.PENDING, JobState.HELD}:
                return PENDING
            if verb == "resume":
                return "Job is not suspended"
            return "Requested operation is presently disabled"
