"""Amounts, spans of time and requests as people read them."""

from collections.abc import Mapping, Sequence

from muster.model.gpu import GpuAsk, Mig, MpsShare, Slice, TimeShare
from muster.model.job import Ask, JobSpec, TaskGroup
from muster.model.queue import Meter, Scope
from muster.model.value import DAY, HOUR, MINUTE, SECOND, Duration, Instant, JobId


def counted(count: int, noun: str) -> str:
    """`1 GPU`, `8 GPUs`."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def thousandths(amount: int) -> str:
    """`8`, `0.5`, `1.142`."""
    whole, part = divmod(amount, 1_000)
    return f"{whole}.{part:03}".rstrip("0") if part else str(whole)


def percent(amount_milli: int) -> str:
    """`50%`, `12.5%`."""
    whole, part = divmod(amount_milli, 10)
    return f"{whole}.{part}%" if part else f"{whole}%"


def gpus(amount_milli: int) -> str:
    """`1 GPU`, `0.5 GPUs`, `8 GPUs`."""
    return f"{thousandths(amount_milli)} GPU" + ("" if amount_milli == 1_000 else "s")


def money(micros: int) -> str:
    """`12.40`, in the currency of the prices."""
    return f"{micros // 1_000_000}.{micros % 1_000_000 // 10_000:02}"


def cores(amount_milli: int) -> str:
    """`1 core`, `2.5 cores`."""
    return f"{thousandths(amount_milli)} core" + ("" if amount_milli == 1_000 else "s")


def memory(amount_mib: int) -> str:
    """In GiB where that is a whole number."""
    return f"{amount_mib} MiB" if amount_mib % 1_024 else f"{amount_mib // 1_024} GiB"


def metered(scope: Scope, amount: int) -> str:
    """`64 GPUs`, `2.5 cores`, `512 GiB`, `3 1g.5gb slices`."""
    match scope.meter:
        case Meter.GPU:
            return gpus(amount)
        case Meter.CPU:
            return cores(amount)
        case Meter.MEMORY:
            return memory(amount)
        case Meter.MIG:
            return counted(amount, f"{scope.profile} slice")


def placed(scope: Scope) -> str:
    """Where the scope counts: ` in pool a100`, ` on A100-40GB`, or nothing for everywhere."""
    pool = f" in pool {scope.pool}" if scope.pool else ""
    return pool + (f" on {scope.model}" if scope.model else "")


def span(duration: int) -> str:
    """`2h 30m`, `45s`: rounded up, because milliseconds do not matter to people."""
    step = next((less for unit, less in _FINER if duration >= unit), SECOND)
    return exact_span(-(-duration // step) * step)


def exact_span(duration: int) -> str:
    """`1d 12h`, `90ms`: the parts that are not zero, largest first; where limits are compared."""
    parts: list[str] = []
    for length, letter in _UNITS:
        count, duration = divmod(duration, length)
        if count:
            parts.append(f"{count}{letter}")
    return " ".join(parts) or "0s"


_UNITS = ((DAY, "d"), (HOUR, "h"), (MINUTE, "m"), (SECOND, "s"), (Duration(1), "ms"))


# For spans of at least this long, what is shorter than that says nothing.
_FINER: tuple[tuple[Duration, Duration], ...] = ((DAY, HOUR), (HOUR, MINUTE))


def when(at: Instant, now: Instant) -> str:
    """`now`, `in 2h 30m`, `10m ago`."""
    if at == now:
        return "now"
    return f"in {span(at - now)}" if at > now else f"{span(now - at)} ago"


def listed(names: Sequence[str], most: int = 3) -> str:
    """`a`, `a and b`, `a, b, c and 9 more`."""
    shown = list(names[:most])
    if len(names) > most:
        shown.append(f"{len(names) - most} more")
    if len(shown) < 2:
        return "".join(shown)
    return f"{', '.join(shown[:-1])} and {shown[-1]}"


def either(names: Sequence[str]) -> str:
    """`a`, `a or b`, `a, b or c`, `any`."""
    *most, last = names or ("any",)
    return f"{', '.join(most)} or {last}" if most else last


Labels = Mapping[JobId, str]
"""What jobs are called that are parts of arrays: `12_3`. Others go by their id."""

NO_LABELS: Labels = {}


def jobs_listed(jobs: Sequence[JobId], labels: Labels = NO_LABELS) -> str:
    """`job 7`, `jobs 7 and 12_3`."""
    names = listed([labels.get(job, str(job)) for job in jobs])
    return f"job {names}" if len(jobs) == 1 else f"jobs {names}"


def tasks_in_words(group: str, count: int, spec: JobSpec) -> str:
    """`8 GPUs on one node`, `4 tasks at once in one rack, each with 8 GPUs and 64 GiB`."""
    found = group_of(group, spec)
    each = f"what group {group} asks for" if found is None else _ask(found.each)
    if count == 1:
        return f"{each} on one node"
    together = found.together if found is not None else None
    near = f" in one {together.level}" if together is not None and together.required else ""
    return f"{counted(count, 'task')} at once{near}, each with {each}"


def group_of(name: str, spec: JobSpec) -> TaskGroup | None:
    """The group of that name, if the job has one."""
    return next((group for group in spec.groups if group.name == name), None)


def slice_in_words(part: Slice) -> str:
    """`1g.5gb slice`, `50% GPU share`, `1-in-4 GPU turn`."""
    match part:
        case Mig(profile=profile):
            return f"{profile} slice"
        case MpsShare(milli=milli):
            return f"{percent(milli)} GPU share"
        case TimeShare(replicas=replicas):
            return f"1-in-{replicas} GPU turn"


def _ask(each: Ask) -> str:
    """`8 GPUs, 16 cores and 64 GiB`."""
    parts: list[str] = [] if each.gpus is None else [_gpus(each.gpus)]
    if each.cpu_milli:
        parts.append(cores(each.cpu_milli))
    if each.memory_mib:
        parts.append(memory(each.memory_mib))
    return listed(parts) or "a place to run"


def _gpus(asked: GpuAsk) -> str:
    models = f" of {either(asked.models)}" if asked.models else ""
    room = f" with {memory(asked.min_memory_mib)} or more" if asked.min_memory_mib else ""
    noun = "GPU" if asked.slice is None else slice_in_words(asked.slice)
    return counted(asked.count, noun) + models + room
