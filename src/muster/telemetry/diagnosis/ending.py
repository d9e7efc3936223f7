"""Why an attempt ended badly, from how it ended and what it wrote and measured (pure)."""

import re
from collections.abc import Sequence
from enum import StrEnum

from muster.model.efficiency import JobReport
from muster.model.event import JobStruck
from muster.model.history import Attempt
from muster.model.job import (
    Cancelled,
    DeadlinePassed,
    Exited,
    JobSpec,
    LaunchFailed,
    NodeFailed,
    OutOfMemory,
    Preempted,
    Requeued,
    Signaled,
    TimedOut,
)
from muster.model.value import MINUTE, Duration, Value
from muster.model.words import NO_LABELS, Labels, jobs_listed
from muster.model.xid import xid_of

_MIB = 1_048_576
_MS_PER_HOUR = 3_600_000

_SHORTLY = Duration(MINUTE)
"""An error of a GPU so long before the end is taken to be why."""


class Ending(StrEnum):
    """What ended it."""

    HARDWARE = "hardware"
    HOST_MEMORY = "host_memory"
    GPU_MEMORY = "gpu_memory"
    TIME_LIMIT = "time_limit"
    LOST_WORK = "lost_work"
    NO_GPU = "no_gpu"
    FAILED = "failed"


class Ended(Value):
    """What ended it, in words; line: what it wrote that says so; advice: what no flag can say."""

    what: Ending
    text: str
    line: str = ""
    advice: str = ""


class Past(Value):
    """What is known of one attempt that is over. labels: of the jobs that its end names."""

    attempt: Attempt
    spec: JobSpec
    report: JobReport | None = None
    struck: tuple[JobStruck, ...] = ()
    log: tuple[str, ...] = ()
    labels: Labels = NO_LABELS


def ending_of(past: Past) -> Ended | None:
    """Why it ended, if it did not end well; the first that holds of the machine, memory, time."""
    why = past.attempt.why
    broken = _hardware(past)
    if broken is not None:
        return broken
    match why:
        case OutOfMemory(node=node):
            return Ended(what=Ending.HOST_MEMORY, text=_out_of_memory(past, node))
        case TimedOut(limit=limit):
            minutes = limit // MINUTE
            text = f"it came to its time limit of {minutes // 60}:{minutes % 60:02d}:00"
            return Ended(what=Ending.TIME_LIMIT, text=text)
        case Preempted(by=by):
            return Ended(
                what=Ending.LOST_WORK,
                text=f"it made room for {jobs_listed((by,), past.labels)}, and lost {_lost(past)}",
                advice=_ADVICE_SAVE if past.attempt.lost_gpu_ms else "",
            )
        case Exited(code=code) if code:
            return _failed(past, f"it exited with {code}")
        case Signaled(signal=signal):
            return _failed(past, f"signal {signal} ended it")
        case LaunchFailed(text=text):
            return Ended(what=Ending.FAILED, text=f"it could not be started: {text}")
        case Exited() | NodeFailed() | Cancelled() | Requeued() | DeadlinePassed() | None:
            return None


def no_gpu_line(log: Sequence[str]) -> str:
    """What a program wrote that found no GPU; empty if it wrote nothing of the kind."""
    return _last(log, _NO_GPU)


def _hardware(past: Past) -> Ended | None:
    end = past.attempt.ended_at
    for each in reversed(past.struck):
        breaks = xid_of(each.xid).verdict.breaks
        if breaks and end - each.at <= _SHORTLY and _is_bad(past.attempt):
            told = f"Xid {each.xid}, {xid_of(each.xid).text}"
            return Ended(
                what=Ending.HARDWARE,
                text=f"{each.device} of {each.node} failed: {told}",
                advice="nothing is wrong with the job: the GPU is for its operator to see to",
            )
    if isinstance(past.attempt.why, NodeFailed):
        return Ended(
            what=Ending.HARDWARE,
            text=f"node {past.attempt.why.node} was lost, and {_lost(past)} with it",
            advice=_ADVICE_SAVE if past.attempt.lost_gpu_ms else "",
        )
    return None


def _is_bad(attempt: Attempt) -> bool:
    return not (isinstance(attempt.why, Exited) and attempt.why.code == 0)


def _failed(past: Past, text: str) -> Ended:
    """What it wrote tells more than its exit code."""
    line = _last(past.log, _GPU_MEMORY)
    if line:
        return Ended(what=Ending.GPU_MEMORY, text=f"{text}: the GPU's memory was full", line=line)
    line = no_gpu_line(past.log)
    has_none = not any(group.each.gpus for group in past.spec.groups)
    if line and has_none:
        return Ended(what=Ending.NO_GPU, text=f"{text}: it asked for no GPU", line=line)
    if line:
        return Ended(
            what=Ending.FAILED,
            text=f"{text}: it did not see its GPU",
            line=line,
            advice="use a build for CUDA, and in a container an image and a runtime that pass"
            " GPUs on",
        )
    line = _last(past.log, _SPEAKS)
    return Ended(what=Ending.FAILED, text=text if line else f"{text} and wrote nothing", line=line)


def _out_of_memory(past: Past, node: str) -> str:
    nodes = () if past.report is None else past.report.nodes
    peak = max((each.memory_peak_bytes or 0 for each in nodes), default=0) // _MIB
    limit = max((group.each.memory_mib for group in past.spec.groups), default=0)
    used = f"; it used {peak} MiB" if peak else ""
    allowed = f"; it asked for {limit} MiB" if limit else ""
    return f"it needed more memory on {node} than it had{used}{allowed}"


def _lost(past: Past) -> str:
    hours = past.attempt.lost_gpu_ms / _MS_PER_HOUR
    return f"{hours:.2f} GPU hours of work"


_ADVICE_SAVE = "write checkpoints more often: less has to be done again"

_GPU_MEMORY = re.compile(
    r"CUDA out of memory|CUDA_ERROR_OUT_OF_MEMORY|cudaErrorMemoryAllocation"
    r"|OutOfMemoryError|RESOURCE_EXHAUSTED: Out of memory|CUBLAS_STATUS_ALLOC_FAILED"
    r"|hipErrorOutOfMemory",
)
_NO_GPU = re.compile(
    r"(?i)no CUDA-capable device|cuda[^\n]{0,40} not available|CUDA driver version is insufficient"
    r"|Found no NVIDIA driver|no NVIDIA GPU|libcuda\.so|CUDA_ERROR_NO_DEVICE"
    r"|could not select device driver|nvidia-container-cli|not compiled with CUDA enabled"
)
_SPEAKS = re.compile(r"\S")


def _last(log: Sequence[str], pattern: re.Pattern[str]) -> str:
    return next((line.strip() for line in reversed(log) if pattern.search(line)), "")
