"""What slurmrestd says, as what `squeue` and `scontrol` say. Pure.

Its documents changed their shapes from one version to the next: a number may be an object that says
whether there is one, a state a list of words. Each is read in all the shapes that it has had.
"""

from collections.abc import Iterable, Mapping
from typing import Any, cast

from muster.backends.slurm.listing import QueuedJob, accounted, queued
from muster.backends.slurm.nodes import Fleet, Partition, SlurmNode, in_order, nodes_of
from muster.model.value import Duration, Instant

Json = dict[str, Any]

KNOWN = ("v0.0.42", "v0.0.41", "v0.0.40", "v0.0.39", "v0.0.38")
"""The newest first: the newest that both sides know is spoken."""

_MINUTE_MS = 60_000
_CHANGES = ("COMPLETING", "CONFIGURING", "SUSPENDED", "STOPPED")
"""Words beside the state of a job that say more than it."""


def version_of(specification: Json) -> str:
    """The newest that we know of those whose paths it names; empty if there is none."""
    spoken = {path.split("/")[2] for path in specification.get("paths") or () if _is_ours(path)}
    return next((each for each in KNOWN if each in spoken), "")


def release_of(answer: Json) -> str:
    """Which Slurm it is of."""
    meta = _object(answer.get("meta"))
    about = _object(meta.get("slurm") or meta.get("Slurm"))
    return _text(about.get("release"))


def errors_in(answer: Json) -> str:
    """What went wrong, in the words that Slurm's commands have for it."""
    said: list[str] = []
    for each in _objects(answer.get("errors")):
        about, more = _text(each.get("error")), _text(each.get("description"))
        said.append(f"{about}: {more}" if about and more else about or more)
    return "; ".join(each for each in said if each)


def error_numbers(answer: Json) -> set[int]:
    return {
        _number(each.get("error_number", each.get("error_code")), 0)
        for each in _objects(answer.get("errors"))
    }


def jobs(answer: Json) -> tuple[QueuedJob, ...]:
    return tuple(queued(_row(each)) for each in _objects(answer.get("jobs")))


def partitions(answer: Json) -> tuple[Partition, ...]:
    """Every one; only older versions say which is the default one."""
    return in_order(_partition(each) for each in _objects(answer.get("partitions")))


def nodes(answer: Json, fleet: Fleet) -> tuple[SlurmNode, ...]:
    return nodes_of((_node(each) for each in _objects(answer.get("nodes"))), fleet)


def finished(answer: Json, handle: str) -> QueuedJob | None:
    """The latest job of this number that accounting knows."""
    found = _objects(answer.get("jobs"))
    if not found:
        return None
    job = found[-1]
    exits, time = _object(job.get("exit_code")), _object(job.get("time"))
    state = _object(job.get("state"))
    code = f"{_number(exits.get('return_code'), 0)}:{_signal(exits)}"
    instants = (str(_number(time.get(name), 0)) for name in ("start", "end"))
    row = (_words(state.get("current"))[0], code, *instants, _text(job.get("nodes")))
    return accounted(handle, "|".join(row))


def names(answer: Json, kind: str) -> tuple[str, ...]:
    return tuple(
        sorted(filter(None, (_text(each.get("name")) for each in _objects(answer.get(kind)))))
    )


def owner_of(answer: Json) -> int | None:
    """By number, whose the only job of this answer is."""
    found = _objects(answer.get("jobs"))
    return _number(found[0].get("user_id"), None) if found else None


def expiry_of(claims: Json) -> Instant | None:
    """Until when a token holds that says this of itself."""
    ends = _number(claims.get("exp"), None)
    return None if ends is None else Instant(1_000 * ends)


def _is_ours(path: str) -> bool:
    parts = path.split("/")
    return len(parts) > 3 and parts[1] == "slurm" and parts[3] == "jobs"


def _row(job: Json) -> Mapping[str, str]:
    return {
        "JobID": str(_number(job.get("job_id"), 0)),
        "HetJobID": str(_number(job.get("het_job_id"), 0)),
        "State": _state(_words(job.get("job_state"))),
        "UserID": str(_number(job.get("user_id"), None)),
        "exit_code": str(_status(job.get("exit_code"))),
        "StartTime": str(_number(job.get("start_time"), 0)),
        "EndTime": str(_number(job.get("end_time"), 0)),
        "NumCPUs": str(_number(job.get("cpus"), 0)),
        "tres-alloc": _text(job.get("tres_alloc_str")),
        "tres-per-node": _text(job.get("tres_per_node")),
        "NodeList": _text(job.get("nodes")),
        "Comment": _text(job.get("comment")),
    }


def _state(words: list[str]) -> str:
    return next((each for each in _CHANGES if each in words), words[0])


def _status(said: object) -> int:
    """As wait(2) has it, which older versions say at once."""
    if not isinstance(said, dict):
        return _number(said, 0)
    exits = _object(cast("object", said))
    return (_number(exits.get("return_code"), 0) << 8) | _signal(exits)


def _signal(exits: Json) -> int:
    about = _object(exits.get("signal"))
    return _number(about.get("id", about.get("signal_id")), 0)


def _partition(found: Json) -> Partition:
    newer = _object(found.get("partition"))
    flags = {each.lower() for each in _words(found.get("flags"))}
    limit = found.get("max_time_limit", _object(found.get("maximums")).get("time"))
    minutes = _number(limit, None)
    return Partition(
        name=_text(found.get("name")),
        state=_words(found.get("state") or newer.get("state"))[0] or "UP",
        is_default="default" in flags,
        max_time=None if minutes is None or minutes < 0 else Duration(_MINUTE_MS * minutes),
    )


def _node(found: Json) -> Mapping[str, str]:
    flags = _words(found.get("state")) + _words(found.get("state_flags"))
    return {
        "NodeName": _text(found.get("name")),
        "State": "+".join(each.upper() for each in flags if each),
        "Reason": _text(found.get("reason")),
        "ActiveFeatures": ",".join(_words(found.get("active_features"))),
        "Gres": _text(found.get("gres")),
        "CPUEfctv": str(_number(found.get("effective_cpus"), 0) or _number(found.get("cpus"), 0)),
        "RealMemory": str(_number(found.get("real_memory"), 0)),
        "Partitions": ",".join(_words(found.get("partitions"))),
    }


def _number(said: object, otherwise: Any) -> Any:
    """A number, or an object that says whether there is one; infinity is none."""
    if isinstance(said, dict):
        about = _object(cast("object", said))
        is_one = about.get("set", True) and not about.get("infinite", False)
        return _number(about.get("number"), otherwise) if is_one else otherwise
    return said if isinstance(said, int) and not isinstance(said, bool) else otherwise


def _words(said: object) -> list[str]:
    """A word, words between commas, or a list of them; never nothing."""
    if isinstance(said, list):
        found = [str(each) for each in cast("list[object]", said)]
    else:
        found = _text(said).split(",")
    return found or [""]


def _text(said: object) -> str:
    return said if isinstance(said, str) else ""


def _object(said: object) -> Json:
    return cast("Json", said) if isinstance(said, dict) else {}


def _objects(said: object) -> list[Json]:
    found: Iterable[object] = cast("list[object]", said) if isinstance(said, list) else ()
    return [cast("Json", each) for each in found if isinstance(each, dict)]
