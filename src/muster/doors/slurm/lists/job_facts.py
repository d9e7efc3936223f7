"""What lists show of one job: files, memory, dependencies, and since when it may start."""

import os.path
from collections import Counter

from muster.doors.slurm.lists import jobs
from muster.doors.slurm.lists.jobs import JobRow, nodes
from muster.doors.slurm.submit.job_details import CORRESPONDING
from muster.doors.slurm.words.sizes import memory_text
from muster.doors.slurm.words.states import State
from muster.launch.patterns import Names, filled
from muster.model.job import ArrayPart, Dependency, DependencyKind, JobState, ways
from muster.model.value import Instant, JobId


def eligible_at(row: JobRow) -> Instant | None:
    """When it may or might start; None while it is held or waits, and no time was given."""
    return row.job.begin_at if _is_kept(row) else row.job.begin_at or row.job.submitted_at


def accrues_since(row: JobRow) -> Instant | None:
    """Since when its age counts; None as long as it may not start."""
    at = eligible_at(row)
    return None if _is_kept(row) or at is None or at > row.listing.now else at


def _is_kept(row: JobRow) -> bool:
    if row.state is not State.PENDING:
        return False
    return jobs.reason(row).startswith(("Dependency", "JobHeld"))


def is_per_cpu(row: JobRow) -> bool:
    return row.label("mem-per-cpu") is not None


def least_memory_mib(row: JobRow) -> int:
    """As it was asked for; what is asked for GPUs is none of the node's."""
    if row.label("mem-per-gpu") is not None:
        return 0
    asked = row.label("mem-per-cpu")
    return jobs.memory_per_node_mib(row) if asked is None else int(asked)


def per_gpu(row: JobRow) -> str | None:
    """`gres:gpu:100`, of what is asked for each GPU."""
    asked = row.label("mem-per-gpu")
    return None if asked is None else f"gres:gpu:{asked}"


def least_memory(row: JobRow) -> str:
    """`MinMemoryNode=8G`, `MinMemoryCPU=100M`."""
    return f"MinMemory{'CPU' if is_per_cpu(row) else 'Node'}={memory_text(least_memory_mib(row))}"


def dependency_text(row: JobRow) -> str:
    """As lists have it."""
    return unmet_text(row) or "(null)"


def unmet_text(row: JobRow) -> str:
    """`afterok:46(failed)?afterany:47(unfulfilled)`; nothing, if it is fulfilled."""
    texts = [_way(each, row) for each in ways(row.job.spec.after)]
    return "?".join(texts) if all(texts) else ""


def _way(way: tuple[Dependency, ...], row: JobRow) -> str:
    """Nothing, if it is fulfilled; the parts of an array that have not ended are one."""
    parts = [_part(each, row) for each in way]
    of_array = Counter(part.array for part in parts if part is not None)
    texts = (_dependency(each, part, of_array, row) for each, part in zip(way, parts, strict=True))
    return ",".join(dict.fromkeys(filter(None, texts)))


def _part(each: Dependency, row: JobRow) -> ArrayPart | None:
    """Which part of which array is waited for, while it lives."""
    other = None if each.job is None else row.listing.live_job(each.job)
    return None if other is None else other.spec.array


def _dependency(
    each: Dependency, part: ArrayPart | None, of_array: Counter[JobId], row: JobRow
) -> str:
    """Nothing, if it is fulfilled."""
    if each.job is None:
        return f"{each.kind.value}(unfulfilled)"
    ended = row.listing.outcome(each.job)
    if ended is not None and _is_met(each.kind, ended.state):
        return ""
    name = str(each.job)
    if part is not None:
        is_whole = of_array[part.array] > 1 or each.part is not None
        name = f"{part.array}_{'*' if is_whole else part.index}"
    delay = f"+{each.delay // 60_000}" if each.delay else ""
    state = "unfulfilled" if ended is None else "failed"
    kind = each.kind.value if each.part is None else CORRESPONDING
    return f"{kind}:{name}{delay}({state})"


def _is_met(kind: DependencyKind, state: JobState) -> bool:
    if kind is DependencyKind.AFTER_OK:
        return state is JobState.COMPLETED
    return kind is not DependencyKind.AFTER_NOT_OK or state is not JobState.COMPLETED


USUAL_OUTPUT = "slurm-%j.out"


def input_file(row: JobRow) -> str:
    """What it reads: the whole path."""
    return os.path.join(row.launch.workdir or "", row.launch.stdin or "/dev/null")


def output_file(row: JobRow, *, stderr: bool = False) -> str:
    """Where it writes: the whole path, or nothing for those who may not see it."""
    launch, job = row.launch, row.job
    wanted = (launch.stderr if stderr else None) or launch.stdout or ""
    if not wanted or not launch.workdir:
        return ""
    if wanted == USUAL_OUTPUT:
        return f"{launch.workdir}/slurm-{job.id}.out"
    part, there = job.spec.array, nodes(row)
    names = Names(
        job=job.id,
        job_name=job.spec.name,
        user=job.spec.user,
        node=there[0] if there else "",
        array=None if part is None else part.array,
        index=None if part is None else part.index,
    )
    path = filled(wanted, names)
    return path if path.startswith("/") else f"{launch.workdir}/{path}"
