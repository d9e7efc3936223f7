"""Reports to try rules on."""

from typing import Any

from muster.model.efficiency import DeviceUse, JobReport, NodeUse
from muster.model.finding import Cause, Confidence, Evidence, Finding
from muster.model.gpu import GpuAsk
from muster.model.job import Ask, JobSpec, TaskGroup
from muster.model.value import (
    MINUTE,
    ClusterName,
    DeviceId,
    Duration,
    GpuModel,
    Instant,
    JobId,
    NodeId,
    QueuePath,
    UserName,
    replace,
)
from muster.telemetry.diagnosis.enough import Asked
from muster.telemetry.diagnosis.flags import Language

GIB = 2**30
H100 = GpuModel("H100-80GB")


def device(number: int = 0, *, node: str = "n1", peak_gib: int = 40, **means: int) -> DeviceUse:
    return DeviceUse(
        node=NodeId(node),
        device=DeviceId(f"g{number}"),
        gpu_milli=1_000,
        held_ms=Duration(60 * MINUTE),
        means={"busy": 900, "sm": 800, **means},
        memory_bytes=80 * GIB,
        memory_peak_bytes=peak_gib * GIB,
    )


def report(*devices: DeviceUse, **more: Any) -> JobReport:
    made = JobReport(
        job=JobId(17),
        attempt=1,
        user=UserName("ada"),
        queue=QueuePath("a"),
        cluster=ClusterName("c"),
        since=Instant(0),
        until=Instant(60 * MINUTE),
        is_over=True,
        devices=devices or (device(),),
        nodes=(
            NodeUse(
                node=NodeId("n1"),
                cpu_granted_milli=16_000,
                cpu_used_ms=Duration(120 * MINUTE),
                memory_peak_bytes=10 * GIB,
            ),
        ),
    )
    return replace(made, **more)


def finding(cause: Cause, *devices: int, **more: Any) -> Finding:
    made = Finding(
        job=JobId(17),
        attempt=1,
        user=UserName("ada"),
        queue=QueuePath("a"),
        cause=cause,
        confidence=Confidence.SURE,
        since=Instant(0),
        until=Instant(60 * MINUTE),
        held_ms=Duration(60 * MINUTE),
        wasted_micros=1,
        devices=tuple(DeviceId(f"g{number}") for number in devices or (0,)),
        evidence=(Evidence(signal="busy", milli=250),),
    )
    return replace(made, **more)


def asked(language: Language = Language.SLURM, *, gpus: int = 1, **more: Any) -> Asked:
    group = TaskGroup(
        name="main",
        count=1,
        each=Ask(cpu_milli=16_000, memory_mib=65_536, gpus=GpuAsk(count=gpus) if gpus else None),
    )
    spec = JobSpec(
        name="train",
        user=UserName("ada"),
        queue=QueuePath("a"),
        groups=(group,),
        time_limit=Duration(600 * MINUTE),
    )
    return Asked(spec=spec, language=language, **more)
