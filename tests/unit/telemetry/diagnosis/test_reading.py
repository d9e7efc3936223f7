"""What is known of a job's part of a GPU that others share."""

import math

from muster.model.holding import Holding
from muster.model.samples import Activity, DeviceSample, ProcessSample
from muster.model.value import (
    ClassName,
    ClusterName,
    DeviceId,
    Instant,
    JobId,
    NodeId,
    PoolName,
    QueuePath,
    UserName,
)
from muster.telemetry.diagnosis.reading import Surroundings, signals_of
from muster.telemetry.diagnosis.signals import Signals

GIB = 2**30
OURS = Holding(
    job=JobId(7),
    attempt=1,
    user=UserName("ada"),
    queue=QueuePath("a"),
    job_class=ClassName("normal"),
    cluster=ClusterName("here"),
    pool=PoolName("h100"),
    node=NodeId("n1"),
    device=DeviceId("GPU-1"),
    gpu_milli=500,
    since=Instant(0),
)


def process(job: int, sm: int | None = None, memory: int | None = 10) -> ProcessSample:
    size = None if memory is None else memory * GIB
    return ProcessSample(pid=job, job=JobId(job), attempt=1, sm_milli=sm, memory_bytes=size)


def seen(*processes: ProcessSample, busy: int = 400) -> Signals:
    """Of a job that has half of a GPU with 80 GiB."""
    sample = DeviceSample(
        device=OURS.device,
        node=OURS.node,
        at=Instant(0),
        index=0,
        busy_milli=busy,
        memory_used_bytes=30 * GIB,
        memory_free_bytes=50 * GIB,
        memory_reserved_bytes=0,
        power_mw=300_000,
        power_limit_mw=600_000,
        activity=Activity(sm_milli=busy // 2),
        processes=processes,
    )
    return signals_of(sample, OURS, Surroundings())


def test_what_each_computed_splits_what_the_gpu_did() -> None:
    signals = seen(process(7, 300), process(8, 100))

    assert (signals.busy, signals.sm, signals.memory) == (600, 300, 250)


def test_where_the_driver_tells_of_memory_alone_that_is_known() -> None:
    """As under MPS."""
    signals = seen(process(7), process(8))

    assert signals.memory == 250
    assert math.isnan(signals.busy)
    assert math.isnan(signals.sm)
    assert math.isnan(signals.power)


def test_who_is_alone_on_a_shared_gpu_has_all_that_it_did() -> None:
    signals = seen(process(7))

    assert (signals.busy, signals.sm, signals.memory, signals.power) == (800, 400, 250, 500)


def test_nobody_did_anything_on_a_gpu_that_stood_still() -> None:
    signals = seen(process(7), process(8), busy=0)

    assert (signals.busy, signals.memory) == (0, 250)


def test_a_job_without_a_process_did_nothing() -> None:
    signals = seen(process(8))

    assert (signals.busy, signals.memory, signals.processes) == (0, 0, 0)


def test_memory_that_nobody_tells_of_is_not_known() -> None:
    assert math.isnan(seen(process(7, 300, memory=None)).memory)
