"""Which CPUs each task of a step is bound to, of those that the step has on a node.

Only the standard library is used here: every supervisor carries it.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

CPUS = Path("/sys/devices/system/cpu")
NODES = Path("/sys/devices/system/node")
NONE = "none"
_TYPES = {
    "map_cpu": "MAP ",
    "mask_cpu": "MASK",
    "rank_ldom": "LDRANK",
    "map_ldom": "LDMAP ",
    "mask_ldom": "LDMASK",
}


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


def read(asked: Mapping[str, Any] | None) -> Bind | None:
    """As a launch says it; ValueError or LookupError for what nobody can mean."""
    if asked is None:
        return None
    values = tuple(int(value) for value in asked["values"])
    return Bind(kind=str(asked["kind"]), values=values, verbose=bool(asked["verbose"]))


def cpus_of_tasks(bind: Bind, seats: StepCpus) -> list[tuple[int, ...]] | None:
    """For each task its CPUs, in order; None where some that are named are not the step's."""
    if bind.kind == NONE:
        return [seats.cpus] * seats.tasks
    if bind.kind in _TYPES:
        found = [_named(bind, seats, place) for place in range(seats.tasks)]
        return [each for each in found if each] if all(found) else None
    widened = _WIDENED.get(bind.kind, _itself)
    return [
        tuple(sorted(widened(_own(seats, place)) & set(seats.cpus))) for place in range(seats.tasks)
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


def _own(seats: StepCpus, place: int) -> set[int]:
    """So many for each, in order; all, where there are too few for that."""
    each = seats.cpus_per_task
    if each * seats.tasks > len(seats.cpus):
        return set(seats.cpus)
    return set(seats.cpus[place * each : (place + 1) * each])


def _named(bind: Bind, seats: StepCpus, place: int) -> tuple[int, ...]:
    """What the list says for this task; empty where that is not the step's."""
    if bind.kind == "rank_ldom":
        return _of_domains({place % max(1, len(_domains()))}, seats)
    value = bind.values[place % len(bind.values)]
    if bind.kind == "map_ldom":
        return _of_domains({value}, seats)
    if bind.kind == "mask_ldom":
        return _of_domains(_bits(value), seats)
    wanted = {value} if bind.kind == "map_cpu" else _bits(value)
    return tuple(sorted(wanted)) if wanted <= set(seats.cpus) else ()


def _of_domains(numbers: set[int], seats: StepCpus) -> tuple[int, ...]:
    cpus = {cpu for number in numbers for cpu in _domains().get(number, ())}
    return tuple(cpu for cpu in seats.cpus if cpu in cpus)


def _bits(value: int) -> set[int]:
    return {place for place in range(value.bit_length()) if value >> place & 1}


def _itself(cpus: set[int]) -> set[int]:
    return cpus


def _pinning(cpus: set[int]) -> set[int]:
    return cpus.union(*(_listed(CPUS / f"cpu{cpu}/topology/thread_siblings_list") for cpu in cpus))


def _sockets(cpus: set[int]) -> set[int]:
    return cpus.union(*(_listed(CPUS / f"cpu{cpu}/topology/core_siblings_list") for cpu in cpus))


def _ldoms(cpus: set[int]) -> set[int]:
    return cpus.union(*(members for members in _domains().values() if cpus & set(members)))


_WIDENED: Mapping[str, Callable[[set[int]], set[int]]] = {
    "cores": _pinning,
    "sockets": _sockets,
    "ldoms": _ldoms,
}


def _domains() -> dict[int, tuple[int, ...]]:
    """NUMA nodes; a machine that does not tell them has one, with everything."""
    found = {int(each.name[4:]): _listed(each / "cpulist") for each in NODES.glob("node[0-9]*")}
    return found or {0: _listed(CPUS / "online")}


def _listed(path: Path) -> tuple[int, ...]:
    """`0-3,8` as numbers: how the kernel lists CPUs."""
    try:
        text = path.read_text(encoding="ascii").strip()
    except OSError:
        return ()
    found: list[int] = []
    for part in filter(None, text.split(",")):
        first, _, last = part.partition("-")
        found += range(int(first), int(last or first) + 1)
    return tuple(found)
