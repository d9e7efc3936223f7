"""`scontrol update`: jobs, nodes, partitions and reservations."""

from muster.controller.messages import JobView
from muster.doors.slurm.call import Call, Door, Reply
from muster.doors.slurm.control import partitions, reservations
from muster.doors.slurm.control.job_verbs import NOT_WHOLE, UNKNOWN, absent
from muster.doors.slurm.control.update_job import JobChanges, changes_of
from muster.doors.slurm.lists.filters import in_any_state, job_name, live_views
from muster.doors.slurm.permissions import DENIED, STRANGER, demand_admin
from muster.doors.slurm.submit.refusals import QOS, submission_words
from muster.doors.slurm.words.errors import SlurmError
from muster.doors.slurm.words.hostlist import expanded, ranges_text
from muster.doors.slurm.words.options import Parsed
from muster.doors.slurm.words.pairs import Pair, words_of
from muster.doors.slurm.words.states import reason
from muster.model.cluster import Node, NodeState
from muster.model.errors import ForbiddenError, MusterError, RefusedError, UnknownError
from muster.model.forbidden import (
    BadToken,
    CannotDeclinePreemption,
    CannotRaisePriority,
    CannotSubmit,
    CannotUseClass,
    Forbidden,
    HasStarted,
    LabelIsOurs,
    MakesForAnother,
    NeedsRole,
    NoRole,
    NotYourJob,
    SubmitsForAnother,
    TokenIsLess,
)
from muster.model.job import JobState
from muster.model.value import NodeId

INPUT = (
    'Input line must include "NodeName", "PartitionName", "Reservation", "JobId", '
    'or "SlurmctldDebug"'
)

ENTITIES = {
    "job": "jobid",
    "jobid": "jobid",
    "nodename": "nodename",
    "node": "nodename",
    "partitionname": "partitionname",
    "partition": "partitionname",
    "reservationname": "reservationname",
    "reservation": "reservationname",
    "slurmctlddebug": "slurmctlddebug",
    "stepid": "stepid",
}


def update(words: tuple[str, ...], _line: Parsed, call: Call, door: Door) -> Reply:
    """`update JobId=12 TimeLimit=30`, `update job 12 TimeLimit=30`, `update NodeName=n1 ...`."""
    entity, pairs = _entity(words)
    match entity.name:
        case "nodename":
            return _updated_nodes(entity.value, pairs, door)
        case "partitionname":
            return partitions.updated(entity.value, pairs, door)
        case "reservationname":
            return reservations.updated(entity.value, pairs, call, door)
        case "jobid":
            return _updated_jobs(entity, pairs, call, door)
        case "stepid":
            raise SlurmError(f"Requested operation not supported for step {entity.value}")
        case _:
            return Reply(err="scontrol: warning: SlurmctldDebug is ignored by Muster\n")


def _entity(words: tuple[str, ...]) -> tuple[Pair, tuple[Pair, ...]]:
    """What is changed, and how; its name may stand apart from its kind."""
    for place, word in enumerate(words):
        name, equals, value = word.partition("=")
        kind = ENTITIES.get(name.lower())
        if kind is None or (not equals and place):
            continue
        others = words[:place] + words[place + 1 :]
        if not equals:
            value, others = (others[0], others[1:]) if others else ("", ())
        # The partition of a job or a reservation is not what is changed.
        again = [each for each in others if ENTITIES.get(each.partition("=")[0].lower()) == "jobid"]
        if again and kind != "jobid":
            continue
        dropped = {*again, *(each for each in others if each.lower() == "resetaccruetime")}
        pairs = words_of(_whole(each) for each in others if each not in dropped)
        return Pair(name=kind, value=value, text=word), pairs
    raise SlurmError("No valid entity in update command", INPUT)


def _whole(word: str) -> str:
    """Some words have a value also where none is given."""
    return ALONE.get(word.lower(), word)


ALONE = {"nice": "nice=100"}


def _updated_jobs(entity: Pair, pairs: tuple[Pair, ...], call: Call, door: Door) -> Reply:
    warnings = ""
    for text in entity.value.split(","):
        name = job_name(text)
        if name is None:
            raise SlurmError(f"{UNKNOWN} for job {text}")
        views = live_views(door, in_any_state(name))
        if not views:
            why = absent(name, door)
            raise SlurmError(f"{why} for job {text}" if name.indices is None else f"{text}: {why}")
        if name.component is not None:
            raise SlurmError(f"{NOT_WHOLE} for job {text}")
        failed: dict[str, list[JobView]] = {}
        for view in views:
            changes = changes_of(pairs, view, call, door)
            warnings = changes.warnings
            why = _changed(view, changes, door)
            if why is not None:
                failed.setdefault(why, []).append(view)
        if failed:
            raise SlurmError(*(_refused_line(why, these) for why, these in failed.items()))
    return Reply(err=warnings)


def _changed(view: JobView, changes: JobChanges, door: Door) -> str | None:
    """Do it, or say why not."""
    is_held = view.job.state is JobState.HELD
    if changes.holds is False and is_held and reason(view.job, None) == "JobHeldAdmin":
        return "Job is in held state, pending scheduler release"
    try:
        door.service.update(door.caller, view.job.id, changes.made).result()
    except MusterError as error:
        if isinstance(error, UnknownError):
            return "Job has already finished"
        if isinstance(error, RefusedError):
            return submission_words(error)
        if isinstance(error, ForbiddenError):
            return _forbidden(error.reason)
        return changes.problem or str(error)
    if changes.holds and view.job.state is JobState.PENDING:
        door.service.hold(door.caller, (view.job.id,)).result()
    elif changes.holds is False and is_held:
        door.service.release(door.caller, (view.job.id,)).result()
    return None


def _refused_line(why: str, views: list[JobView]) -> str:
    parts = [view.job.spec.array for view in views]
    indices = sorted(part.index for part in parts if part is not None)
    if not indices:
        return f"{why} for job {views[0].job.id}"
    arrays = {part.array for part in parts if part is not None}
    return f"{min(arrays)}_{ranges_text(indices)}: {why}"


def _forbidden(why: Forbidden) -> str:
    match why:
        case CannotRaisePriority() | LabelIsOurs():
            return DENIED
        case HasStarted():
            return "Job is no longer pending execution"
        case CannotUseClass():
            return QOS
        case CannotDeclinePreemption() | NotYourJob() | NeedsRole() | CannotSubmit():
            return STRANGER
        case SubmitsForAnother() | MakesForAnother() | TokenIsLess() | NoRole() | BadToken():
            return STRANGER


BAD_STATE = "slurm_update error: Invalid node state specified"
NODE_STATES = frozenset({"DRAIN", "DOWN", "FAIL", "RESUME", "UNDRAIN", "IDLE", "UP"})
REFUSED_STATES = frozenset(
    """
    CANCEL_REBOOT FUTURE NORESP POWER_DOWN POWER_DOWN_ASAP POWER_DOWN_FORCE POWER_UP CLOUD
    """.split()
)
IGNORED_KEYS = frozenset(
    "activefeatures availablefeatures comment cpubind extra features nodeaddr nodehostname "
    "resumeafter weight".split()
)
"""Accepted by Slurm; here nodes say themselves what they are."""


def _updated_nodes(nodes: str, pairs: tuple[Pair, ...], door: Door) -> Reply:
    warned = ""
    for pair in pairs:
        if pair.name in IGNORED_KEYS:
            warned += f"scontrol: warning: {pair.text.partition('=')[0]} is ignored by Muster\n"
        elif pair.name == "gres":
            raise SlurmError("slurm_update error: Invalid generic resource (gres) specification")
        elif pair.name not in {"state", "reason"}:
            raise SlurmError(
                f"Update of this parameter is not supported: {pair.text}", "Request aborted"
            )
    if not pairs:
        raise SlurmError("No changes specified")
    given = {pair.name: pair for pair in pairs}
    why = given["reason"].value if "reason" in given else ""
    if "state" in given:
        _set_state(nodes, given["state"], why, door)
    elif why:
        _set_reason(nodes, why, door)
    return Reply(err=warned)


def _set_state(nodes: str, wanted: Pair, why: str, door: Door) -> None:
    state = wanted.value.upper()
    if state in REFUSED_STATES:
        raise SlurmError(BAD_STATE)
    if state not in NODE_STATES:
        raise SlurmError(
            f"Invalid input: {wanted.text}",
            "Request aborted",
            "Valid states are: NoResp DRAIN FAIL FUTURE RESUME POWER_DOWN POWER_UP UNDRAIN",
            "Not all states are valid given a node's prior state",
        )
    keeps_off = state in {"DRAIN", "DOWN", "FAIL"}
    if keeps_off and not why:
        text = "You must specify a reason when DOWNING or DRAINING a node. Request denied"
        raise SlurmError(text)
    found = _meant(nodes, door)
    for node in found:
        if keeps_off:
            door.service.drain(door.caller, node.id, why).result()
        elif node.state is not NodeState.UP:
            door.service.undrain(door.caller, node.id).result()
    if state in {"RESUME", "IDLE"} and any(node.state is NodeState.UP for node in found):
        raise SlurmError(BAD_STATE)


def _set_reason(nodes: str, why: str, door: Door) -> None:
    """Of nodes that are kept off work; those that are not need none."""
    for node in _meant(nodes, door):
        if node.state is NodeState.DRAINING:
            door.service.drain(door.caller, node.id, why).result()


def _meant(names: str, door: Door) -> list[Node]:
    """All of them, or none and what is wrong with the names or the caller."""
    demand_admin(door, f"slurm_update error: {STRANGER}")
    known = door.queries.nodes.all()
    wanted = sorted(known) if names.upper() == "ALL" else [NodeId(each) for each in expanded(names)]
    found = [known[name] for name in wanted if name in known]
    if not found or len(found) < len(wanted):
        raise SlurmError("slurm_update error: Invalid node name specified")
    if any(node.state is NodeState.DOWN for node in found):
        # It comes back by itself when it answers.
        raise SlurmError(BAD_STATE)
    return found
