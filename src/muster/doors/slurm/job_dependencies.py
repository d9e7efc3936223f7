"""What a job waits for, as Slurm writes it."""

from muster.doors.slurm.jobs import JobRow
from muster.model.job import Dependency, DependencyKind, JobState


def dependency_text(row: JobRow) -> str:
    """`afterok:46(failed)`, as far as it is not fulfilled."""
    if not row.job.spec.after:
        return "(null)"
    return ",".join(filter(None, (_dependency(each, row) for each in row.job.spec.after))) or (
        "(null)"
    )


def _dependency(each: Dependency, row: JobRow) -> str:
    """Nothing, if it is fulfilled."""
    if each.job is None:
        return f"{each.kind.value}(unfulfilled)"
    ended = row.scene.snapshot.finished.get(each.job)
    if ended is not None and _is_met(each.kind, ended.state):
        return ""
    delay = f"+{each.delay // 60_000}" if each.delay else ""
    state = "unfulfilled" if ended is None else "failed"
    return f"{each.kind.value}:{each.job}{delay}({state})"


def _is_met(kind: DependencyKind, state: JobState) -> bool:
    if kind is DependencyKind.AFTER_OK:
        return state is JobState.COMPLETED
    return kind is not DependencyKind.AFTER_NOT_OK or state is not JobState.COMPLETED
