from muster.launch.attempt import DeviceAccess
from muster.launch.muster_variables import of_attempt, of_tasks
from muster.model.job import ArrayPart
from muster.model.launch import Launch, Runs
from muster.model.value import (
    Duration,
    JobId,
)
from unit.launch.given import placed, task

ACCESS = (DeviceAccess(devices=("GPU-a",), env={"PIPE": "/p"}), DeviceAccess(devices=("GPU-b",)))
NOTHING = DeviceAccess()


def test_an_attempt_knows_its_job() -> None:
    part = ArrayPart(array=JobId(5), index=3)

    attempt = placed(task(0, "n1"), array=part, time_limit=Duration(90_000))

    env = of_attempt(attempt, "10.0.0.7")

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
        "MASTER_ADDR": "10.0.0.7",
    }


def test_tasks_on_two_nodes_count_their_local_ranks() -> None:
    tasks = of_tasks(placed(task(0, "n1"), task(1, "n1"), task(2, "n2")), (NOTHING,) * 3)

    names = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "MUSTER_NODE", "PMI_RANK")
    assert [[each[name] for name in names] for each in tasks] == [
        ["0", "3", "0", "2", "n1", "0"],
        ["1", "3", "1", "2", "n1", "1"],
        ["2", "3", "0", "1", "n2", "2"],
    ]


def test_a_task_alone_is_not_part_of_an_mpi_job() -> None:
    (found,) = of_tasks(placed(task(0, "n1")), (NOTHING,))

    assert found["WORLD_SIZE"] == "1"
    assert "PMI_RANK" not in found


def test_each_task_sees_its_own_devices() -> None:
    attempt = placed(task(0, "n1", gpus=1), task(1, "n1", gpus=1))

    first, second = of_tasks(attempt, ACCESS)

    assert first["CUDA_VISIBLE_DEVICES"] == first["NVIDIA_VISIBLE_DEVICES"] == "GPU-a"
    assert first["PIPE"] == "/p"
    assert second["CUDA_VISIBLE_DEVICES"] == "GPU-b"
    assert second["MUSTER_GPUS"] == "1"
    assert "PIPE" not in second


def test_who_asked_for_no_gpu_sees_none() -> None:
    (found,) = of_tasks(placed(task(0, "n1")), (NOTHING,))

    assert (found["CUDA_VISIBLE_DEVICES"], found["NVIDIA_VISIBLE_DEVICES"]) == ("", "void")


def test_the_one_process_has_what_all_tasks_of_its_node_have() -> None:
    launch = Launch(runs=Runs.FIRST_TASK)
    attempt = placed(task(0, "n1", gpus=1), task(1, "n1", gpus=1), launch=launch)

    (process,) = of_tasks(attempt, ACCESS)

    assert process["CUDA_VISIBLE_DEVICES"] == "GPU-a,GPU-b"
    assert process["MUSTER_CPUS"] == "4"
    assert process["MUSTER_MEMORY_MIB"] == "200"
    assert "RANK" not in process
