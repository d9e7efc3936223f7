"""Real processes that starve a GPU in known ways: what is measured of them names the cause.

The GPU is pretended, for there may be none; the processes, and all that is measured of them, are
real. Each look stands for fifteen seconds, so that a test does not take a quarter of an hour.
"""

import threading
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from local.here import NODE, Here, Wanted, now
from muster.model.efficiency import JobReport
from muster.model.finding import Cause
from muster.model.holding import Holding
from muster.model.samples import Activity, DeviceSample, JobSample, ProcessSample, Samples
from muster.model.value import (
    SECOND,
    ClassName,
    ClusterName,
    DeviceId,
    Instant,
    JobId,
    PoolName,
    QueuePath,
    UserName,
    replace,
)
from muster.telemetry.diagnosis.gathering import Gathering, Moment
from muster.telemetry.diagnosis.reporting import Account

JOB = JobId(1)
HOLDING = Holding(
    job=JOB,
    attempt=1,
    user=UserName("ada"),
    queue=QueuePath("a"),
    job_class=ClassName("normal"),
    cluster=ClusterName("here"),
    pool=PoolName("all"),
    node=NODE,
    device=DeviceId("g0"),
    gpu_milli=1_000,
    since=Instant(0),
)

LOADER = "while True: sum(i * i for i in range(10_000))"
"""Decodes its input as fast as its CPUs let it."""

THREAD = LOADER
"""The same, with CPUs beside it that nobody uses."""

DISK = """
import os
for number in range(3):
    if os.fork() == 0:
        break
with open(f"data{number}", "wb", buffering=0) as file:
    while True:
        file.write(b"x" * 4096)
        os.fsync(file.fileno())
"""
"""Waits for a disk, again and again."""

ASLEEP = "import time\nwhile True: time.sleep(0.05)"
"""Waits for somebody who asks for something."""

STUCK = "import os\nread, write = os.pipe()\nos.read(read, 1)"
"""Waits for a rank that has left it, while its kernel turns around on the GPU."""

WHOLE_THREAD_MILLI = 900

STARVED: Mapping[str, Any] = {
    "busy_milli": 300,
    "activity": Activity(sm_milli=250, tensor_milli=150, dram_milli=150, occupancy_milli=300),
}
SPINNING: Mapping[str, Any] = {
    "busy_milli": 1_000,
    "power_mw": 180_000,
    "activity": Activity(sm_milli=10, tensor_milli=0, dram_milli=0, occupancy_milli=10),
}


@pytest.mark.parametrize(
    ("program", "gpu", "granted_milli", "cause"),
    [
        pytest.param(LOADER, STARVED, 100, Cause.INPUT_CPU, id="CPU-bound loader"),
        pytest.param(DISK, STARVED, 4_000, Cause.INPUT_IO, id="slow disk"),
        pytest.param(THREAD, STARVED, 8_000, Cause.HOST, id="one thread"),
        pytest.param(ASLEEP, STARVED, 4_000, Cause.WAITING, id="asleep"),
        pytest.param(STUCK, SPINNING, 4_000, Cause.HANG, id="stuck"),
    ],
)
def test_what_a_real_job_waits_for_is_named(
    here: Here, program: str, gpu: Mapping[str, Any], granted_milli: int, cause: Cause
) -> None:
    here.python(program, Wanted(cpu_milli=granted_milli))
    looks = _looks(here)
    gathering, account = Gathering(), Account(HOLDING, 3_600_000)

    def is_named() -> bool:
        """Of the last quarter of an hour, as often as it takes to see it clearly."""
        nonlocal gathering, account
        gathering, account = Gathering(), Account(HOLDING, 3_600_000)
        for number in range(60):
            sample = next(looks)
            threads.append(sample.busiest_thread_milli or 0)
            at = Instant((number + 1) * 15 * SECOND)
            for minute in gathering.add(_moment(sample, gpu, at)):
                account.add(minute)
        return _report(account).headline is cause

    threads: list[int] = []
    try:
        here.until(is_named)
    except AssertionError:
        if cause is Cause.HOST and max(threads) < WHOLE_THREAD_MILLI:
            pytest.skip("this machine has no whole CPU to spare for one thread")
        raise

    report = _report(account)
    assert sum(each.gpu_ms for each in report.causes) == report.gpu_ms
    assert report.wasted_micros > 0


def _looks(here: Here) -> Iterator[JobSample]:
    """What is measured of the job, look after look; the first one has nothing to compare with."""
    while True:
        found = here.backend.samples(now()).jobs
        threading.Event().wait(0.05)
        yield from (each for each in found if each.job == JOB and each.cpu_used_milli is not None)


def _moment(sample: JobSample, gpu: Mapping[str, Any], at: Instant) -> Moment:
    measured = DeviceSample(
        device=HOLDING.device,
        node=NODE,
        at=at,
        index=0,
        product="NVIDIA H100 80GB HBM3",
        memory_used_bytes=2**35,
        memory_free_bytes=2**35,
        memory_reserved_bytes=0,
        power_limit_mw=700_000,
        sm_clock_mhz=1_980,
        sm_clock_most_mhz=1_980,
        processes=(ProcessSample(pid=1, job=JOB, attempt=1),),
    )
    device = replace(measured, **{"power_mw": 300_000, **gpu})
    jobs = (replace(sample, at=at),)
    return Moment(
        at=at, holdings=(HOLDING,), samples=(Samples(at=at, devices=(device,), jobs=jobs),)
    )


def _report(account: Account) -> JobReport:
    return account.report(Instant(900 * SECOND), is_over=False)
