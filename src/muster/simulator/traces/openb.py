"""Alibaba's openb trace (gpu-v2023): pods that share GPUs, and the nodes they ran on.

Times are seconds from an unknown beginning; some lists have none. A pod with several GPUs has them
whole, whatever its `gpu_milli` says.
"""

from collections.abc import Iterable, Iterator

from muster.model.gpu import WHOLE_GPU_MILLI
from muster.model.value import SECOND, Duration, GpuModel, Instant
from muster.simulator.traces.files import Row
from muster.simulator.traces.traced import Outcome, TracedJob, TracedNode

_OUTCOMES = {"Failed": Outcome.FAILED}


def jobs(rows: Iterable[Row]) -> Iterator[TracedJob]:
    """The pods of a pod list."""
    return map(_job, rows)


def nodes(rows: Iterable[Row]) -> Iterator[TracedNode]:
    """The nodes of a node list."""
    for row in rows:
        yield TracedNode(
            name=row["sn"],
            cpu_milli=int(row["cpu_milli"]),
            memory_mib=int(row["memory_mib"]),
            gpus=int(row["gpu"]),
            model=GpuModel(row["model"]),
        )


def _job(row: Row) -> TracedJob:
    gpus, milli = int(row["num_gpu"]), int(row["gpu_milli"])
    submitted_s, ended_s = row.get("creation_time") or "0", row.get("deletion_time")
    started_s = row.get("scheduled_time")
    began_s = float(started_s or submitted_s)
    return TracedJob(
        name=row["name"],
        submitted_at=Instant(int(float(submitted_s) * SECOND)),
        duration=Duration(int((float(ended_s) - began_s) * SECOND)) if ended_s else None,
        cpu_milli=int(row["cpu_milli"]),
        memory_mib=int(row["memory_mib"]),
        gpus=gpus if milli else 0,
        gpu_milli=milli if gpus == 1 and milli else WHOLE_GPU_MILLI,
        models=tuple(GpuModel(model) for model in row.get("gpu_spec", "").split("|") if model),
        queue=row.get("qos", ""),
        outcome=_OUTCOMES.get(row.get("pod_phase", ""), Outcome.COMPLETED),
        started_at=Instant(int(float(started_s) * SECOND)) if started_s else None,
    )
