"""What a client may ask of a supervisor, read strictly: any process of the job's user may send it.

A supervisor acts on these values and on nothing else of a message. ValueError where a message has
another form; the client that sent it is disconnected.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from typing import Any, cast

from muster.backends.local.steps.wire import Message
from muster.launch.steps.allocator import StepRequest
from muster.launch.steps.binding import LISTED_KINDS, Bind
from muster.model.gpu_bind import FORM

MOST_TASKS = 16_384
_MOST = 1 << 40
_MOST_CPUS = 8_192
_MOST_WORDS = 1_000_000
_MOST_COMPONENTS = 128
_LONGEST_NAME = 1_024
_LONGEST_COMMAND = 4_096
_LONGEST_PATH = 4_096
_MOST_STREAMS = 4
"""Stdin, stdout, stderr and one beside them."""


@dataclass(frozen=True, kw_only=True)
class Want:
    """A step: a request, a name and a command for each component that it runs in."""

    requests: tuple[StepRequest, ...]
    names: tuple[str, ...]
    commands: tuple[str, ...]
    limit_ms: int | None


@dataclass(frozen=True, kw_only=True)
class Program:
    """What the tasks of one component find around them."""

    env: Mapping[str, str]
    cwd: str
    bind: Bind | None


@dataclass(frozen=True, kw_only=True)
class StartStep:
    """Start the tasks: one command for all, or one for each. streams: places among the files."""

    argvs: tuple[tuple[str, ...], ...]
    streams: tuple[tuple[int, ...], ...]
    programs: tuple[Program, ...]
    umask: int
    label: bool
    pty: bool


@dataclass(frozen=True, kw_only=True)
class SignalStep:
    """Send this to all tasks of the step."""

    number: int


@dataclass(frozen=True, kw_only=True)
class Hold:
    """Keep the attempt as long as this client is there."""


@dataclass(frozen=True, kw_only=True)
class Release:
    """Let go of it, with how it ended; keep: it goes on until it is ended from outside."""

    keep: bool
    code: int
    signal: int


Asked = Want | StartStep | SignalStep | Hold | Release


def read(message: Message) -> Asked:
    """What the message asks for."""
    match message.get("kind"):
        case "want":
            return _want(message)
        case "launch":
            return _start(message)
        case "signal":
            return SignalStep(number=_whole(message.get("signal"), 1, 64))
        case "hold":
            return Hold()
        case "release":
            return Release(
                keep=_truth(message.get("keep")),
                code=_whole(message.get("code"), -255, 255),
                signal=_whole(message.get("signal"), 0, 64),
            )
        case _:
            raise ValueError("an unknown kind of message")


def _want(message: Message) -> Want:
    each = _by_component(message)
    limit_ms = message.get("limit_ms")
    return Want(
        requests=tuple(_request(one.get("wish")) for one in each),
        names=tuple(_text(one.get("name"))[:_LONGEST_NAME] for one in each),
        commands=tuple(_text(one.get("command"))[:_LONGEST_COMMAND] for one in each),
        limit_ms=None if limit_ms is None else _whole(limit_ms, 0, _MOST),
    )


def _start(message: Message) -> StartStep:
    commands = _listed(message.get("argvs"), MOST_TASKS)
    argvs = tuple(tuple(_texts(_listed(each, _MOST_WORDS))) for each in commands)
    if not argvs or not all(argvs):
        raise ValueError("no command")
    return StartStep(
        argvs=argvs,
        streams=tuple(_places(each) for each in _listed(message.get("streams"), MOST_TASKS)),
        programs=tuple(_program(each) for each in _by_component(message)),
        umask=_whole(message.get("umask"), 0, 0o777),
        label=_truth(message.get("label")),
        pty=_truth(message.get("pty")),
    )


def _by_component(message: Message) -> list[Message]:
    """What is said for each component; a step of one component says it once."""
    return [message, *map(_mapping, _listed(message.get("beside", []), _MOST_COMPONENTS))]


def _program(said: Message) -> Program:
    env = _mapping(said.get("env"))
    names = list(_texts(env))
    if any("=" in name or not name for name in names):
        raise ValueError("no name of a variable")
    cwd = _text(said.get("cwd"))
    if len(cwd) > _LONGEST_PATH:
        raise ValueError("no path")
    values = _texts(env.values())
    bind = said.get("bind")
    return Program(
        env=dict(zip(names, values, strict=True)),
        cwd=cwd,
        bind=None if bind is None else _bind(_mapping(bind)),
    )


def _bind(said: Message) -> Bind:
    kind = _text(said.get("kind"))
    # Masks have a bit for each CPU, of which no machine has so many.
    values = [
        _whole(value, 0, 1 << _MOST_CPUS) for value in _listed(said.get("values"), MOST_TASKS)
    ]
    if kind in LISTED_KINDS and not values:
        raise ValueError("no CPUs are named")
    return Bind(kind=kind, values=tuple(values), verbose=_truth(said.get("verbose")))


def _request(asked: object) -> StepRequest:
    said = _mapping(asked)
    if not said.keys() <= _REQUEST_FIELDS.keys():
        raise ValueError("an unknown wish")
    wishes: Message = {name: _REQUEST_FIELDS[name](value) for name, value in said.items()}
    found = StepRequest(**wishes)
    if not 1 <= found.tasks <= MOST_TASKS or found.cpus_per_task < 1:
        raise ValueError("no task, or too many")
    if found.gpu_bind and (
        len(found.gpu_bind) > _LONGEST_NAME or FORM.fullmatch(found.gpu_bind) is None
    ):
        raise ValueError("no way to bind GPUs")
    return found


def _count(value: object) -> int:
    return _whole(value, 0, _MOST)


def _maybe_count(value: object) -> int | None:
    return None if value is None else _count(value)


def _node_names(value: object) -> tuple[str, ...]:
    return tuple(_texts(_listed(value, MOST_TASKS)))


def _whole(value: object, least: int, most: int) -> int:
    if type(value) is not int or not least <= value <= most:
        raise ValueError("no whole number, or out of bounds")
    return value


def _truth(value: object) -> bool:
    if not isinstance(value, bool):
        raise ValueError("neither true nor false")
    return value


def _text(value: object) -> str:
    if not isinstance(value, str) or "\0" in value:
        raise ValueError("no text")
    return value


def _texts(values: Iterable[object]) -> Iterable[str]:
    return (_text(value) for value in values)


def _listed(value: object, most: int) -> list[Any]:
    found = cast("list[Any]", value)
    if not isinstance(value, list) or len(found) > most:
        raise ValueError("no list, or too long")
    return found


def _mapping(value: object) -> Message:
    if not isinstance(value, dict):
        raise ValueError("no mapping")
    return cast("Message", value)


def _places(value: object) -> tuple[int, ...]:
    places = tuple(_whole(each, 0, _MOST) for each in _listed(value, _MOST_STREAMS))
    if not places:
        raise ValueError("no streams")
    return places


_BY_TYPE = {
    "int": _count,
    "int | None": _maybe_count,
    "str": _text,
    "bool": _truth,
    "tuple[str, ...]": _node_names,
}


def _type_name(kind: object) -> str:
    return kind.__name__ if type(kind) is type else str(kind)


_REQUEST_FIELDS = {each.name: _BY_TYPE[_type_name(each.type)] for each in fields(StepRequest)}
