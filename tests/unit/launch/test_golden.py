"""Whole environments: each file in tests/golden/launch has a placed attempt, and what it finds."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml

from muster.launch.attempt import DeviceAccess, PlacedAttempt, in_rank_order
from muster.launch.prepare import PreparedAttempt, prepare
from muster.launch.steps.allocator import StepAllocator, StepRequest
from muster.launch.steps.variables import StepLaunch, of_task
from muster.model.cluster import Node
from muster.model.gpu import Device
from muster.model.job import ArrayPart, Job, JobSpec, TaskGroup
from muster.model.launch import Launch
from muster.model.placement import Allocation, DeviceShare, Placement
from muster.model.resources import Resources
from muster.model.value import (
    ClusterName,
    DeviceId,
    Duration,
    GpuModel,
    Instant,
    JobId,
    NodeId,
    PoolName,
    QueuePath,
    UserName,
    Value,
)

GOLDEN = sorted((Path(__file__).parents[2] / "golden" / "launch").glob("*.txt"))
OUTPUT = "\n---\n"
CLUSTER, POOL = ClusterName("lab"), PoolName("gpu")


class Task(Value):
    """One placement. gpus: by their numbers on the node. mps: its devices need variables."""

    node: str
    group: str = "main"
    cpus: int = 1
    memory_mib: int = 0
    gpus: tuple[int, ...] = ()
    mps: bool = False


class Case(Value):
    """What stands at the top of a golden file."""

    tasks: tuple[Task, ...]
    launch: Launch = Launch()
    array: ArrayPart | None = None
    time_limit: Duration | None = None
    reservation: str | None = None
    checkpoint: str | None = None
    restarts: int = 0
    step: tuple[dict[str, Any], ...] = ()


@pytest.mark.parametrize("path", GOLDEN, ids=lambda path: path.stem)
def test_a_placed_attempt_finds_what_the_golden_file_says(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    case, _, found = text.partition(OUTPUT)

    assert rendered(msgspec.convert(yaml.safe_load(case), Case)) == found


def rendered(case: Case) -> str:
    """Everything that an engine is given, one value on a line."""
    attempt = in_rank_order(attempt_of(case))
    prepared = prepare(attempt, list(map(access_of, attempt.allocation.placements)), master="n1")
    lines = ["# attempt", *variables(prepared.env)]
    for rank, task in enumerate(prepared.tasks):
        lines += [f"# task {rank} on {task.node}", *variables(task.env)]
        lines += [f"< {task.stdin}", f"> {task.stdout}", f"2> {task.stderr}"]
        lines += [f"GPUs {','.join(task.gpus) or 'none'}"]
    if prepared.host_file is not None:
        lines += [f"# hosts in {', '.join(prepared.host_file.variables)}"]
        lines += prepared.host_file.text.splitlines()
    lines += ["# shares", *map(str, prepared.shares)]
    limits = f"{prepared.memory_mib} MiB, {prepared.cpu_milli} CPU milli"
    lines += [f"# {limits}, port {prepared.master_port}, checkpoint {prepared.checkpoint}"]
    return "\n".join([*lines, *step_lines(case, prepared)]) + "\n"


def step_lines(case: Case, prepared: PreparedAttempt) -> Iterator[str]:
    requests = tuple(msgspec.convert(each, StepRequest) for each in case.step)
    parts = StepAllocator(prepared.shares).take(0, requests) if requests else ()
    assert parts is not None
    step = StepLaunch(
        job=prepared.placed.job.id,
        shares=prepared.shares,
        env=prepared.env,
        number=0,
        requests=requests,
        parts=parts,
        envs=({"HOME": "/home/ann", "RANK": "9"},) * len(requests),
        umask=0o022,
        fixed={"MUSTER_ATTEMPT_KEY": "mark"},
        address="n1",
    )
    for part in parts:
        for rank in part.ranks:
            yield f"# step, task {rank} on {prepared.shares[part.node].node}"
            yield from variables(of_task(step, part, rank))


def variables(env: Mapping[str, str]) -> list[str]:
    return [f"{name}={env[name]}" for name in sorted(env)]


def attempt_of(case: Case) -> PlacedAttempt:
    groups = tuple(dict.fromkeys(task.group for task in case.tasks))
    spec = JobSpec(
        name="fit",
        user=UserName("ann"),
        queue=QueuePath("lab/vision"),
        groups=tuple(TaskGroup(name=name) for name in groups),
        array=case.array,
        time_limit=case.time_limit,
        reservation=case.reservation,
    )
    attempt = case.restarts + 1
    return PlacedAttempt(
        job=Job(id=JobId(7), spec=spec, submitted_at=Instant(0), attempt=attempt),
        allocation=Allocation(
            job=JobId(7),
            attempt=attempt,
            cluster=CLUSTER,
            placements=tuple(placement_of(task, at) for at, task in enumerate(case.tasks)),
            placed_at=Instant(0),
        ),
        launch=case.launch,
        nodes={NodeId(task.node): node_of(task.node) for task in case.tasks},
        checkpoint=case.checkpoint,
        restarts=case.restarts,
    )


def placement_of(task: Task, index: int) -> Placement:
    prefix = "mps" if task.mps else task.node
    return Placement(
        group=task.group,
        index=index,
        node=NodeId(task.node),
        pool=POOL,
        amount=Resources(
            cpu_milli=1_000 * task.cpus,
            memory_mib=task.memory_mib,
            gpu_milli=1_000 * len(task.gpus),
        ),
        devices=tuple(DeviceShare(device=DeviceId(f"{prefix}-{at}")) for at in task.gpus),
    )


def access_of(placement: Placement) -> DeviceAccess:
    names = tuple(f"GPU-{share.device}" for share in placement.devices)
    has_mps = any("mps" in name for name in names)
    return DeviceAccess(devices=names, env={"CUDA_MPS_PIPE_DIRECTORY": "/mps"} if has_mps else {})


def node_of(name: str) -> Node:
    return Node(
        id=NodeId(name),
        cluster=CLUSTER,
        pool=POOL,
        cpu_milli=64_000,
        memory_mib=512_000,
        devices=tuple(
            Device(
                id=DeviceId(f"{name}-{index}"),
                index=index,
                model=GpuModel("A100-40GB"),
                memory_mib=40_960,
            )
            for index in range(8)
        ),
    )
