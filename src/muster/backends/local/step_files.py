"""What a supervisor writes down of a step: when it has its room, and when it is over."""

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from muster.backends.local import spool
from muster.backends.local.step_room import Part, StepWish
from muster.backends.local.usage import Tally


@dataclass(frozen=True, kw_only=True)
class Created:
    """A step that has its room. limit_ms: how long it may run.

    A wish, a name and a command for each component of the job that it runs in.
    """

    number: int
    names: tuple[str, ...]
    commands: tuple[str, ...]
    wishes: tuple[StepWish, ...]
    parts: tuple[Part, ...]
    limit_ms: int | None = None

    @property
    def tasks(self) -> int:
        return sum(wish.tasks for wish in self.wishes)


@dataclass(kw_only=True)
class PartEnd:
    """How the tasks of one component ended, as far as they did."""

    exits: int = 0
    code: int = 0
    signal: int = 0
    tally: Tally = field(default_factory=Tally)

    def add(self, status: int) -> None:
        """One more is over."""
        self.exits += 1
        if os.WIFSIGNALED(status):
            self.signal = self.signal or os.WTERMSIG(status)
        else:
            self.code = max(self.code, os.waitstatus_to_exitcode(status))


def begun(created: Created, launch: spool.LaunchFile, at: int) -> dict[str, Any]:
    """The step as a whole, and where the job has several components, what it is in each."""
    whole: dict[str, Any] = {
        "at": at,
        "name": created.names[0],
        "command": created.commands[0],
        "tasks": created.tasks,
        **_held(created.parts, launch),
    }
    is_het = any(room["component"] for room in launch["rooms"])
    if len(created.wishes) == 1 and not is_het:
        return whole
    # In a job of one component, those that the step has are numbered for themselves.
    numbers = [wish.component if is_het else at for at, wish in enumerate(created.wishes)]
    each = [
        {"component": number, **_component(created, place, launch)}
        for place, number in enumerate(numbers)
    ]
    return whole | {"parts": each}


def ended(ends: Sequence[PartEnd], at: int) -> dict[str, Any]:
    """The same of its end: the highest code, and the first signal."""
    told = [_ended(end) for end in ends]
    return {
        "at": at,
        "code": max(end.code for end in ends),
        "signal": next((end.signal for end in ends if end.signal), 0),
        "used": _together([each["used"] for each in told]),
        "parts": told,
    }


def _component(created: Created, place: int, launch: spool.LaunchFile) -> dict[str, Any]:
    wish = created.wishes[place]
    own = [part for part in created.parts if part.wish == place]
    return {
        "name": created.names[place],
        "command": created.commands[place],
        "tasks": wish.tasks,
        **_held(own, launch),
    }


def _held(parts: Sequence[Part], launch: spool.LaunchFile) -> dict[str, Any]:
    rooms = launch["rooms"]
    gpu_milli = sum(
        rooms[part.node]["gpu_milli"] * len(part.gpus) // max(1, len(rooms[part.node]["gpus"]))
        for part in parts
    )
    return {
        "nodes": [rooms[part.node]["node"] for part in parts],
        "amount": {
            "cpu_milli": 1_000 * sum(part.cpus for part in parts),
            "memory_mib": sum(part.memory_mib for part in parts),
            "gpu_milli": gpu_milli,
        },
    }


def _ended(end: PartEnd) -> dict[str, Any]:
    used = end.tally.file(end.tally.max_memory_kib // 1_024)
    return {"code": end.code, "signal": end.signal, "used": used}


def _together(each: Sequence[spool.UsedFile]) -> spool.UsedFile:
    """Amounts are added; of memory only the most is known."""
    return {
        "cpu_ms": sum(used["cpu_ms"] for used in each),
        "max_memory_mib": max(used["max_memory_mib"] for used in each),
        "system_ms": sum(used["system_ms"] for used in each),
        "read_kib": sum(used["read_kib"] for used in each),
        "written_kib": sum(used["written_kib"] for used in each),
        "faults": sum(used["faults"] for used in each),
    }
