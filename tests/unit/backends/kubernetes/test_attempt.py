import pytest

from muster.backends.attempts import Phase
from muster.backends.fleet import Taken
from muster.backends.kubernetes.attempt import KUBERNETES, is_broken, look_of
from muster.backends.kubernetes.pods import Pod, Stage
from muster.model.job import Cancelled, EndReason, Exited, NodeFailed, OutOfMemory, Requeued
from muster.model.value import Instant, NodeId, replace

N1 = NodeId("n1")
NOW = Instant(100_000)
RUNS = Pod(
    namespace="d",
    name="p-0",
    uid="u",
    stage=Stage.RUNS,
    node=N1,
    holds=Taken(),
    started_at=Instant(50_000),
)
DONE = replace(RUNS, stage=Stage.OVER, code=0, ended_at=Instant(60_000))


def test_it_runs_when_all_of_its_pods_do() -> None:
    waits = replace(RUNS, stage=Stage.WAITS, rank=1, started_at=None)

    assert look_of([RUNS, waits], [], [], NOW).phase is Phase.WAITS
    assert look_of([RUNS, replace(RUNS, rank=1)], [], [], NOW).phase is Phase.RUNS


@pytest.mark.parametrize(
    ("pod", "why"),
    [
        (DONE, Exited(code=0)),
        (replace(DONE, code=3), Exited(code=3)),
        (replace(DONE, code=137, out_of_memory=True), OutOfMemory(node=N1)),
        (replace(DONE, code=137, lost=True), NodeFailed(node=N1)),
        (replace(DONE, code=None, reason="Evicted"), Requeued(by=KUBERNETES)),
        (replace(DONE, code=None, reason="OutOfcpu"), Requeued(by=KUBERNETES)),
    ],
)
def test_it_ends_as_its_pod_did(pod: Pod, why: EndReason) -> None:
    seen = look_of([pod], [], [], NOW)

    assert (seen.phase, seen.why) == (Phase.OVER, why)


def test_a_pod_that_somebody_deleted_was_cancelled() -> None:
    assert look_of([], [RUNS], [], NOW).why == Cancelled(by=KUBERNETES)


def test_a_silent_node_is_waited_for_until_kubernetes_gives_its_pods_up() -> None:
    assert look_of([RUNS], [], [N1], NOW).phase is Phase.RUNS

    given_up = look_of([replace(RUNS, leaves=True)], [], [N1], NOW)

    assert (given_up.phase, given_up.why) == (Phase.OVER, NodeFailed(node=N1))


def test_one_that_fails_breaks_the_others_off() -> None:
    other = replace(RUNS, rank=1)

    assert not is_broken([DONE, other], [], [])
    assert is_broken([replace(DONE, code=1), other], [], [])
    assert is_broken([RUNS], [other], [])
