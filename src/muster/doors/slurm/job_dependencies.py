"""What a job waits for, as Slurm writes it."""

from collections import Counter

from muster.doors.slurm.asking import CORRESPONDING
from muster.doors.slurm.jobs import JobRow
from muster.model.job import ArrayPart, Dependency, DependencyKind, JobState, ways
from muster.model.value import JobId


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
    other = None if each.job is None else row.scene.snapshot.jobs.get(each.job)
    return None if other is None else other.spec.array


def _dependency(
    each: Dependency, part: ArrayPart | None, of_array: Counter[JobId], row: JobRow
) -> str:
    """Nothing, if it is fulfilled."""
    if each.job is None:
        return f"{each.kind.value}(unfulfilled)"
    ended = row.scene.snapshot.finished.get(each.job)
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
