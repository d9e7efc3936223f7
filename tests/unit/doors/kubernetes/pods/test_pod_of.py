from muster.controller.messages import JobView
from muster.doors.kubernetes.pods.pod_of import job_of_pod, pods_of
from muster.doors.kubernetes.pods.status_of import SeenPod
from muster.model.gpu import GpuAsk, Mig, TimeShare
from muster.model.job import ArrayPart, Ask, Job, JobSpec, JobState, TaskGroup
from muster.model.launch import Launch
from muster.model.value import Duration, JobId, QueuePath, UserName
from unit.doors.kubernetes.pods.worlds import NOW


def seen(spec: JobSpec, job: int = 12) -> SeenPod:
    made = Job(id=JobId(job), spec=spec, state=JobState.PENDING, submitted_at=NOW)
    return SeenPod(view=JobView(job=made), now=NOW)


def a_spec(**known: object) -> JobSpec:
    base = {"name": "My Train.sh", "user": UserName("ada"), "queue": QueuePath("team/nlp")}
    return JobSpec(**{**base, "groups": (TaskGroup(),), **known})  # pyright: ignore[reportArgumentType]


def test_a_job_of_another_door_is_a_pod() -> None:
    ask = Ask(cpu_milli=1_500, memory_mib=2_048, gpus=GpuAsk(count=2))
    spec = a_spec(
        groups=(TaskGroup(each=ask),),
        time_limit=Duration(90_000),
        labels={"app": "x", "not a label": "y"},
    )

    (pod,) = pods_of(seen(spec), "team-nlp", Launch(argv=("python", "t.py"), image="img"))

    assert pod["metadata"]["name"] == "my-train-sh-12"
    assert pod["metadata"]["namespace"] == "team-nlp"
    assert pod["metadata"]["labels"]["app"] == "x"
    assert "not a label" not in pod["metadata"]["labels"]
    assert pod["metadata"]["labels"]["muster.io/job"] == "12"
    container = pod["spec"]["containers"][0]
    assert container["command"] == ["python", "t.py"]
    assert container["image"] == "img"
    assert container["resources"]["limits"] == {
        "cpu": "1500m",
        "memory": "2Gi",
        "nvidia.com/gpu": "2",
    }
    assert pod["spec"]["activeDeadlineSeconds"] == 90
    assert pod["status"]["phase"] == "Pending"


def test_a_gang_is_one_pod_for_each_task() -> None:
    groups = (
        TaskGroup(name="ps", count=1),
        TaskGroup(
            name="worker", count=2, each=Ask(gpus=GpuAsk(count=1, slice=Mig(profile="1g.5gb")))
        ),
    )

    pods = pods_of(seen(a_spec(groups=groups)), "team-nlp")

    assert [each["metadata"]["name"] for each in pods] == [
        "my-train-sh-12-ps-0",
        "my-train-sh-12-worker-0",
        "my-train-sh-12-worker-1",
    ]
    assert len({each["metadata"]["uid"] for each in pods}) == 3
    assert pods[2]["spec"]["containers"][0]["resources"]["requests"] == {
        "nvidia.com/mig-1g.5gb": "1"
    }


def test_a_part_of_an_array_has_its_index_in_its_name() -> None:
    spec = a_spec(array=ArrayPart(array=JobId(10), index=4))

    (pod,) = pods_of(seen(spec, job=14), "team-nlp")

    assert pod["metadata"]["name"] == "my-train-sh-10-4"
    assert pod["metadata"]["annotations"]["muster.io/array"] == "10"


def test_what_others_may_not_see_is_not_there() -> None:
    share = TaskGroup(each=Ask(gpus=GpuAsk(count=1, slice=TimeShare(replicas=4))))

    (pod,) = pods_of(seen(a_spec(groups=(share,))), "team-nlp", None)

    assert "command" not in pod["spec"]["containers"][0]
    assert pod["spec"]["containers"][0]["image"] == "muster.io/host"


def test_the_pod_of_a_job_is_known_by_what_nobody_else_can_write() -> None:
    (pod,) = pods_of(seen(a_spec()), "team-nlp")
    forged = {**pod, "metadata": {**pod["metadata"], "uid": "another"}}

    assert job_of_pod(pod) == 12
    assert job_of_pod(forged) is None
    assert job_of_pod({"metadata": {"name": "p", "uid": "u"}}) is None
