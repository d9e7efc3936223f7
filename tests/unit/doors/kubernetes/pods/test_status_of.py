from typing import Any

import pytest

from muster.controller.messages import JobView
from muster.doors.kubernetes.pods.defaults import defaulted
from muster.doors.kubernetes.pods.status_of import SeenPod, status_of
from muster.model.job import (
    EndReason,
    Exited,
    HeldBy,
    Job,
    JobSpec,
    JobState,
    OutOfMemory,
    Preempted,
    Signaled,
    TaskGroup,
    TimedOut,
)
from muster.model.placement import Allocation, Claim, Placement
from muster.model.pod import ContainerRun, ContainerStatus, Phase, PodStatus
from muster.model.resources import Resources
from muster.model.value import (
    ClusterName,
    Duration,
    Instant,
    JobId,
    NodeId,
    PoolName,
    QueuePath,
    UserName,
    replace,
)
from unit.doors.kubernetes.pods.golden import pod
from unit.doors.kubernetes.pods.worlds import NOW

ONE = "containers: [{name: main, image: i}]"
INIT = (
    "initContainers: [{name: one, image: i}, {name: side, image: i, restartPolicy: Always}]\n" + ONE
)
SPEC = JobSpec(name="p", user=UserName("ada"), queue=QueuePath("team"), groups=(TaskGroup(),))
PLACED = Placement(group="main", index=0, node=NodeId("n1"), pool=PoolName("p"), amount=Resources())
BEGAN = Instant(NOW - 5_000)


def a_view(state: JobState, **known: Any) -> JobView:
    job = Job(id=JobId(7), spec=SPEC, state=state, submitted_at=Instant(NOW - 9_000), **known)
    runs = state in (JobState.STARTING, JobState.RUNNING, JobState.STOPPING)
    allocation = Allocation(
        job=job.id,
        attempt=1,
        cluster=ClusterName("c"),
        placements=(PLACED,),
        placed_at=BEGAN,
        started_at=BEGAN,
    )
    if runs:
        return JobView(job=job, allocation=allocation, started_at=BEGAN)
    is_over = state in (JobState.COMPLETED, JobState.FAILED)
    return JobView(
        job=job, started_at=BEGAN if is_over else None, ended_at=NOW if is_over else None
    )


def shown(manifest: str, seen: SeenPod, old: dict[str, Any] | None = None) -> dict[str, Any]:
    made = defaulted(pod(manifest))
    return status_of({**made, "status": old or {}}, seen)


def seen(state: JobState, status: PodStatus | None = None, **known: Any) -> SeenPod:
    return SeenPod(view=a_view(state, **known), status=status, host="192.0.2.2", now=NOW)


def conditions(status: dict[str, Any]) -> dict[str, tuple[str, str, str]]:
    return {
        each["type"]: (each["status"], each.get("reason", ""), each.get("message", ""))
        for each in status["conditions"]
    }


def test_a_pod_that_waits_says_why() -> None:
    waits = replace(seen(JobState.PENDING), why_pending="0/1 nodes are available: 1 X.")

    found = shown(ONE, waits)

    assert found["phase"] == "Pending"
    assert found["qosClass"] == "BestEffort"
    assert "containerStatuses" not in found
    assert conditions(found) == {
        "PodScheduled": ("False", "Unschedulable", "0/1 nodes are available: 1 X.")
    }


def test_a_gated_pod_and_a_held_one_differ() -> None:
    gated = shown("schedulingGates: [{name: a.io/b}]\n" + ONE, seen(JobState.HELD))
    held = shown(
        ONE,
        replace(
            seen(JobState.HELD, why=HeldBy(user=UserName("root"))), why_pending="Held by root."
        ),
    )

    assert conditions(gated)["PodScheduled"] == (
        "False",
        "SchedulingGated",
        "Scheduling is blocked due to non-empty scheduling gates",
    )
    assert conditions(held)["PodScheduled"] == ("False", "Held", "Held by root.")


def test_room_that_is_being_cleared_is_nominated() -> None:
    claim = Claim(
        cluster=ClusterName("c"), placements=(PLACED,), victims=(JobId(1),), until=Instant(NOW + 1)
    )

    assert shown(ONE, seen(JobState.PENDING, claim=claim))["nominatedNodeName"] == "n1"


def test_a_running_pod_is_ready_when_its_containers_are() -> None:
    running = ContainerStatus(
        name="main", phase=Phase.RUNNING, at=BEGAN, ready=True, started=True, id="podman://x"
    )
    status = PodStatus(containers=(running,), ip="10.0.0.7")

    found = shown(ONE, seen(JobState.RUNNING, status))
    unready = shown(
        ONE, seen(JobState.RUNNING, PodStatus(containers=(replace(running, ready=False),)))
    )

    assert found["phase"] == "Running"
    assert found["podIP"] == "10.0.0.7"
    assert found["hostIP"] == "192.0.2.2"
    assert found["startTime"] == "2027-01-15T07:59:55Z"
    assert found["containerStatuses"][0]["state"] == {
        "running": {"startedAt": "2027-01-15T07:59:55Z"}
    }
    assert {each[0] for each in conditions(found).values()} == {"True"}
    assert conditions(unready)["Ready"] == (
        "False",
        "ContainersNotReady",
        "containers with unready status: [main]",
    )


def test_containers_that_wait_say_for_what() -> None:
    crashed = ContainerRun(began_at=BEGAN, ended_at=NOW, code=1)
    status = ContainerStatus(
        name="main", reason="CrashLoopBackOff", message="back-off", restarts=2, last=crashed
    )

    found = shown(ONE, seen(JobState.RUNNING, PodStatus(containers=(status,))))

    assert found["phase"] == "Running"
    own = found["containerStatuses"][0]
    assert own["state"] == {"waiting": {"reason": "CrashLoopBackOff", "message": "back-off"}}
    assert own["lastState"]["terminated"]["exitCode"] == 1
    assert own["restartCount"] == 2


def test_while_init_containers_run_the_pod_is_pending() -> None:
    one = ContainerStatus(name="one", phase=Phase.RUNNING, at=BEGAN)

    found = shown(INIT, seen(JobState.RUNNING, PodStatus(containers=(one,))))

    assert found["phase"] == "Pending"
    assert found["containerStatuses"][0]["state"] == {"waiting": {"reason": "PodInitializing"}}
    assert conditions(found)["Initialized"] == (
        "False",
        "ContainersNotInitialized",
        "containers with incomplete status: [one side]",
    )


def test_the_pod_is_initialized_when_the_first_are_done_and_sidecars_run() -> None:
    done = ContainerRun(began_at=BEGAN, ended_at=BEGAN)
    status = PodStatus(
        containers=(
            ContainerStatus(name="one", phase=Phase.ENDED, ended=done),
            ContainerStatus(name="side", phase=Phase.RUNNING, at=BEGAN, started=True, ready=True),
            ContainerStatus(name="main", phase=Phase.RUNNING, at=BEGAN, started=True, ready=True),
        )
    )

    found = shown(INIT, seen(JobState.RUNNING, status))

    assert found["phase"] == "Running"
    assert conditions(found)["Initialized"][0] == "True"
    assert found["initContainerStatuses"][0]["state"]["terminated"]["reason"] == "Completed"


@pytest.mark.parametrize(
    ("why", "state", "reason", "code", "word"),
    [
        (Exited(code=0), JobState.COMPLETED, None, 0, "Completed"),
        (Exited(code=7), JobState.FAILED, None, 7, "Error"),
        (Signaled(signal=9), JobState.FAILED, None, 137, "Error"),
        (OutOfMemory(node=NodeId("n1")), JobState.FAILED, None, 137, "OOMKilled"),
        (TimedOut(limit=Duration(1)), JobState.FAILED, "DeadlineExceeded", 143, "Error"),
        (Preempted(by=JobId(9)), JobState.FAILED, "Preempted", 143, "Error"),
    ],
    ids=["well", "badly", "killed", "memory", "time", "preempted"],
)
def test_a_job_of_another_door_ends_as_a_pod_would(
    why: EndReason, state: JobState, reason: str | None, code: int, word: str
) -> None:
    found = shown(ONE, seen(state, why=why, attempt=1))

    ended = found["containerStatuses"][0]["state"]["terminated"]
    assert found["phase"] == ("Failed" if state is JobState.FAILED else "Succeeded")
    assert found.get("reason") == reason
    assert (ended["exitCode"], ended["reason"]) == (code, word)
    assert conditions(found)["Ready"][0] == "False"


def test_a_condition_says_since_when_it_is_so() -> None:
    before = shown(ONE, seen(JobState.RUNNING))
    later = replace(seen(JobState.RUNNING), now=Instant(NOW + 60_000))

    after = shown(ONE, later, old=before)
    ended = shown(ONE, replace(seen(JobState.COMPLETED), now=Instant(NOW + 60_000)), old=after)

    assert after["conditions"] == before["conditions"]
    times = {each["type"]: each["lastTransitionTime"] for each in ended["conditions"]}
    assert times["PodScheduled"] == "2027-01-15T08:00:00Z"
    assert times["Ready"] == "2027-01-15T08:01:00Z"


def test_a_readiness_gate_waits_for_somebody_else() -> None:
    manifest = f"readinessGates: [{{conditionType: x.io/ok}}]\n{ONE}"

    first = shown(manifest, seen(JobState.RUNNING))
    said = {"conditions": [{"type": "x.io/ok", "status": "True"}]}
    second = shown(manifest, seen(JobState.RUNNING), old=said)

    assert conditions(first)["Ready"][1] == "ReadinessGatesNotReady"
    assert conditions(first)["ContainersReady"][0] == "True"
    assert conditions(second)["Ready"][0] == "True"
    assert conditions(second)["x.io/ok"][0] == "True"
