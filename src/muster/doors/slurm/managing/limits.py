"""`cpu=64,mem=1T,gres/gpu=8,gres/gpu:a100=4` as lines of quota and as ceilings of a class. Pure."""

import re
from collections.abc import Iterable, Mapping, Sequence

from muster.doors.slurm.managing.words import Assignment
from muster.doors.slurm.words.errors import SlurmError
from muster.doors.slurm.words.gres import BadGresError, NoSuchTypeError, gpu_wish, type_of
from muster.doors.slurm.words.sizes import memory_mib, memory_text
from muster.model.amounts import capacity_of, ceiling
from muster.model.cluster import Node
from muster.model.gpu import Mig
from muster.model.queue import Ceiling, Meter, Quota, Scope
from muster.model.value import GpuModel, NodeId, Value, replace
from muster.model.words import thousandths

ORDER = (Meter.CPU, Meter.MEMORY, Meter.GPU, Meter.MIG)

_NUMBER = re.compile(r"[0-9]{1,9}(?:\.[0-9]{1,3})?")


class Amount(Value):
    """So much of something; None takes a bound away."""

    scope: Scope
    count: int | None


def amounts(word: Assignment, models: Sequence[GpuModel]) -> tuple[Amount, ...]:
    """What a list of TRES bounds."""
    return tuple(_amount(each, models) for each in word.values)


def with_limits(
    quotas: Iterable[Quota], messages: Iterable[Amount], nodes: Mapping[NodeId, Node]
) -> tuple[Quota, ...]:
    """The lines with these limits; what is not named stays, a line that says nothing goes.

    A percentage that comes to the same stays a percentage.
    """
    lines = {line.scope: line for line in quotas}
    for each in messages:
        line = lines.get(each.scope, Quota(scope=each.scope))
        is_so = is_bounded(line) and _bound(line, nodes) == each.count
        lines[each.scope] = line if is_so else replace(line, limit=each.count)
    return tuple(line for line in lines.values() if line != Quota(scope=line.scope))


def limits_text(
    quotas: Iterable[Quota], nodes: Mapping[NodeId, Node], *, convert: bool = True
) -> str:
    """The most that can be held, as TRES: up to the limit, and what may be borrowed.

    Lines for one pool, or for hosts of one GPU, cannot be said so.
    """
    models = sorted({device.model for node in nodes.values() for device in node.devices})
    lines = [line for line in quotas if is_bounded(line) and _is_sayable(line.scope)]
    found = [
        (ORDER.index(line.scope.meter), _name(line.scope, models), _bound(line, nodes))
        for line in lines
    ]
    return ",".join(
        f"{name}={_count(ORDER[meter], count, convert=convert)}"
        for meter, name, count in sorted(found)
    )


def _is_sayable(scope: Scope) -> bool:
    return scope.pool is None and (scope.model is None or scope.meter is Meter.GPU)


def with_ceilings(ceiling: Ceiling, messages: Iterable[Amount]) -> Ceiling:
    """The ceiling with these bounds."""
    for each in messages:
        scope = each.scope
        if scope.model is not None or scope.meter is Meter.MIG:
            raise _strange("a GPU type or MIG profile in a limit of a QOS")
        match scope.meter:
            case Meter.GPU:
                ceiling = replace(ceiling, gpu_milli=each.count)
            case Meter.CPU:
                ceiling = replace(ceiling, cpu_milli=each.count)
            case Meter.MEMORY:
                ceiling = replace(ceiling, memory_mib=each.count)
    return ceiling


def ceiling_text(ceiling: Ceiling) -> str:
    """The bounds as TRES, without that of jobs."""
    found = (
        ("cpu", Meter.CPU, ceiling.cpu_milli),
        ("mem", Meter.MEMORY, ceiling.memory_mib),
        ("gres/gpu", Meter.GPU, ceiling.gpu_milli),
    )
    return ",".join(
        f"{name}={_count(meter, count, convert=True)}"
        for name, meter, count in found
        if count is not None
    )


def _amount(text: str, models: Sequence[GpuModel]) -> Amount:
    name, equals, value = text.rpartition("=")
    if not equals:
        raise _strange(f"'{text}', which is no TRES=count,")
    scope = _scope(name.strip().lower(), models)
    if value.startswith("-"):
        return Amount(scope=scope, count=None)
    if scope.meter is Meter.MEMORY:
        count = memory_mib(value)
    else:
        count = _thousandths(value) if _NUMBER.fullmatch(value) else None
    if count is None:
        raise SlurmError(f"sacctmgr: error: Invalid value for {name} ({value})")
    if scope.meter is Meter.MIG:
        count //= 1_000
    return Amount(scope=scope, count=count)


def _scope(name: str, models: Sequence[GpuModel]) -> Scope:
    if name in {"cpu", "mem", "gres/gpu"}:
        meter = {"cpu": Meter.CPU, "mem": Meter.MEMORY, "gres/gpu": Meter.GPU}[name]
        return Scope(meter=meter)
    if not name.startswith("gres/gpu:"):
        raise _strange(f"a limit on the TRES '{name}'")
    kind = name.removeprefix("gres/gpu:")
    try:
        wish = gpu_wish(f"{kind}:1", models)
    except (BadGresError, NoSuchTypeError) as bad:
        raise SlurmError(f"sacctmgr: error: there is no GPU of the type '{kind}'") from bad
    if isinstance(wish.part, Mig):
        return Scope(meter=Meter.MIG, profile=wish.part.profile)
    if len(wish.models) != 1:
        several = ", ".join(model.lower() for model in wish.models)
        raise SlurmError(f"sacctmgr: error: '{kind}' may be one of {several}; name one of them")
    return Scope(meter=Meter.GPU, model=wish.models[0])


def _name(scope: Scope, models: Sequence[GpuModel]) -> str:
    match scope.meter:
        case Meter.CPU:
            return "cpu"
        case Meter.MEMORY:
            return "mem"
        case Meter.MIG:
            return f"gres/gpu:{scope.profile}"
        case Meter.GPU:
            return "gres/gpu" + (f":{type_of(scope.model, models)}" if scope.model else "")


def is_bounded(line: Quota) -> bool:
    """Does the line bound what may be held?"""
    return line.limit is not None or line.borrow_limit is not None


def _bound(line: Quota, nodes: Mapping[NodeId, Node]) -> int:
    return ceiling(line, capacity_of(line.scope, nodes.values())) or 0


def _count(meter: Meter, count: int, *, convert: bool) -> str:
    if meter is Meter.MEMORY:
        return memory_text(count) if convert else str(count)
    return str(count) if meter is Meter.MIG else thousandths(count)


def _thousandths(value: str) -> int:
    whole, _, part = value.partition(".")
    return int(whole) * 1_000 + int(part.ljust(3, "0") or 0)


def _strange(what: str) -> SlurmError:
    return SlurmError(f"sacctmgr: error: {what} is not supported by Muster")
