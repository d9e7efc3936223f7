"""How pods of users are, from what an API server says of them, and when those of a gang end."""

from typing import Any

from muster.backends.attempts import Look, Phase
from muster.backends.kubernetes.attempt import apart, as_led, hopeless, look_of, must_end, over
from muster.backends.kubernetes.manifest import name_of
from muster.backends.kubernetes.output import as_lines
from muster.backends.kubernetes.pod_news import PodNews
from muster.backends.kubernetes.pods import Key, Pod, Stage, pod_of
from muster.backends.notes import Note, NotedPod
from muster.model.job import Exited, LaunchFailed, NodeFailed, OutOfMemory, Requeued
from muster.model.pod import Phase as ContainerPhase
from muster.model.value import Duration, Instant, JobId, NodeId, UserName, replace

Json = dict[str, Any]

KEY = Key(site="a1", job=7, attempt=1, seal="mine")
NOW = Instant(1_000_000_000_000)
BEGAN, ENDED = "2001-09-09T01:00:00Z", "2001-09-09T01:30:00Z"
BEGAN_MS, ENDED_MS = 999_997_200_000, 999_999_000_000
RUNNING: Json = {"running": {"startedAt": BEGAN}}
NOTED = NotedPod(container="main", image="python")
NOTE = Note(
    job=JobId(7),
    attempt=1,
    user=UserName("ann"),
    nodes=(NodeId("n1"), NodeId("n2")),
    began_at=Instant(0),
    pods=(NOTED, NOTED),
)
RUNS = Look(phase=Phase.RUNS, started_at=Instant(BEGAN_MS))


def ended(code: int, reason: str = "") -> Json:
    word = reason or ("Error" if code else "Completed")
    times = {"startedAt": BEGAN, "finishedAt": ENDED}
    return {"terminated": {"exitCode": code, "reason": word, **times}}


def container(state: Json, name: str = "main", **more: Any) -> Json:
    return {"name": name, "state": state, "restartCount": 0, "image": "python", **more}


def seen(phase: str, *containers: Json, rank: int = 0, **more: Any) -> Pod:
    """As an API server shows it."""
    labels = {"muster.io/site": "a1", "muster.io/job": "7", "muster.io/attempt": "1"}
    return pod_of(
        {
            "metadata": {
                "name": f"{name_of(KEY)}-{rank}",
                "namespace": "jobs",
                "uid": f"u{rank}",
                "labels": {**labels, "muster.io/rank": str(rank)},
                "annotations": {"muster.io/part": "pod"},
            },
            "spec": {
                "nodeName": "n1",
                "terminationGracePeriodSeconds": 5,
                "containers": [{"name": each["name"]} for each in containers],
            },
            "status": {
                "phase": phase,
                "podIP": "10.1.0.7",
                "hostIP": "10.0.0.1",
                "containerStatuses": list(containers),
                **more,
            },
        }
    )


def waits(reason: str, message: str = "") -> Json:
    return {"waiting": {"reason": reason, "message": message}}


def test_a_container_is_told_with_its_state_its_restarts_and_its_last_run() -> None:
    pod = seen(
        "Running",
        container(RUNNING, restartCount=2, ready=True, started=True, lastState=ended(3)),
    )

    (told,) = PodNews().of(NOTE, [pod], RUNS, NOW)

    (status,) = told.status.containers
    assert (status.phase, status.at, status.restarts) == (ContainerPhase.RUNNING, BEGAN_MS, 2)
    assert status.ready
    assert status.last is not None
    assert (status.last.code, status.last.ended_at) == (3, ENDED_MS)
    assert (told.status.ip, told.status.host_ip) == ("10.1.0.7", "10.0.0.1")
    assert not told.status.over


def test_init_containers_are_told_before_the_others() -> None:
    first = container(ended(0), "first")
    pod = seen("Pending", container(waits("PodInitializing")), initContainerStatuses=[first])

    (told,) = PodNews().of(NOTE, [pod], RUNS, NOW)

    assert [each.name for each in told.status.containers] == ["first", "main"]
    assert pod.stage is Stage.RUNS


def test_what_was_told_is_not_told_again() -> None:
    news, pod = PodNews(), seen("Running", container(RUNNING))

    assert len(list(news.of(NOTE, [pod], RUNS, NOW))) == 1
    assert not list(news.of(NOTE, [pod], RUNS, NOW))


def test_a_pod_that_went_away_while_it_ran_was_killed() -> None:
    pod = over(seen("Running", container(RUNNING)))

    (told,) = PodNews().of(NOTE, [pod], RUNS, NOW)

    run = told.status.containers[0].ended
    assert run is not None
    assert run.code == 137
    assert told.status.over


def test_the_token_that_a_pod_goes_without_is_told() -> None:
    note = replace(NOTE, pods=(replace(NOTED, without_token=True),))

    (told,) = PodNews().of(note, [seen("Running", container(RUNNING))], RUNS, NOW)

    assert [each.reason for each in told.status.notes] == ["NoToken"]


def test_pods_of_which_the_notes_were_lost_are_told_as_they_are() -> None:
    note, pod = replace(NOTE, pods=()), seen("Running", container(RUNNING))
    failed = seen("Failed", container(ended(1)), rank=1)

    (told,) = PodNews().of(note, [pod], RUNS, NOW)

    assert told.status.containers[0].phase is ContainerPhase.RUNNING
    assert not must_end([pod, failed], [], [], note)


def test_what_is_missing_is_told_of_all_pods() -> None:
    told = list(PodNews().lacking(NOTE, 'configmap "cfg" not found', NOW))

    assert [each.task for each in told] == [0, 1]
    waiting = told[0].status.containers[0]
    assert (waiting.reason, waiting.message) == (
        "CreateContainerConfigError",
        'configmap "cfg" not found',
    )


def test_a_pod_ends_as_the_container_that_failed_first() -> None:
    later = {"terminated": {**ended(5)["terminated"], "finishedAt": "2001-09-09T01:31:00Z"}}
    pod = seen("Failed", container(later, "log"), container(ended(3)))

    assert look_of([pod], [], [], NOW).why == Exited(code=3)


def test_a_sidecar_that_was_killed_in_the_end_is_no_failure() -> None:
    sidecar = container(ended(137), "log")
    pod = seen("Succeeded", container(ended(0)), initContainerStatuses=[sidecar])

    assert look_of([pod], [], [], NOW).why == Exited(code=0)


def test_a_container_that_needed_too_much_memory_is_known_by_its_reason() -> None:
    pod = seen("Failed", container(ended(137, "OOMKilled")))

    assert look_of([pod], [], [], NOW).why == OutOfMemory(node=NodeId("n1"))


def test_a_pod_whose_container_crashes_again_and_again_goes_on() -> None:
    crashing = container(waits("CrashLoopBackOff", "back-off"), lastState=ended(1), restartCount=3)
    pod = seen("Running", crashing)

    assert look_of([pod], [], [], NOW).phase is Phase.RUNS
    assert hopeless([pod], NOTE, NOW) is None


def test_an_image_that_does_not_come_ends_a_pod_that_has_not_begun() -> None:
    pod = seen("Pending", container(waits("ImagePullBackOff", "no such image")))
    begun = seen(
        "Pending",
        container(waits("ImagePullBackOff")),
        initContainerStatuses=[container(ended(0), "first")],
    )

    assert hopeless([pod], NOTE, NOW) == LaunchFailed(text="ImagePullBackOff: no such image")
    assert hopeless([begun], NOTE, NOW) is None


def test_a_secret_may_take_a_while_to_reach_a_kubelet() -> None:
    why = "failed to sync secret cache: timed out waiting for the condition"
    pod = seen("Pending", container(waits("CreateContainerConfigError", why)))
    soon = replace(NOTE, began_at=Instant(NOW - 20_000))

    assert hopeless([pod], soon, NOW) is None
    assert hopeless([pod], NOTE, NOW) is not None


def test_the_others_of_a_gang_go_on_when_one_ends_and_not_when_one_is_lost() -> None:
    failed = seen("Failed", container(ended(1)))
    mate = seen("Running", container(RUNNING), rank=1)

    assert not must_end([failed, mate], [], [], NOTE)
    assert must_end([mate], [failed], [], NOTE)
    assert not must_end([failed, mate], [], [], replace(NOTE, leader=0))
    assert must_end([replace(mate, leaves=True)], [], [NodeId("n1")], NOTE)


def test_an_evicted_pod_takes_its_gang_along() -> None:
    evicted = seen("Failed", reason="Evicted")
    mate = seen("Running", container(RUNNING), rank=1)

    assert must_end([evicted, mate], [], [], NOTE)
    assert isinstance(look_of([evicted], [], [], NOW).why, Requeued)


def test_a_gang_ends_as_its_leader_did_unless_something_befell_it() -> None:
    note = replace(NOTE, leader=1)
    worker = seen("Failed", container(ended(143)))
    leader = seen("Succeeded", container(ended(0)), rank=1)

    there = as_led(look_of([worker, leader], [], [], NOW), [worker, leader], note)
    lost = Look(phase=Phase.OVER, why=NodeFailed(node=NodeId("n2")))

    assert there.why == Exited(code=0)
    assert as_led(lost, [leader], note) == lost


def test_one_that_was_let_go_is_neither_a_failure_nor_a_loss() -> None:
    note = replace(NOTE, let_go=(0,))
    gone = seen("Failed", container(ended(143)))
    mate = seen("Running", container(RUNNING), rank=1)

    there, lost = apart([mate], [gone], note)

    assert not lost
    assert not must_end(there, lost, [], note)
    assert look_of([each for each in there if each.rank == 0], [], [], NOW).why == Exited(code=0)


def test_a_pod_says_how_long_it_may_take_to_stop() -> None:
    assert seen("Running", container(RUNNING)).grace == Duration(5_000)


def test_a_log_with_times_is_as_container_runtimes_keep_it() -> None:
    raw = b"2026-01-01T00:00:00.1Z one\n2026-01-01T00:00:01.2Z tw"

    assert as_lines(raw, is_whole=False) == b"2026-01-01T00:00:00.1Z stdout F one\n"
    assert as_lines(raw, is_whole=True).endswith(b"2026-01-01T00:00:01.2Z stdout P tw\n")
