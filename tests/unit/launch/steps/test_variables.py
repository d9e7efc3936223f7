from muster.launch.attempt import DeviceAccess, PlacedAttempt
from muster.launch.prepare import prepare
from muster.launch.steps.allocator import StepRequest, StepShare
from muster.launch.steps.variables import StepLaunch, of_task
from muster.model.job import Job, JobSpec, JobState, TaskGroup
from muster.model.launch import Launch, Runs
from muster.model.placement import Allocation, DeviceShare, Placement
from muster.model.resources import Resources
from muster.model.value import (
    ClusterName,
    DeviceId,
    Instant,
    JobId,
    NodeId,
    PoolName,
    QueuePath,
    UserName,
)

NODES = ("n1", "n2")


def placement(node: str) -> Placement:
    return Placement(
        group="main",
        index=NODES.index(node),
        node=NodeId(node),
        pool=PoolName("all"),
        amount=Resources(cpu_milli=4_000, gpu_milli=2_000),
        devices=(
            DeviceShare(device=DeviceId(f"{node}-a")),
            DeviceShare(device=DeviceId(f"{node}-b")),
        ),
    )


def step_of(env: dict[str, str], *, per_task: int | None = None) -> StepLaunch:
    spec = JobSpec(
        name="train", user=UserName("ada"), queue=QueuePath("lab"), groups=(TaskGroup(count=2),)
    )
    attempt = PlacedAttempt(
        job=Job(id=JobId(7), spec=spec, submitted_at=Instant(0), state=JobState.STARTING),
        allocation=Allocation(
            job=JobId(7),
            attempt=1,
            cluster=ClusterName("here"),
            placements=tuple(map(placement, NODES)),
            placed_at=Instant(0),
        ),
        launch=Launch(runs=Runs.STEPS_ONLY, env={"SECRET": "of the script"}),
        nodes={},
    )
    access = tuple(DeviceAccess(devices=(f"{node}-a", f"{node}-b")) for node in NODES)
    prepared = prepare(attempt, access, master="127.0.0.1")
    return StepLaunch(
        job=attempt.job.id,
        shares=prepared.shares,
        env=prepared.env,
        fixed={"MUSTER_ATTEMPT_KEY": "7.1.mark"},
        address="127.0.0.1",
        number=3,
        requests=(
            StepRequest(
                tasks=3,
                gpus_per_task=per_task,
                gpu_bind=f"per_task:{per_task}" if per_task else "",
            ),
        ),
        parts=(
            StepShare(node=0, ranks=(0, 1), cpus=4, memory_mib=0, gpus=(0, 1)),
            StepShare(node=1, ranks=(2,), cpus=4, memory_mib=0, gpus=(0,)),
        ),
        envs=(env,),
        umask=0o027,
        label=True,
    )


def test_a_task_knows_its_step_its_node_and_its_rank() -> None:
    step = step_of({})

    first, last = of_task(step, step.parts[0], 1), of_task(step, step.parts[1], 2)

    assert (first["SLURM_STEP_ID"], first["SLURM_STEPID"]) == ("3", "3")
    assert first["SLURM_STEP_NODELIST"] == "n[1-2]"
    assert (first["SLURM_STEP_TASKS_PER_NODE"], first["SLURM_NTASKS"]) == ("2,1", "3")
    assert (first["SLURM_PROCID"], first["SLURM_LOCALID"], first["SLURM_NODEID"]) == ("1", "1", "0")
    assert (last["SLURM_PROCID"], last["SLURM_LOCALID"], last["SLURM_NODEID"]) == ("2", "0", "1")
    assert (last["SLURMD_NODENAME"], last["SLURM_GTIDS"]) == ("n2", "2")
    assert (first["SLURM_UMASK"], first["SLURM_LABELIO"]) == ("0027", "1")
    assert first["SLURM_DISTRIBUTION"] == "block"


def test_tasks_see_the_gpus_of_the_step_or_their_own() -> None:
    shared, own = step_of({}), step_of({}, per_task=1)

    assert of_task(shared, shared.parts[0], 1)["CUDA_VISIBLE_DEVICES"] == "n1-a,n1-b"
    assert of_task(own, own.parts[0], 1)["CUDA_VISIBLE_DEVICES"] == "n1-b"
    assert of_task(own, own.parts[0], 1)["SLURM_STEP_GPUS"] == "1"
    assert of_task(own, own.parts[0], 1)["SLURMD_TRES_BIND"] == "gpu:per_task:1"
    assert of_task(own, own.parts[1], 2)["CUDA_VISIBLE_DEVICES"] == "n2-a"


def test_from_outside_of_the_job_its_facts_are_added_and_its_secrets_are_not() -> None:
    step = step_of({"HOME": "/home/ada", "SLURM_JOB_ID": "5", "SLURM_JOB_NAME": "other"})

    found = of_task(step, step.parts[0], 0)

    assert (found["SLURM_JOB_ID"], found["SLURM_JOB_NAME"]) == ("7", "train")
    assert (found["HOME"], found["MUSTER_ATTEMPT_KEY"]) == ("/home/ada", "7.1.mark")
    assert "SECRET" not in found


def test_what_made_one_rank_of_the_caller_is_not_passed_on() -> None:
    step = step_of({"SLURM_JOB_ID": "7", "RANK": "5", "PMI_RANK": "5", "OMPI_COMM_WORLD_RANK": "5"})

    found = of_task(step, step.parts[1], 2)

    assert (found["RANK"], found["WORLD_SIZE"]) == ("2", "3")
    assert not {"PMI_RANK", "OMPI_COMM_WORLD_RANK"} & found.keys()
