"""The wall around a job's devices: which device nodes its processes may open, and no others.

Pure: what is decided here is written into a control group (version 1) or loaded as a program that
the kernel runs at every opening of a device (version 2).
"""

import struct
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

Node = tuple[int, int]
"""A character device by its major and minor number."""


@dataclass(frozen=True, kw_only=True)
class DeviceWall:
    """majors: drivers whose devices only those may open who were given them; given: these."""

    majors: tuple[int, ...]
    given: tuple[Node, ...] = ()


def character_majors(devices: str) -> dict[str, int]:
    """The drivers that /proc/devices lists, with their numbers."""
    found: dict[str, int] = {}
    for line in devices.partition("Block devices:")[0].splitlines():
        number, _, name = line.strip().partition(" ")
        if number.isdecimal():
            found[name] = int(number)
    return found


def allow_lines(wall: DeviceWall, *, inherited: str, devices: str) -> tuple[str, ...]:
    """What to write to devices.allow of a group of version 1 after everything was denied to it.

    inherited: devices.list of the group above, which bounds what can be allowed.
    devices: /proc/devices. A driver that is loaded later is out of reach of jobs that run already.
    """
    majors = sorted(set(character_majors(devices).values()) - set(wall.majors))
    every = tuple(f"c {major}:* rwm" for major in majors)
    lines = [line.split() for line in inherited.splitlines() if line.strip()]
    if any(line[0] == "a" for line in lines):
        given = tuple(f"c {major}:{minor} rw" for major, minor in sorted(wall.given))
        return ("b *:* rwm", *every, *given)
    return tuple(dict.fromkeys(_narrowed(wall, lines, every)))


def _narrowed(wall: DeviceWall, lines: list[list[str]], every: tuple[str, ...]) -> Iterator[str]:
    """The same below a group that has only some devices itself, as in a container."""
    for kind, numbers, rights in lines:
        major, _, minor = numbers.partition(":")
        if kind == "b" or "r" not in rights:
            # To make a node of a device is not yet to open it.
            yield f"{kind} {numbers} {rights}"
        elif major == "*":
            yield from every
            yield from (f"c {one}:{two} rw" for one, two in sorted(wall.given))
        elif int(major) not in wall.majors:
            yield f"{kind} {numbers} {rights}"
        else:
            yield from (
                f"c {one}:{two} rw"
                for one, two in sorted(wall.given)
                if one == int(major) and minor in ("*", str(two))
            )


_INSTRUCTION = struct.Struct("<BBhi")
_LOAD_WORD = 0x61
_AND = 0x57
_MOVE = 0xB7
_JUMP = 0x05
_JUMP_IF_EQUAL = 0x15
_JUMP_IF_NOT_EQUAL = 0x55
_EXIT = 0x95

_CHARACTER_DEVICE = 2
_KIND_MASK = 0xFFFF
_ANSWER, _CALL, _KIND, _MAJOR, _MINOR = range(5)
"""Registers: the answer, what the kernel hands over, and what we read of that."""


def filter_program(wall: DeviceWall) -> bytes:
    """The program of kind BPF_PROG_TYPE_CGROUP_DEVICE that answers 1 for what may be opened.

    The kernel hands over three words: the kind of device (below the kind of access), the major and
    the minor number. It refuses a program in which some instruction can never be reached.
    """
    if not wall.majors:
        return b"".join(_answers((1,)))
    body: list[tuple[int, int, str | int, int]] = [
        (_JUMP_IF_NOT_EQUAL, _KIND, "allow", _CHARACTER_DEVICE),
    ]
    for major in sorted(set(wall.majors)):
        minors = sorted({minor for one, minor in wall.given if one == major})
        body.append((_JUMP_IF_NOT_EQUAL, _MAJOR, len(minors) + 1, major))
        body.extend((_JUMP_IF_EQUAL, _MINOR, "allow", minor) for minor in minors)
        body.append((_JUMP, 0, "deny", 0))
    labels = {"allow": len(body), "deny": len(body) + 2}
    loads = (
        _made(_LOAD_WORD, _KIND, source=_CALL, offset=0),
        _made(_AND, _KIND, value=_KIND_MASK),
        _made(_LOAD_WORD, _MAJOR, source=_CALL, offset=4),
        _made(_LOAD_WORD, _MINOR, source=_CALL, offset=8),
    )
    jumps = (
        _made(code, register, offset=_distance(labels, at, target), value=value)
        for at, (code, register, target, value) in enumerate(body)
    )
    return b"".join((*loads, *jumps, *_answers((1, 0))))


def _distance(labels: dict[str, int], at: int, target: str | int) -> int:
    """How many instructions a jump leaves out."""
    return target if isinstance(target, int) else labels[target] - at - 1


def _answers(values: Iterable[int]) -> Iterator[bytes]:
    for value in values:
        yield _made(_MOVE, _ANSWER, value=value)
        yield _made(_EXIT, 0)


def _made(code: int, register: int, *, source: int = 0, offset: int = 0, value: int = 0) -> bytes:
    return _INSTRUCTION.pack(code, source << 4 | register, offset, value)
