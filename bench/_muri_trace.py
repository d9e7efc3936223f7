"""The jobs of Muri's traces, the published figures, and where both lie."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from muster.simulator.traces import files
from muster.simulator.traces.muri import Training, trainings

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


def folder() -> Path:
    """Where the traces are; the product says who publishes them if they are not there."""
    return files.folder() / "muri"


def jobs_of(trace: str, where: Path) -> list[TraceJob]:
    """The jobs in the order of their coming; in the primed forms all come at once."""
    name = trace.removesuffix(PRIMED)
    found = [
        _job(number, training, at_once=trace.endswith(PRIMED))
        for number, training in enumerate(trainings(_rows(where / f"{name}.csv.gz")))
    ]
    return sorted(found, key=lambda job: job.submit_s)


def published(where: Path) -> dict[tuple[str, str, str], float]:
    """The authors' own figures in seconds, by policy, trace and metric (JCT, Makespan, 99JCT)."""
    rows = _rows(where / "published_fig9_10.csv.gz")
    return {(row["policy"], row["trace"], row["metric"]): float(row["value_s"]) for row in rows}


def _rows(path: Path) -> Iterator[files.Row]:
    return files.rows(files.lines(path))


def _job(number: int, training: Training, *, at_once: bool) -> TraceJob:
    traced = training.job
    return TraceJob(
        number=number,
        gpus=traced.gpus,
        submit_s=0.0 if at_once else traced.submitted_at / 1000,
        iterations=training.iterations,
        iteration_s=training.iteration_ms * SLOWER / 1000,
        model=traced.user,
        stages_s=tuple(each / 1000 for each in training.stages_ms),
        start_s=START_S[traced.gpus].get(traced.user, START_S_OTHERWISE),
    )
