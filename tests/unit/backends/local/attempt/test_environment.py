from muster.backends.base import Run
from muster.backends.local.attempt.environment import (
    DeviceAccess,
    master_port,
    of_attempt,
    of_tasks,
)
from muster.backends.local.attempt.translate import Site, in_rank_order, launch_file
from muster.model.job import ArrayPart, Job, JobSpec, TaskGroup
from muster.model.launch import Checkpointing, Launch, Runs, Warn
from muster.model.placement import Allocation, DeviceShare, Placement
from muster.model.resources import Resources
from muster.model.value import (
    ClusterName,
    DeviceId,
    Duration,
    Instant,
    JobId,
    NodeId,
    PoolName,
    QueuePath,
    UserName,
)

GIVEN = (DeviceAccess(devices=("GPU-a",), sharing={"PIPE": "/p"}), DeviceAccess(devices=("GPU-b",)))
NOTHING = DeviceAccess()


def placed(index: int, node: str, *, group: str = "main", gpus: int = 0) -> Placement:
    return Placement(
        group=group,
        index=index,
        node=NodeId(node),
        pool=PoolName("all"),
        amount=Resources(cpu_milli=2_000, memory_mib=100),
        devices=tuple(DeviceShare(device=DeviceId(f"g{each}")) for each in range(gpus)),
    )


def run_on(*placements: Placement, launch: Launch | None = None, **spec: object) -> Run:
    asked = JobSpec(
        name="fit",
        user=UserName("ann"),
        queue=QueuePath("lab/vision"),
        groups=(TaskGroup(), TaskGroup(name="aux")),
        **spec,  # type: ignore[arg-type]
    )
    allocation = Allocation(
        job=JobId(7),
        attempt=2,
        cluster=ClusterName("here"),
        placements=placements,
        placed_at=Instant(0),
    )
    return Run(
        job=Job(id=JobId(7), spec=asked, submitted_at=Instant(0), attempt=2),
        allocation=allocation,
        launch=launch or Launch(argv=("true",)),
        nodes={},
        checkpoint="/data/7.pt",
        restarts=1,
    )


def test_an_attempt_knows_its_job() -> None:
    part = ArrayPart(array=JobId(5), index=3)

    env = of_attempt(run_on(placed(0, "n1"), array=part, time_limit=Duration(90_000)))

    assert env == {
        "MUSTER_JOB_ID": "7",
        "MUSTER_ATTEMPT": "2",
        "MUSTER_JOB_NAME": "fit",
        "MUSTER_QUEUE": "lab/vision",
        "MUSTER_CLUSTER": "here",
        "MUSTER_NODELIST": "n1",
        "MUSTER_NODES": "1",
        "MUSTER_TASKS": "1",
        "MUSTER_RESTARTS": "1",
        "MUSTER_ARRAY_JOB_ID": "5",
        "MUSTER_ARRAY_INDEX": "3",
        "MUSTER_CHECKPOINT": "/data/7.pt",
        "MUSTER_TIME_LIMIT_S": "90",
        "MASTER_ADDR": "127.0.0.1",
    }


def test_tasks_on_two_nodes_count_their_local_ranks() -> None:
    tasks = of_tasks(run_on(placed(0, "n1"), placed(1, "n1"), placed(2, "n2")), (NOTHING,) * 3)

    names = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "MUSTER_NODE", "PMI_RANK")
    assert [[task[name] for name in names] for task in tasks] == [
        ["0", "3", "0", "2", "n1", "0"],
        ["1", "3", "1", "2", "n1", "1"],
        ["2", "3", "0", "1", "n2", "2"],
    ]


def test_a_task_alone_is_not_part_of_an_mpi_job() -> None:
    (task,) = of_tasks(run_on(placed(0, "n1")), (NOTHING,))

    assert task["WORLD_SIZE"] == "1"
    assert "PMI_RANK" not in task


def test_each_task_sees_its_own_devices() -> None:
    run = run_on(placed(0, "n1", gpus=1), placed(1, "n1", gpus=1))

    first, second = of_tasks(run, GIVEN)

    assert first["CUDA_VISIBLE_DEVICES"] == first["NVIDIA_VISIBLE_DEVICES"] == "GPU-a"
    assert first["PIPE"] == "/p"
    assert second["CUDA_VISIBLE_DEVICES"] == "GPU-b"
    assert second["MUSTER_GPUS"] == "1"
    assert "PIPE" not in second


def test_who_asked_for_no_gpu_sees_none() -> None:
    (task,) = of_tasks(run_on(placed(0, "n1")), (NOTHING,))

    assert (task["CUDA_VISIBLE_DEVICES"], task["NVIDIA_VISIBLE_DEVICES"]) == ("", "void")


def test_the_one_process_has_what_all_tasks_of_its_node_have() -> None:
    launch = Launch(runs=Runs.FIRST_TASK)
    run = run_on(placed(0, "n1", gpus=1), placed(1, "n1", gpus=1), launch=launch)

    (process,) = of_tasks(run, GIVEN)

    assert process["CUDA_VISIBLE_DEVICES"] == "GPU-a,GPU-b"
    assert process["MUSTER_CPUS"] == "4"
    assert process["MUSTER_MEMORY_MIB"] == "200"
    assert "RANK" not in process


def test_ports_lie_where_nobody_else_looks() -> None:
    ports = [master_port(job, 1) for job in range(0, 100_000, 997)]

    assert all(20_000 <= port < 60_000 for port in ports)
    assert len(set(ports)) > 90


def test_ranks_follow_the_groups_of_the_job() -> None:
    run = run_on(placed(0, "n1", group="aux"), placed(1, "n1"), placed(0, "n1"))

    placements = in_rank_order(run).allocation.placements

    assert [(each.group, each.index) for each in placements] == [
        ("main", 0),
        ("main", 1),
        ("aux", 0),
    ]


def test_a_launch_file_has_all_that_a_supervisor_needs() -> None:
    launch = Launch(
        argv=("train", "--fast"),
        env={"A": "b", "MUSTER_JOB_ID": "forged"},
        stdout="%x-%t.out",
        warn=Warn(signal=10, lead=Duration(5_000)),
        checkpoint=Checkpointing(path="%j.pt", signal=12),
    )
    run = run_on(placed(0, "n1"), placed(1, "n1"), launch=launch, time_limit=Duration(60_000))
    site = Site(mark="7.2.abc", grace=Duration(30_000), given=(NOTHING, NOTHING), cpus=(0, 1))

    file = launch_file(run, site)

    assert (file["key"], file["node"], file["user"]) == ("7.2", "n1", "ann")
    assert file["env"]["A"] == "b"
    assert file["env"]["MUSTER_CHECKPOINT_PATH"] == "7.pt"
    assert file["env"]["MUSTER_JOB_ID"] == "7"
    assert file["env"]["MUSTER_ATTEMPT_KEY"] == "7.2.abc"
    assert [task["stdout"] for task in file["tasks"]] == ["fit-0.out", "fit-1.out"]
    assert file["warn"] == {"signal": 10, "lead_ms": 5_000, "shell_only": False}
    assert file["checkpoint"] == {"path": "7.pt", "signal": 12}
    assert (file["memory_mib"], file["cpu_milli"], file["limit_ms"]) == (200, 4_000, 60_000)
