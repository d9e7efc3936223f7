"""Amounts of resources as lines of a queue's quota, and back. Pure."""

from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from muster.doors.kubernetes.pods import quantities
from muster.doors.kubernetes.pods.resources import CPU, GPU, MEMORY, MIG_PREFIX
from muster.model.queue import Amount, Meter, Quota, Scope
from muster.model.value import PoolName

_MILLI = 1_000
_MIB = 1_024**2


def scope_of(resource: str, pool: PoolName | None = None) -> Scope | None:
    """What a line about this resource counts; None for what Muster does not."""
    if resource == CPU:
        return Scope(meter=Meter.CPU, pool=pool)
    if resource == MEMORY:
        return Scope(meter=Meter.MEMORY, pool=pool)
    if resource == GPU:
        return Scope(meter=Meter.GPU, pool=pool)
    if resource.startswith(MIG_PREFIX):
        profile = resource.removeprefix(MIG_PREFIX)
        return Scope(meter=Meter.MIG, profile=profile, pool=pool)
    return None


def units(resource: str, text: Any) -> int:
    """An amount in the units that lines of quota have."""
    value = quantities.amount(text)
    if resource in (CPU, GPU):
        return int(value * _MILLI)
    return int(value / _MIB) if resource == MEMORY else int(value)


def resource_of(scope: Scope) -> str:
    """The resource that a line is about."""
    match scope.meter:
        case Meter.CPU:
            return CPU
        case Meter.MEMORY:
            return MEMORY
        case Meter.GPU:
            return GPU
        case Meter.MIG:
            return f"{MIG_PREFIX}{scope.profile}"


def written(scope: Scope, amount: int) -> str:
    """An amount of a line as Kubernetes writes it."""
    match scope.meter:
        case Meter.CPU | Meter.GPU:
            return quantities.shown(Decimal(amount) / _MILLI)
        case Meter.MEMORY:
            return quantities.memory(amount)
        case Meter.MIG:
            return str(amount)


def whole(amount: Amount | None) -> int | None:
    """The amount, where it is a number and not a part of all that there is."""
    return amount if isinstance(amount, int) else None


def by_resource(quotas: tuple[Quota, ...]) -> Mapping[str, Quota]:
    """Lines that are about no pool and no model, by their resources."""
    return {
        resource_of(line.scope): line
        for line in quotas
        if line.scope.pool is None and line.scope.model is None
    }
