"""Against what jobs of a real Slurm 22.05 found in their environment."""

from muster.launch.attempt import PlacedAttempt
from muster.launch.slurm_variables import of_attempt, of_tasks
from muster.model.cluster import Node
from muster.model.gpu import Device
from muster.model.job import ArrayPart, Job, JobSpec, TaskGroup
from muster.model.launch import Launch, Runs
from muster.model.placement import Allocation, DeviceShare, Placement
from muster.model.resources import Resources
from muster.model.value import (
    ClusterName,
    DeviceId,
    GpuModel,
    Instant,
    JobId,
    NodeId,
    PoolName,
    QueuePath,
    UserName,
    replace,
)

# Known only to the process that starts a task, or of use to Slurm's own daemons alone.
NOT_OURS = {"SLURM_TASK_PID", "SLURM_WORKING_CLUSTER", "SLURM_CONF"}
# Set where the user is looked up, and where the request is read.
ELSEWHERE = {"SLURM_JOB_UID", "SLURM_JOB_GID"}

GRES2 = """
GPU_DEVICE_ORDINAL=0,1 ROCR_VISIBLE_DEVICES=0,1 SLURMD_NODENAME=node1 SLURM_CLUSTER_NAME=lab
SLURM_CPUS_ON_NODE=4 SLURM_CPUS_PER_TASK=4 SLURM_GPUS_ON_NODE=2 SLURM_GTIDS=0 SLURM_JOBID=4
SLURM_JOB_ACCOUNT=science SLURM_JOB_CPUS_PER_NODE=4 SLURM_JOB_GPUS=0,1 SLURM_JOB_ID=4
SLURM_JOB_NAME=mytrain SLURM_JOB_NODELIST=node1 SLURM_JOB_NUM_NODES=1 SLURM_JOB_PARTITION=gpu
SLURM_JOB_QOS=normal SLURM_JOB_USER=alice SLURM_LOCALID=0 SLURM_MEM_PER_NODE=8192 SLURM_NNODES=1
SLURM_NODEID=0 SLURM_NODELIST=node1 SLURM_NODE_ALIASES=(null) SLURM_PRIO_PROCESS=0 SLURM_PROCID=0
SLURM_SUBMIT_DIR=/srv/lab/jobs SLURM_SUBMIT_HOST=vm SLURM_TASKS_PER_NODE=1 SLURM_TOPOLOGY_ADDR=node1
SLURM_TOPOLOGY_ADDR_PATTERN=node ZE_AFFINITY_MASK=0,1
"""
GANG = """
GPU_DEVICE_ORDINAL=0,1,2,3,4,5,6,7 ROCR_VISIBLE_DEVICES=0,1,2,3,4,5,6,7 SLURMD_NODENAME=node2
SLURM_CLUSTER_NAME=lab SLURM_CPUS_ON_NODE=8 SLURM_CPUS_PER_TASK=8 SLURM_GPUS_ON_NODE=8
SLURM_GTIDS=0 SLURM_JOBID=7 SLURM_JOB_ACCOUNT=science SLURM_JOB_CPUS_PER_NODE=8(x2)
SLURM_JOB_GPUS=0,1,2,3,4,5,6,7 SLURM_JOB_ID=7 SLURM_JOB_NAME=gang SLURM_JOB_NODELIST=node[2-3]
SLURM_JOB_NUM_NODES=2 SLURM_JOB_PARTITION=gpu SLURM_JOB_QOS=normal SLURM_JOB_USER=alice
SLURM_LOCALID=0 SLURM_NNODES=2 SLURM_NODEID=0 SLURM_NODELIST=node[2-3] SLURM_NODE_ALIASES=(null)
SLURM_NPROCS=2 SLURM_NTASKS=2 SLURM_NTASKS_PER_NODE=1 SLURM_PRIO_PROCESS=0 SLURM_PROCID=0
SLURM_SUBMIT_DIR=/srv/lab/jobs SLURM_SUBMIT_HOST=vm SLURM_TASKS_PER_NODE=1(x2)
SLURM_TOPOLOGY_ADDR=node2 SLURM_TOPOLOGY_ADDR_PATTERN=node ZE_AFFINITY_MASK=0,1,2,3,4,5,6,7
"""
SUBMITTED = {"SLURM_SUBMIT_DIR": "/srv/lab/jobs", "SLURM_SUBMIT_HOST": "vm"}


def node(name: str) -> Node:
    return Node(
        id=NodeId(name),
        cluster=ClusterName("lab"),
        pool=PoolName("gpu"),
        cpu_milli=64_000,
        memory_mib=512_000,
        devices=tuple(
            Device(
                id=DeviceId(f"{name}-{each}"),
                index=each,
                model=GpuModel("A100-40GB"),
                memory_mib=40_960,
            )
            for each in range(8)
        ),
    )


def placed(index: int, name: str, cpus: int, gpus: range) -> Placement:
    return Placement(
        group="main",
        index=index,
        node=NodeId(name),
        pool=PoolName("gpu"),
        amount=Resources(cpu_milli=cpus * 1_000),
        devices=tuple(DeviceShare(device=DeviceId(f"{name}-{each}")) for each in gpus),
    )


def run_of(
    number: int, name: str, placements: tuple[Placement, ...], launch: Launch
) -> PlacedAttempt:
    spec = JobSpec(
        name=name, user=UserName("alice"), queue=QueuePath("science"), groups=(TaskGroup(),)
    )
    names = {placement.node for placement in placements}
    return PlacedAttempt(
        job=Job(id=JobId(number), spec=spec, submitted_at=Instant(0), attempt=1),
        allocation=Allocation(
            job=JobId(number),
            attempt=1,
            cluster=ClusterName("lab"),
            placements=placements,
            placed_at=Instant(0),
        ),
        launch=launch,
        nodes={each: node(each) for each in names},
    )


def batch(**env: str) -> Launch:
    return Launch(script="#!/bin/sh\n", runs=Runs.FIRST_TASK, env=SUBMITTED | env)


def seen(run: PlacedAttempt, task: int = 0) -> dict[str, str]:
    return {**run.launch.env, **of_attempt(run), **of_tasks(run)[task]}


def recorded(text: str) -> dict[str, str]:
    return dict(word.split("=", 1) for word in text.split())


def test_a_batch_job_with_two_gpus_finds_what_slurms_does() -> None:
    launch = batch(SLURM_CPUS_PER_TASK="4", SLURM_MEM_PER_NODE="8192")

    env = seen(run_of(4, "mytrain", (placed(0, "node1", 4, range(2)),), launch))

    assert env == recorded(GRES2)
    assert not env.keys() & (NOT_OURS | ELSEWHERE)


def test_a_gang_on_two_nodes_finds_what_slurms_does() -> None:
    launch = batch(
        SLURM_CPUS_PER_TASK="8", SLURM_NPROCS="2", SLURM_NTASKS="2", SLURM_NTASKS_PER_NODE="1"
    )
    placements = (placed(0, "node2", 8, range(8)), placed(1, "node3", 8, range(8)))

    assert seen(run_of(7, "gang", placements, launch)) == recorded(GANG)


def test_a_job_without_gpus_hears_nothing_of_them() -> None:
    env = seen(run_of(16, "cpuonly", (placed(0, "node1", 1, range(0)),), batch()))

    assert not [name for name in env if "GPU" in name or name.startswith(("ROCR", "ZE_"))]


def test_a_part_of_an_array_knows_its_index_and_a_second_attempt_its_number() -> None:
    run = run_of(11, "arr", (placed(0, "node1", 1, range(4, 5)),), batch())
    part = ArrayPart(array=JobId(6), index=10)
    job = replace(run.job, spec=replace(run.job.spec, array=part))
    env = seen(replace(run, job=job, restarts=1))

    assert env["SLURM_ARRAY_JOB_ID"] == "6"
    assert env["SLURM_ARRAY_TASK_ID"] == "10"
    assert env["SLURM_RESTART_COUNT"] == "1"
    assert env["SLURM_JOB_GPUS"] == "4"


def test_each_task_has_ranks_and_its_own_gpu_of_the_jobs() -> None:
    placements = (
        placed(0, "node1", 1, range(1)),
        placed(1, "node1", 1, range(1, 2)),
        placed(2, "node2", 1, range(1)),
    )
    run = run_of(8, "ranks", placements, Launch(argv=("x",), workdir="/w"))

    last, middle = seen(run, 2), seen(run, 1)

    assert [last[f"SLURM_{name}"] for name in ("PROCID", "LOCALID", "NODEID")] == ["2", "0", "1"]
    assert (middle["SLURM_JOB_GPUS"], middle["GPU_DEVICE_ORDINAL"]) == ("0,1", "1")
    assert (middle["SLURM_TASKS_PER_NODE"], middle["SLURM_NTASKS"]) == ("2,1", "3")
    assert middle["SLURM_SUBMIT_DIR"] == "/w"


def test_tasks_that_the_script_will_start_are_spread_over_the_nodes() -> None:
    launch = batch(SLURM_NTASKS="5")
    placements = (placed(0, "node1", 3, range(0)), placed(1, "node2", 3, range(0)))

    assert seen(run_of(9, "x", placements, launch))["SLURM_TASKS_PER_NODE"] == "3,2"
