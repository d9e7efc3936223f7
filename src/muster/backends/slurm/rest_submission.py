"""From what `sbatch` would be told to the document that slurmrestd takes. Pure."""

import re
import shlex
from collections.abc import Mapping, Sequence
from itertools import count
from typing import Any

from muster.backends.slurm.submission import Submission
from muster.model.value import Value

Json = dict[str, Any]

OLDEST = "v0.0.38"
"""The one that takes variables by name, counts gres under its own name, and `no_requeue`."""

_TEXTS = {
    "--job-name": "name",
    "--comment": "comment",
    "--partition": "partition",
    "--output": "standard_output",
    "--error": "standard_error",
    "--input": "standard_input",
    "--open-mode": "open_mode",
    "--account": "account",
    "--qos": "qos",
    "--distribution": "distribution",
}
_NUMBERS = {
    "--ntasks": "tasks",
    "--cpus-per-task": "cpus_per_task",
    "--ntasks-per-node": "tasks_per_node",
}
_MEMORY = {"--mem": "memory_per_node", "--mem-per-cpu": "memory_per_cpu"}
_GRES = {"--gres": ("gres", "tres_per_node"), "--gpus-per-task": ("gpus_per_task", "tres_per_task")}
_BEGUN_BY = "--parsable"
_AGAIN = "--no-requeue"
_NEXT = ":"
_SHELLS = frozenset({"sh", "bash", "dash", "ksh", "zsh", "ash"})


class UnknownOptionError(Exception):
    """An option of sbatch that slurmrestd has no word for."""


class Asked(Value):
    """A submission, and what its job finds around it."""

    told: Submission
    env: Mapping[str, str]
    folder: str


def document(asked: Asked, version: str) -> Json:
    """What is sent to `job/submit`."""
    common, *components = _parts(asked.told.options)
    first, *rest = _split(common, components)
    made = [_job(options, asked, version) for options in (first, *rest)]
    text = script(asked.told)
    if version == OLDEST:
        return (
            {"script": text, "job": made[0]} if len(made) == 1 else {"script": text, "jobs": made}
        )
    made[0]["script"] = text
    return {"job": made[0]} if len(made) == 1 else {"jobs": made}


def limit(minutes: int | None, version: str) -> Json:
    """What a change of the limit says; None: there is none."""
    if minutes is not None:
        return {"time_limit": minutes}
    return {"time_limit": "UNLIMITED" if version == OLDEST else {"set": False, "infinite": True}}


def script(told: Submission) -> str:
    """What the batch step runs, with what slurmrestd does not pass on: arguments, and the umask.

    (22.05 ignores an umask, and ends itself when it is sent arguments.)
    """
    lines = [] if told.umask is None else [f"umask {told.umask:04o}"]
    if not lines and not told.args:
        return told.script
    head, newline, body = told.script.partition("\n")
    words = head.removeprefix("#!").split(None, 1)
    if words and words[0].rpartition("/")[2] in _SHELLS:
        lines += [f"set -- {shlex.join(told.args)}"] if told.args else []
        return "\n".join((head, *lines, body)) if newline else head
    begin = shlex.join((*words, "/dev/fd/3", *told.args))
    end = _end_of(told.script)
    return "\n".join(
        ("#!/bin/sh", *lines, f"exec {begin} 3<<'{end}'", told.script.rstrip("\n"), end, "")
    )


def _end_of(text: str) -> str:
    """A word that no line of it is."""
    lines = set(text.split("\n"))
    return next(end for at in count() if (end := f"MUSTER{at}") not in lines)


def _parts(options: Sequence[str]) -> list[list[str]]:
    """What was said before, between and after the colons."""
    found: list[list[str]] = [[]]
    for each in options:
        if each == _NEXT:
            found.append([])
        else:
            found[-1].append(each)
    return found


def _split(first: Sequence[str], rest: Sequence[Sequence[str]]) -> list[list[str]]:
    """Each component with what holds for all of them, which is said to the first one only."""
    if not rest:
        return [list(first)]
    own = {each.partition("=")[0] for part in rest for each in part}
    common = [each for each in first if each.partition("=")[0] not in {*own, *_GRES, *_MEMORY}]
    return [list(first), *([*common, *part] for part in rest)]


def _job(options: Sequence[str], asked: Asked, version: str) -> Json:
    is_oldest = version == OLDEST
    env: Any = dict(asked.env)
    if not is_oldest:
        env = [f"{name}={value}" for name, value in asked.env.items()]
    job: Json = {"current_working_directory": asked.folder, "environment": env}
    # It takes `requeue: false` for yes; newer ones have no other word.
    job |= {"no_requeue": True} if is_oldest else {"requeue": False}
    for each in options:
        name, _, value = each.partition("=")
        if name not in {_BEGUN_BY, _AGAIN}:
            job |= _property(name, value, asked, is_oldest=is_oldest)
    return job


def _property(name: str, value: str, asked: Asked, *, is_oldest: bool) -> Json:
    match name:
        case _ if name in _TEXTS:
            return {_TEXTS[name]: value}
        case _ if name in _NUMBERS:
            return {_NUMBERS[name]: int(value)}
        case "--time":
            # None is 0 to sbatch.
            return limit(int(value) or None, version=OLDEST if is_oldest else "")
        case _ if name in _MEMORY:
            number = int(re.sub(r"M$", "", value))
            return {_MEMORY[name]: number if is_oldest else {"set": True, "number": number}}
        case _ if name in _GRES:
            return _gres(name, value, is_oldest=is_oldest)
        case "--nodes":
            return {"nodes": int(value) if is_oldest else value}
        case "--nodelist":
            return _node_list(value, asked, is_oldest=is_oldest)
        case _:
            raise UnknownOptionError(f"slurmrestd has no word for {name}")


def _gres(name: str, value: str, *, is_oldest: bool) -> Json:
    older, newer = _GRES[name]
    if is_oldest:
        return {older: value}
    counted = [each if name == "--gres" else f"gpu:{each}" for each in value.split(",")]
    return {newer: ",".join(f"gres/{each}" for each in counted)}


def _node_list(value: str, asked: Asked, *, is_oldest: bool) -> Json:
    hosts = asked.told.hosts
    if is_oldest:
        return {"nodelist": ",".join(hosts) or value}
    return {"required_nodes": [",".join(hosts) or value]}
