"""`scontrol update`: jobs, nodes, partitions and reservations."""

from muster.doors.slurm import partitioning, reserving
from muster.doors.slurm.call import Call, Door, Reply
from muster.doors.slurm.changing import NOT_WHOLE, UNKNOWN, absent
from muster.doors.slurm.choosing import Filter, job_name, live_views
from muster.doors.slurm.hostlist import expanded
from muster.doors.slurm.job_changes import Changes, changes_of
from muster.doors.slurm.options import Parsed
from muster.doors.slurm.pairs import Pair, words_of
from muster.doors.slurm.permitted import STRANGER
from muster.doors.slurm.refused import submission_words
from muster.doors.slurm.states import State
from muster.doors.slurm.trouble import SlurmError
from muster.model.errors import ForbiddenError, MusterError, RefusedError, UnknownError
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
            return partitioning.updated(entity.value, pairs, door)
        case "reservationname":
            return reserving.updated(entity.value, pairs, call, door)
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
        if any(ENTITIES.get(each.partition("=")[0].lower()) == "jobid" for each in others):
            continue
        pairs = words_of(each for each in others if each.lower() != "resetaccruetime")
        return Pair(name=kind, value=value, text=word), pairs
    raise SlurmError("No valid entity in update command", INPUT)


def _updated_jobs(entity: Pair, pairs: tuple[Pair, ...], call: Call, door: Door) -> Reply:
    warnings = ""
    for text in entity.value.split(","):
        name = job_name(text)
        if name is None:
            raise SlurmError(f"{UNKNOWN} for job {text}")
        views = live_views(door, Filter(names=(name,), states=frozenset(State)))
        if not views:
            raise SlurmError(f"{absent(name, door)} for job {text}")
        if name.component is not None:
            raise SlurmError(f"{NOT_WHOLE} for job {text}")
        for view in views:
            changes = changes_of(pairs, view, call, door)
            warnings = changes.warnings
            try:
                door.service.update(door.caller, view.job.id, changes.made).result()
            except MusterError as error:
                raise SlurmError(f"{_words(error, changes)} for job {view.job.id}") from error
    return Reply(err=warnings)


def _words(error: MusterError, changes: Changes) -> str:
    if isinstance(error, UnknownError):
        return "Job has already finished"
    if isinstance(error, RefusedError):
        return submission_words(error)
    if isinstance(error, ForbiddenError):
        is_running = "only its name" in str(error)
        return "Job is no longer pending execution" if is_running else STRANGER
    return changes.problem or str(error)


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
    given = {pair.name: pair.value for pair in pairs}
    if "state" in given:
        state = next(pair for pair in reversed(pairs) if pair.name == "state")
        _set_state(nodes, state, given.get("reason", ""), door)
    return Reply(err=warned)


def _set_state(nodes: str, wanted: Pair, reason: str, door: Door) -> None:
    state = wanted.value.upper()
    if state in REFUSED_STATES:
        raise SlurmError("slurm_update error: Invalid node state specified")
    if state not in NODE_STATES:
        raise SlurmError(
            f"Invalid input: {wanted.text}",
            "Request aborted",
            "Valid states are: NoResp DRAIN FAIL FUTURE RESUME POWER_DOWN POWER_UP UNDRAIN",
            "Not all states are valid given a node's prior state",
        )
    keeps_off = state in {"DRAIN", "DOWN", "FAIL"}
    if keeps_off and not reason:
        text = "You must specify a reason when DOWNING or DRAINING a node. Request denied"
        raise SlurmError(text)
    names = sorted(door.looking.snapshot().nodes) if nodes.upper() == "ALL" else expanded(nodes)
    for name in names:
        try:
            if keeps_off:
                door.service.drain(door.caller, NodeId(name), reason).result()
            else:
                door.service.undrain(door.caller, NodeId(name)).result()
        except UnknownError as error:
            raise SlurmError("slurm_update error: Invalid node name specified") from error
        except ForbiddenError as error:
            raise SlurmError(f"slurm_update error: {STRANGER}") from error
