"""--cpu-bind and --mem-bind as Slurm reads them. Pure."""

import re
from collections.abc import Sequence

from muster.doors.slurm.call import CpuBind
from muster.doors.slurm.submit.fleet import Machines
from muster.doors.slurm.submit.request import Request
from muster.doors.slurm.words.errors import SlurmError

LACKING = "srun: cluster configuration lacks support for cpu binding"
HELP = """\
--cpu-bind=WORD,... says which CPUs of a step each of its tasks may use:
    quiet, verbose       whether tasks say what became of it
    none                 all that the step has
    threads, cores       as many as were asked for, or their whole cores
    sockets, ldoms       their whole sockets or NUMA nodes
    map_cpu:N,...        one CPU for each task, by number
    mask_cpu:0xN,...     several for each task, as bits
    rank_ldom            one NUMA node after the other
    map_ldom, mask_ldom  NUMA nodes by number or as bits
"""
MOST_VALUES = 4_096

_LISTS = frozenset({"map_cpu", "mask_cpu", "map_ldom", "mask_ldom"})
_KINDS = {
    "no": "none",
    "none": "none",
    "rank_ldom": "rank_ldom",
    "socket": "sockets",
    "sockets": "sockets",
    "core": "cores",
    "cores": "cores",
    "thread": "threads",
    "threads": "threads",
    "ldom": "ldoms",
    "ldoms": "ldoms",
}
_LOUDNESS = {"q": False, "quiet": False, "v": True, "verbose": True}
_BETWEEN_WORDS = re.compile(r",(?!0x|\d)", re.IGNORECASE)
_OFF_LOCAL = re.compile(r"rank|map_mem|mask_mem", re.IGNORECASE)


def cpu_bind_of(request: Request, *, lacks: bool) -> CpuBind | None:
    """What was asked for; SlurmError for what cannot be read. lacks: the CPUs are unknown."""
    text = request.text("cpu-bind")
    if text is None:
        return None
    found = CpuBind()
    for word in _BETWEEN_WORDS.split(text):
        found = _with_word(found, word, (LACKING,) if lacks else ())
    return found


def lacks_binding(machines: Machines) -> bool:
    """Pretend nodes have no CPUs of their own."""
    return all(node.pretend for node in machines.nodes.values())


def binding_words(requests: Sequence[Request], machines: Machines) -> str:
    """What is said of it before anything runs; SlurmError for what cannot be read."""
    lacks = any(each.has("cpu-bind") for each in requests) and lacks_binding(machines)
    for request in requests:
        cpu_bind_of(request, lacks=lacks)
    text = f"{LACKING}\n" if lacks else ""
    return text + "".join(dict.fromkeys(map(_memory_words, requests)))


def asks_for_help(request: Request) -> bool:
    return (request.text("cpu-bind") or "").lower() == "help"


def _memory_words(request: Request) -> str:
    """Memory is taken near the CPUs of the process that asks for it (`local`); no other way."""
    text = request.text("mem-bind") or ""
    if not _OFF_LOCAL.search(text):
        return ""
    return f"srun: warning: --mem-bind={text} is ignored by Muster: memory is local to CPUs\n"


def _with_word(found: CpuBind, word: str, before: tuple[str, ...]) -> CpuBind:
    name, _, values = word.partition(":" if ":" in word else "=")
    name = name.lower().replace("mapcpu", "map_cpu").replace("maskcpu", "mask_cpu")
    if name in _LISTS:
        return CpuBind(kind=name, values=_values(name, values, before), verbose=found.verbose)
    if name in _LOUDNESS:
        return CpuBind(kind=found.kind, values=found.values, verbose=_LOUDNESS[name])
    if name in _KINDS:
        return CpuBind(kind=_KINDS[name], verbose=found.verbose)
    if name in {"rank", "one_thread", "board", "boards"}:
        # Obsolete, or what happens anyway.
        return found
    raise _unreadable(f'unrecognized --cpu-bind argument "{word}"', before)


def _values(name: str, text: str, before: tuple[str, ...]) -> tuple[int, ...]:
    """Numbers, each perhaps with how often it stands there: `0x3*2`."""
    if not text:
        raise _unreadable(f'missing list for "--cpu-bind={name}:<list>"', before)
    found: list[int] = []
    for item in text.split(","):
        value, _, times = item.partition("*")
        base = 16 if name.startswith("mask") else 0
        try:
            found += [int(value, base)] * min(int(times or 1), MOST_VALUES)
        except ValueError:
            raise _unreadable(f"Failed to expand list: '{text}'", before) from None
    return tuple(found[:MOST_VALUES])


def _unreadable(problem: str, before: tuple[str, ...]) -> SlurmError:
    last = "srun: fatal: Failed to parse --cpu-bind= values."
    return SlurmError(*before, f"srun: error: {problem}", last)
