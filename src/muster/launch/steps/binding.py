"""Which CPUs each task of a step is bound to, of those that the step has on a node."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

NONE = "none"
_TYPES = {
    "map_cpu": "MAP ",
    "mask_cpu": "MASK",
    "rank_ldom": "LDRANK",
    "map_ldom": "LDMAP ",
    "mask_ldom": "LDMASK",
}
LISTED_KINDS = frozenset(_TYPES) - {"rank_ldom"}
"""Kinds of binding that need a list of CPUs, masks or NUMA nodes."""


@dataclass(frozen=True, kw_only=True)
class Bind:
    """How tasks are bound: a kind as `--cpu-bind` calls it, and what its list says.

    verbose: each task says on its stderr what became of it.
    """

    kind: str
    values: tuple[int, ...] = ()
    verbose: bool = False


@dataclass(frozen=True, kw_only=True)
class StepCpus:
    """The CPUs that a step has on a node, and the tasks that share them."""

    cpus: tuple[int, ...]
    tasks: int
    cpus_per_task: int = 1


class CpuTopology(Protocol):
    """How the CPUs of a node belong together. Asked only for kinds of binding that need it."""

    def core(self, cpu: int) -> tuple[int, ...]:
        """The CPUs of the core that this one belongs to."""
        ...

    def socket(self, cpu: int) -> tuple[int, ...]:
        """The CPUs of its socket."""
        ...

    def domains(self) -> Mapping[int, tuple[int, ...]]:
        """The CPUs of each NUMA node."""
        ...


def cpus_of_tasks(
    bind: Bind, step: StepCpus, topology: CpuTopology
) -> list[tuple[int, ...]] | None:
    """For each task its CPUs, in order; None where some that are named are not the step's."""
    if bind.kind == NONE:
        return [step.cpus] * step.tasks
    if bind.kind in _TYPES:
        found = [_named(bind, step, topology, place) for place in range(step.tasks)]
        return [each for each in found if each] if all(found) else None
    return [
        tuple(sorted(_widened(bind.kind, _own(step, place), topology) & set(step.cpus)))
        for place in range(step.tasks)
    ]


def mask(cpus: Sequence[int]) -> str:
    """As a hexadecimal number with a bit for each CPU."""
    return f"0x{sum(1 << cpu for cpu in cpus):X}"


def variables(bind: Bind, bound: Sequence[Sequence[int]]) -> dict[str, str]:
    """What tasks find of it in their environment."""
    masks = "" if bind.kind == NONE else ",".join(map(mask, bound))
    kind = NONE if bind.kind == NONE else "mask_cpu:"
    loudness = "verbose" if bind.verbose else "quiet"
    return {
        "SLURM_CPU_BIND": f"{loudness},{kind}{masks}",
        "SLURM_CPU_BIND_LIST": masks,
        "SLURM_CPU_BIND_TYPE": kind,
        "SLURM_CPU_BIND_VERBOSE": loudness,
    }


def remark(bind: Bind, node: str, rank: int, local: int, cpus: Sequence[int]) -> str:
    """What a task says of it, with a place for its process' number."""
    if bind.kind == NONE:
        units, kind, action = "", "NONE", ""
    else:
        units = "" if bind.kind in _TYPES or not bind.kind else f"-{bind.kind}"
        kind, action = _TYPES.get(bind.kind, "MASK"), " set"
    where = f"cpu-bind{units}={kind} - {node}, task {rank:2} {local:2} [%d]"
    return f"{where}: mask {mask(cpus)}{action}\n"


def _own(step: StepCpus, place: int) -> set[int]:
    """So many for each, in order; all, where there are too few for that."""
    each = step.cpus_per_task
    if each * step.tasks > len(step.cpus):
        return set(step.cpus)
    return set(step.cpus[place * each : (place + 1) * each])


def _named(bind: Bind, step: StepCpus, topology: CpuTopology, place: int) -> tuple[int, ...]:
    """What the list says for this task; empty where that is not the step's."""
    if bind.kind == "rank_ldom":
        return _of_domains(topology, {place % max(1, len(topology.domains()))}, step)
    value = bind.values[place % len(bind.values)]
    if bind.kind == "map_ldom":
        return _of_domains(topology, {value}, step)
    if bind.kind == "mask_ldom":
        return _of_domains(topology, _bits(value), step)
    wanted = {value} if bind.kind == "map_cpu" else _bits(value)
    return tuple(sorted(wanted)) if wanted <= set(step.cpus) else ()


def _of_domains(topology: CpuTopology, numbers: set[int], step: StepCpus) -> tuple[int, ...]:
    domains = topology.domains()
    cpus = {cpu for number in numbers for cpu in domains.get(number, ())}
    return tuple(cpu for cpu in step.cpus if cpu in cpus)


def _bits(value: int) -> set[int]:
    return {place for place in range(value.bit_length()) if value >> place & 1}


def _widened(kind: str, cpus: set[int], topology: CpuTopology) -> set[int]:
    """All of the cores, sockets or NUMA nodes that these CPUs are of; otherwise only themselves."""
    match kind:
        case "cores":
            return cpus.union(*map(topology.core, cpus))
        case "sockets":
            return cpus.union(*map(topology.socket, cpus))
        case "ldoms":
            domains = topology.domains().values()
            return cpus.union(*(members for members in domains if cpus & set(members)))
        case _:
            return cpus
