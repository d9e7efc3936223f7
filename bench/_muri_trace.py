"""The jobs of Muri's traces, the published figures, and where both lie."""

import csv
import gzip
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

NODES = 8
GPUS_PER_NODE = 8
TRACES = ("trace1", "trace1_pr", "trace2", "trace2_pr", "trace3", "trace3_pr")
PRIMED = "_pr"
SLOWER = 1.015
"""The published runs stretch every iteration by this, for their own machinery."""

START_S_OTHERWISE = 10
START_S = {
    1: {"vgg16": 7, "vgg19": 7, "resnet18": 4, "shufflenet_v2_x1_0": 4, "a2c": 38, "dqn": 5},
    2: {"vgg16": 7, "vgg19": 7, "resnet18": 5, "shufflenet_v2_x1_0": 4, "a2c": 39, "dqn": 5},
    4: {"vgg16": 8, "vgg19": 8, "resnet18": 5, "shufflenet_v2_x1_0": 5, "a2c": 39, "dqn": 6},
    8: {"vgg16": 9, "vgg19": 9, "resnet18": 7, "shufflenet_v2_x1_0": 5, "a2c": 46, "dqn": 6},
    16: {"vgg16": 9, "vgg19": 10, "resnet18": 7, "shufflenet_v2_x1_0": 7, "a2c": 46, "dqn": 8},
    32: {"vgg16": 10, "vgg19": 10, "resnet18": 7, "shufflenet_v2_x1_0": 8, "a2c": 46, "dqn": 8},
}
"""Seconds to start, by GPUs and model, as the authors measured them; what is not named takes 10."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceJob:
    """One row: seconds, and how an iteration divides between the stages that Muri interleaves."""

    number: int
    gpus: int
    submit_s: float
    iterations: float
    iteration_s: float
    model: str
    stages_s: tuple[float, ...]
    start_s: int

    @property
    def work_s(self) -> float:
        """How long it runs alone, undisturbed."""
        return self.iterations * self.iteration_s


class MissingTracesError(Exception):
    """The traces are not part of this project."""

    def __init__(self, wanted: Path | None) -> None:
        where = "MUSTER_TRACES is not set" if wanted is None else f"{wanted} is not there"
        super().__init__(
            f"{where}. Set MUSTER_TRACES (or TRACES=folder) to a folder that has the traces of "
            "Muri (SIGCOMM 2022) as muri/trace1.csv.gz ... muri/trace3.csv.gz, and the figures as "
            "muri/published_fig9_10.csv.gz. The authors publish them at github.com/Rivendile/Muri "
            "under simulator/trace-data and simulator/draw_fig9-10.py"
        )


def folder() -> Path:
    """Where the traces are."""
    named = os.environ.get("MUSTER_TRACES") or os.environ.get("TRACES")
    path = Path(named) / "muri" if named else None
    if path is None or not path.is_dir():
        raise MissingTracesError(path)
    return path


def jobs_of(trace: str, where: Path) -> list[TraceJob]:
    """The jobs in the order of their coming; in the primed forms all come at once."""
    name = trace.removesuffix(PRIMED)
    rows = _rows(where / f"{name}.csv.gz")
    found = [_job(number, row, at_once=trace.endswith(PRIMED)) for number, row in enumerate(rows)]
    return sorted(found, key=lambda job: job.submit_s)


def published(where: Path) -> dict[tuple[str, str, str], float]:
    """The authors' own figures in seconds, by policy, trace and metric (JCT, Makespan, 99JCT)."""
    rows = _rows(where / "published_fig9_10.csv.gz")
    return {(row["policy"], row["trace"], row["metric"]): float(row["value_s"]) for row in rows}


def _rows(path: Path) -> Iterator[dict[str, str]]:
    if not path.exists():
        raise MissingTracesError(path)
    with gzip.open(path, "rt", encoding="utf-8", newline="") as text:
        yield from csv.DictReader(text)


def _job(number: int, row: dict[str, str], *, at_once: bool) -> TraceJob:
    gpus, model = int(row["num_gpu"]), row["model_name"]
    return TraceJob(
        number=number,
        gpus=gpus,
        submit_s=0.0 if at_once else int(row["submit_time"]) / 1000,
        iterations=float(row["iterations"]),
        iteration_s=int(row["iteration_time"]) * SLOWER / 1000,
        model=model,
        stages_s=tuple(float(row[f"resource_time_{each}"]) / 1000 for each in range(3)),
        start_s=START_S[gpus].get(model, START_S_OTHERWISE),
    )
