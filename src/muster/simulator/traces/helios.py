"""SenseTime's Helios trace: the published logs, and slices of them in a shorter form.

A job has one task on each of its nodes.
"""

from collections.abc import Iterable, Iterator

from muster.model.value import Instant
from muster.simulator.traces.files import Row
from muster.simulator.traces.moments import instant, span_s
from muster.simulator.traces.traced import Outcome, TracedJob

_OUTCOMES = {
    "COMPLETED": Outcome.COMPLETED,
    "CANCELLED": Outcome.CANCELLED,
    "CANCELED": Outcome.CANCELLED,
    "FAILED": Outcome.FAILED,
    "TIMEOUT": Outcome.FAILED,
    "NODE_FAIL": Outcome.FAILED,
}


def jobs(rows: Iterable[Row]) -> Iterator[TracedJob]:
    """The jobs of a log as it was published, or of a slice."""
    return (_of_slice(row) if "final_status" in row else _of_log(row) for row in rows)


def slice_jobs(rows: Iterable[Row]) -> Iterator[TracedJob]:
    """The jobs of a slice."""
    return map(_of_slice, rows)


def _of_log(row: Row) -> TracedJob:
    nodes = max(1, int(row["node_num"] or 1))
    return TracedJob(
        name=row["job_id"],
        submitted_at=instant(row["submit_time"]) or Instant(0),
        duration=span_s(row["duration"]),
        tasks=nodes,
        cpu_milli=1_000 * int(row["cpu_num"]) // nodes,
        gpus=-(-int(row["gpu_num"]) // nodes),
        user=row["user"],
        queue=row["vc"],
        outcome=_outcome(row["state"]),
        started_at=instant(row["start_time"]),
    )


def _of_slice(row: Row) -> TracedJob:
    """Times are microseconds from the beginning of the slice."""
    nodes = max(1, int(row["num_nodes"]))
    return TracedJob(
        name=row["job_id"],
        submitted_at=Instant(int(row["submit_time"]) // 1_000),
        duration=span_s(row["duration_s"]),
        tasks=nodes,
        gpus=-(-int(row["num_chips"]) // nodes),
        user=row["user"],
        queue=row["tenant"],
        outcome=_outcome(row["final_status"]),
    )


def _outcome(state: str) -> Outcome:
    return _OUTCOMES.get(state.upper(), Outcome.FAILED)
