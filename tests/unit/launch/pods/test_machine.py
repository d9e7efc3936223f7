from muster.launch.pods.machine import (
    CannotStart,
    Ended,
    Halt,
    Look,
    PodMachine,
    ProbeKind,
    Start,
)
from muster.model.pod import (
    Container,
    ContainerStatus,
    Exec,
    Phase,
    PodLaunch,
    Probe,
    Restart,
    Stage,
)
from muster.model.value import replace

MAIN = Container(name="main", image="i")


def a_pod(*containers: Container, restart: Restart = Restart.ALWAYS) -> PodMachine:
    pod = PodLaunch(namespace="n", name="p", uid="u", containers=containers, restart=restart)
    return PodMachine(pod)


def of(machine: PodMachine, name: str = "main") -> ContainerStatus:
    found = machine.status().of(name)
    assert found is not None
    return found


def test_containers_come_in_their_order() -> None:
    one = replace(MAIN, name="one", stage=Stage.INIT)
    side = replace(MAIN, name="side", stage=Stage.SIDECAR)
    machine = a_pod(one, side, MAIN, replace(MAIN, name="other"))

    assert machine.due(0) == [Start(name="one", run=0)]
    assert machine.due(1) == []
    machine.started("one", 5)
    assert machine.due(6) == []
    machine.ended("one", Ended(at=10))
    assert machine.due(10) == [Start(name="side", run=0)]
    machine.started("side", 11)
    assert machine.due(12) == [Start(name="main", run=0), Start(name="other", run=0)]


def test_a_first_container_that_fails_ends_the_pod_or_is_tried_again() -> None:
    one = replace(MAIN, name="one", stage=Stage.INIT)
    strict, patient = a_pod(one, MAIN, restart=Restart.NEVER), a_pod(one, MAIN)

    for machine in (strict, patient):
        machine.due(0)
        machine.started("one", 0)
        machine.ended("one", Ended(at=5, code=2))

    assert strict.is_over
    assert strict.result == (2, 0)
    assert patient.due(5) == [Start(name="one", run=1)]


def test_who_keeps_failing_is_started_ever_later() -> None:
    machine = a_pod(MAIN)
    pauses: list[int] = []
    now = 0
    for _ in range(8):
        assert machine.due(now) != []
        machine.started("main", now)
        machine.ended("main", Ended(at=now, code=1))
        due = machine.next_ms()
        assert due is not None
        pauses.append((due - now) // 1_000)
        now = due

    assert pauses == [0, 10, 20, 40, 80, 160, 300, 300]
    assert of(machine).reason == "CrashLoopBackOff"
    assert of(machine).restarts == 7


def test_who_ran_long_begins_again_with_short_pauses() -> None:
    machine = a_pod(MAIN)
    machine.due(0)
    machine.started("main", 0)
    machine.ended("main", Ended(at=0, code=1))
    machine.due(0)
    machine.started("main", 0)
    machine.ended("main", Ended(at=700_000, code=1))

    assert machine.next_ms() == 700_000


def test_a_pod_is_over_when_its_main_containers_are() -> None:
    side = replace(MAIN, name="side", stage=Stage.SIDECAR)
    machine = a_pod(side, MAIN, restart=Restart.ON_FAILURE)
    machine.due(0)
    machine.started("side", 0)
    machine.due(0)
    machine.started("main", 1)

    machine.ended("main", Ended(at=2))

    assert machine.due(2) == [Halt(name="side", grace_ms=30_000)]
    assert not machine.is_over
    machine.ended("side", Ended(at=3, signal=15))
    assert machine.is_over
    assert machine.result == (0, 0)


def test_sidecars_outlive_the_others_when_the_pod_is_stopped() -> None:
    side = replace(MAIN, name="side", stage=Stage.SIDECAR)
    machine = a_pod(side, MAIN)
    machine.due(0)
    machine.started("side", 0)
    machine.due(0)
    machine.started("main", 1)

    machine.stop(2)

    assert machine.due(2) == [Halt(name="main", grace_ms=30_000)]
    assert machine.due(2) == []
    machine.ended("main", Ended(at=3, signal=15))
    assert machine.due(3) == [Halt(name="side", grace_ms=30_000)]


def test_probes_are_asked_in_their_turn() -> None:
    ask = Probe(action=Exec(argv=("x",)), delay_s=2, period_s=5, failures=2)
    machine = a_pod(replace(MAIN, startup=ask, liveness=replace(ask, delay_s=0), readiness=ask))
    machine.due(0)
    machine.started("main", 0)

    assert machine.due(1_000) == []
    assert machine.due(2_000) == [Look(name="main", kind=ProbeKind.STARTUP)]
    assert machine.due(9_000) == []
    machine.probed("main", ProbeKind.STARTUP, at=9_000, text=None)
    assert of(machine).started
    assert not of(machine).ready
    looks = [
        Look(name="main", kind=ProbeKind.LIVENESS),
        Look(name="main", kind=ProbeKind.READINESS),
    ]
    assert machine.due(9_000) == looks
    machine.probed("main", ProbeKind.READINESS, at=9_000, text=None)
    assert of(machine).ready


def test_who_is_not_alive_is_halted_and_started_again() -> None:
    ask = Probe(action=Exec(argv=("x",)), period_s=1, failures=2, grace_s=3)
    machine = a_pod(replace(MAIN, liveness=ask))
    machine.due(0)
    machine.started("main", 0)
    machine.due(0)
    machine.probed("main", ProbeKind.LIVENESS, at=0, text="no")
    machine.due(1_000)
    machine.probed("main", ProbeKind.LIVENESS, at=1_000, text="no")

    assert machine.due(1_000) == [Halt(name="main", grace_ms=3_000)]
    machine.ended("main", Ended(at=1_500, signal=9))
    assert machine.due(1_500) == [Start(name="main", run=1)]
    unhealthy = next(each for each in machine.status().notes if each.reason == "Unhealthy")
    assert (unhealthy.count, unhealthy.text) == (2, "Liveness probe failed: no")


def test_what_cannot_start_waits_and_is_tried_again() -> None:
    machine = a_pod(MAIN)
    machine.due(0)

    machine.could_not_start("main", CannotStart(at=0, reason="ErrImagePull", text="x", grows=True))

    assert of(machine).phase is Phase.WAITING
    assert of(machine).reason == "ErrImagePull"
    assert machine.due(100) == []
    assert machine.due(2_000) == [Start(name="main", run=0)]


def test_an_image_that_cannot_be_had_is_asked_for_later_each_time() -> None:
    machine = a_pod(MAIN)
    machine.due(0)

    machine.could_not_pull("main", 0, "no such host")

    assert of(machine).reason == "ImagePullBackOff"
    assert of(machine).message.endswith(": ErrImagePull: no such host")
    assert [each.reason for each in machine.status().notes] == [
        "Failed",
        "Failed",
        "BackOff",
        "Failed",
    ]
