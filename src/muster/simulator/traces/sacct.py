"""What `sacct -P` prints, with at least these columns (--format, separated by |).

    JobID JobName User Partition Submit Start ElapsedRaw TimelimitRaw ReqTRES NNodes State

Steps of jobs are left out; amounts are spread evenly over the nodes, one task on each.
"""

from collections.abc import Iterable, Iterator

from muster.model.value import MINUTE, Duration, GpuModel, Instant
from muster.simulator.traces.files import Row
from muster.simulator.traces.files import rows as rows_of
from muster.simulator.traces.moments import clock_span, instant, memory_mib, span_s
from muster.simulator.traces.traced import Outcome, TracedJob

_GPU = "gres/gpu"
_OUTCOMES = {"COMPLETED": Outcome.COMPLETED, "CANCELLED": Outcome.CANCELLED}


def jobs(text: Iterable[str]) -> Iterator[TracedJob]:
    """The jobs, without their steps."""
    return (_job(row) for row in rows_of(text, "|") if "." not in row["JobID"])


def _job(row: Row) -> TracedJob:
    amounts = dict(_amounts(row.get("ReqTRES") or row.get("AllocTRES", "")))
    nodes = max(1, int(row.get("NNodes") or amounts.get("node", "1")))
    typed = sorted(name for name in amounts if name.startswith(f"{_GPU}:"))
    gpus = int(amounts.get(_GPU) or sum(int(amounts[name]) for name in typed))
    return TracedJob(
        name=row["JobID"],
        submitted_at=instant(row["Submit"]) or Instant(0),
        duration=_ran(row),
        tasks=nodes,
        cpu_milli=1_000 * int(amounts.get("cpu", "0")) // nodes,
        memory_mib=memory_mib(amounts.get("mem", "0")) // nodes,
        gpus=-(-gpus // nodes),
        models=tuple(GpuModel(name.partition(":")[2]) for name in typed),
        user=row["User"],
        queue=row["Partition"],
        outcome=_OUTCOMES.get(row["State"].split(" ")[0], Outcome.FAILED),
        started_at=instant(row["Start"]),
        limit=_limit(row),
    )


def _amounts(text: str) -> Iterator[tuple[str, str]]:
    for part in text.split(","):
        name, has_value, value = part.partition("=")
        if has_value:
            yield name, value


def _ran(row: Row) -> Duration | None:
    if instant(row["Start"]) is None:
        return None
    raw = row.get("ElapsedRaw", "")
    return span_s(raw) if raw else clock_span(row.get("Elapsed", ""))


def _limit(row: Row) -> Duration | None:
    raw = row.get("TimelimitRaw", "")
    return Duration(int(raw) * MINUTE) if raw.isdecimal() else clock_span(row.get("Timelimit", ""))
