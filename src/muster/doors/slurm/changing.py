"""What scontrol does to jobs and nodes, and its words for what cannot be done."""

from collections.abc import Callable
from concurrent.futures import Future

from muster.controller.asked import JobView, Outcome
from muster.doors.slurm import times
from muster.doors.slurm.call import Call, Door, Reply
from muster.doors.slurm.choosing import (
    Filter,
    JobName,
    ended_views,
    job_name,
    live_views,
    split_ids,
)
from muster.doors.slurm.hostlist import expanded, ranges_text
from muster.doors.slurm.states import State
from muster.doors.slurm.submit import LABEL
from muster.doors.slurm.trouble import SlurmError
from muster.model.errors import ForbiddenError, MusterError, RefusedError, UnknownError
from muster.model.job import ArrayPart, JobSpec, JobState
from muster.model.value import ClassName, Instant, JobId, NodeId, PoolName, QueuePath, replace

Act = Callable[[tuple[str, ...], Call, Door], Reply]
Change = Callable[[JobSpec], JobSpec]

FINISHED = "Job has already finished"
UNKNOWN = "Invalid job id specified"
PENDING = "Job is pending execution"


def moves(verb: str) -> Act:
    """A keyword that names jobs: `hold 12 13_4`, `release job=12`."""

    def act(words: tuple[str, ...], _call: Call, door: Door) -> Reply:
        if not words:
            raise SlurmError(f"too few arguments for keyword:{verb}")
        told = ""
        code = 0
        for word in (each for text in words for each in split_ids(text)):
            name = job_name(word.lower().removeprefix("jobid=").removeprefix("job="))
            if name is None:
                raise SlurmError(f"Invalid job id specified for job {word}")
            problem = _moved(verb, name, door)
            code = code or (1 if problem else 0)
            told += problem
        return Reply(err=told, code=code)

    return act


def update(words: tuple[str, ...], call: Call, door: Door) -> Reply:
    """`update JobId=12 TimeLimit=30`, `update NodeName=n1 State=DRAIN Reason=...`."""
    given = _pairs(words)
    if "nodename" in given:
        return _updated_nodes(given, door)
    if "jobid" not in given:
        raise SlurmError("No valid entity in update command", _INPUT)
    name = job_name(given.pop("jobid"))
    if name is None:
        raise SlurmError(f"{UNKNOWN} for job {words[0]}")
    change = _change(given, call, door)
    views = live_views(door, Filter(names=(name,), states=frozenset(State)))
    if not views:
        raise SlurmError(f"{_absent(name, door)} for job {name.job}")
    for view in views:
        try:
            door.service.update(door.caller, view.job.id, change).result()
        except MusterError as error:
            raise SlurmError(f"{_update_words(error)} for job {view.job.id}") from error
    return Reply()


_INPUT = (
    'Input line must include "NodeName", "PartitionName", "Reservation", "JobId", '
    'or "SlurmctldDebug"'
)


def _moved(verb: str, name: JobName, door: Door) -> str:
    views = live_views(door, Filter(names=(name,), states=frozenset(State)))
    if not views:
        if verb in {"suspend", "resume"} and _absent(name, door) == UNKNOWN:
            return f"Unexpected message received for job {name.job}\n"
        return f"{_absent(name, door)} for job {name.job}\n"
    views = [view for view in views if not _needs_nothing(verb, view)]
    ids = tuple(view.job.id for view in views)
    outcome = _service(door, verb)(door.caller, ids).result() if ids else Outcome()
    if verb == "requeuehold" and outcome.done:
        door.service.hold(door.caller, outcome.done).result()
    return _told(name, views, outcome)


def _needs_nothing(verb: str, view: JobView) -> bool:
    """Slurm lets a running job be held, which changes nothing until it waits again."""
    return verb == "hold" and view.job.state not in {JobState.PENDING, JobState.HELD}


def _service(door: Door, verb: str) -> "Callable[..., Future[Outcome]]":
    service = door.service
    return {
        "hold": service.hold,
        "release": service.release,
        "requeue": service.requeue,
        "requeuehold": service.requeue,
        "suspend": service.suspend,
        "resume": service.resume,
    }[verb]


def _told(name: JobName, views: list[JobView], outcome: Outcome) -> str:
    """One job: what is wrong with it. An array: which parts were done, and which were not."""
    if not outcome.failed:
        return ""
    by_id = {view.job.id: view for view in views}
    words = {job: _move_words(by_id[job], why) for job, why in outcome.failed.items()}
    parts = {view.job.id: view.job.spec.array for view in views}
    if any(part is None for part in parts.values()) or len(views) == 1:
        return "".join(f"{text} for job {job}\n" for job, text in words.items())
    lines = [_parts_line(name, parts, outcome.done, "No error")] if outcome.done else []
    for text in sorted(set(words.values())):
        jobs = tuple(job for job, each in words.items() if each == text)
        lines.append(_parts_line(name, parts, jobs, text))
    return "".join(lines)


def _parts_line(
    name: JobName,
    parts: dict[JobId, ArrayPart | None],
    jobs: tuple[JobId, ...],
    text: str,
) -> str:
    indices = sorted(part.index for job in jobs if (part := parts[job]) is not None)
    return f"{name.job}_{ranges_text(indices)}: {text}\n"


def _move_words(view: JobView, why: str) -> str:
    if "belongs to" in why or "held by an administrator" in why:
        return "Access/permission denied"
    if view.job.state in {JobState.PENDING, JobState.HELD}:
        return PENDING
    return "Requested operation is presently disabled"


def _absent(name: JobName, door: Door) -> str:
    wish = Filter(names=(name,), states=frozenset(State))
    return FINISHED if ended_views(door, wish, Instant(0)) else UNKNOWN


def _pairs(words: tuple[str, ...]) -> dict[str, str]:
    """`JobId=12`, and `job 12` for it."""
    found: dict[str, str] = {}
    rest = list(words)
    if len(rest) > 1 and rest[0].lower() in {"job", "jobid"}:
        found["jobid"] = rest[1]
        rest = rest[2:]
    for word in rest:
        key, equals, value = word.partition("=")
        if not equals:
            raise SlurmError(f"Invalid input: {word}", "Request aborted")
        found["jobid" if key.lower() == "job" else key.lower().rstrip("+-")] = value
    return found


def _change(given: dict[str, str], call: Call, door: Door) -> Change:
    changes: list[Change] = []
    for key, value in given.items():
        make = CHANGES.get(key)
        if make is None:
            raise SlurmError(
                f"Update of this parameter is not supported: {key}={value}", "Request aborted"
            )
        changes.append(make(value, call, door))

    def change(spec: JobSpec) -> JobSpec:
        for each in changes:
            spec = each(spec)
        return spec

    return change


def _time_limit(value: str, _call: Call, _door: Door) -> Change:
    try:
        limit = times.limit(value.lstrip("+-"))
    except times.BadTimeError as bad:
        raise SlurmError("Invalid TimeLimit value", "Request aborted") from bad
    if value[:1] not in "+-" or limit is None:
        return lambda spec: replace(spec, time_limit=limit)
    sign = 1 if value[0] == "+" else -1
    return lambda spec: replace(
        spec,
        time_limit=spec.time_limit
        and type(spec.time_limit)(max(60_000, spec.time_limit + sign * limit)),
    )


def _label(name: str) -> "Callable[[str, Call, Door], Change]":
    def make(value: str, _call: Call, _door: Door) -> Change:
        return lambda spec: replace(spec, labels={**spec.labels, LABEL + name: value})

    return make


def _start_time(value: str, call: Call, door: Door) -> Change:
    try:
        at = times.instant(value, door.now, call.zone)
    except times.BadTimeError as bad:
        raise SlurmError(f"Invalid time specification (pos={bad.place}): {value}") from bad
    return lambda spec: replace(spec, begin_at=at)


def _throttle(value: str, _call: Call, _door: Door) -> Change:
    most = int(value) if value.isdigit() else 0

    def change(spec: JobSpec) -> JobSpec:
        if spec.array is None:
            return spec
        return replace(spec, array=replace(spec.array, at_once=most or None))

    return change


def _number(field: str, *, sign: int = 1) -> "Callable[[str, Call, Door], Change]":
    def make(value: str, _call: Call, _door: Door) -> Change:
        if not value.lstrip("-").isdigit():
            raise SlurmError(f"Invalid {field} value", "Request aborted")
        return lambda spec: replace(spec, priority=sign * int(value))

    return make


CHANGES: "dict[str, Callable[[str, Call, Door], Change]]" = {
    "timelimit": _time_limit,
    "jobname": lambda value, _c, _d: lambda spec: replace(spec, name=value),
    "name": lambda value, _c, _d: lambda spec: replace(spec, name=value),
    "comment": _label("comment"),
    "wckey": _label("wckey"),
    "partition": lambda value, _c, _d: (
        lambda spec: replace(spec, pools=tuple(map(PoolName, value.split(","))))
    ),
    "qos": lambda value, _c, _d: lambda spec: replace(spec, job_class=ClassName(value)),
    "account": lambda value, _c, _d: lambda spec: replace(spec, queue=QueuePath(value)),
    "starttime": _start_time,
    "eligibletime": _start_time,
    "arraytaskthrottle": _throttle,
    "priority": _number("Priority"),
    "nice": _number("Nice", sign=-1),
    "requeue": lambda value, _c, _d: (
        lambda spec: replace(spec, retry=replace(spec.retry, requeue=value != "0"))
    ),
}


def _update_words(error: MusterError) -> str:
    if isinstance(error, UnknownError):
        return FINISHED
    if isinstance(error, ForbiddenError):
        is_running = "only its name" in str(error)
        return "Job is no longer pending execution" if is_running else "Access/permission denied"
    return "Invalid partition name specified" if isinstance(error, RefusedError) else str(error)


def _updated_nodes(given: dict[str, str], door: Door) -> Reply:
    state, reason = given.get("state", "").upper(), given.get("reason", "")
    if state in {"DRAIN", "DOWN", "FAIL"} and not reason:
        text = "You must specify a reason when DOWNING or DRAINING a node. Request denied"
        raise SlurmError(text)
    if state not in {"DRAIN", "DOWN", "RESUME", "UNDRAIN", "IDLE"}:
        raise SlurmError(f"Invalid input: State={state}", "Request aborted")
    for name in expanded(given["nodename"]):
        try:
            if state in {"DRAIN", "DOWN"}:
                door.service.drain(door.caller, NodeId(name), reason.strip("'\"")).result()
            else:
                door.service.undrain(door.caller, NodeId(name)).result()
        except UnknownError as error:
            raise SlurmError("slurm_update error: Invalid node name specified") from error
        except ForbiddenError as error:
            raise SlurmError("slurm_update error: Access/permission denied") from error
    return Reply()
