from muster.backends.base import Run
from muster.backends.local.attempt.translate import LocalAccess, launch_file
from muster.launch.attempt import DeviceAccess
from muster.launch.prepare import prepare
from muster.model.launch import Checkpointing, Launch, Warn
from muster.model.value import Duration
from unit.launch.given import placed, task


def test_a_launch_file_has_all_that_a_supervisor_needs() -> None:
    launch = Launch(
        argv=("train", "--fast"),
        stdout="%x-%t.out",
        warn=Warn(signal=10, lead=Duration(5_000)),
        checkpoint=Checkpointing(path="%j.pt", signal=12),
    )
    attempt = placed(task(0, "n1"), task(1, "n1"), launch=launch, time_limit=Duration(60_000))
    run = Run(
        job=attempt.job,
        allocation=attempt.allocation,
        launch=launch,
        nodes={},
        grace=Duration(20_000),
    )
    prepared = prepare(run, (DeviceAccess(), DeviceAccess()), master="127.0.0.1")

    file = launch_file(run, prepared, LocalAccess(mark="7.2.abc", cpus=(0, 1)))

    assert (file["key"], file["node"], file["user"]) == ("7.2", "n1", "ann")
    assert file["env"] == {**prepared.env, "MUSTER_ATTEMPT_KEY": "7.2.abc"}
    assert [each["stdout"] for each in file["tasks"]] == ["fit-0.out", "fit-1.out"]
    assert file["warn"] == {"signal": 10, "lead_ms": 5_000, "shell_only": False}
    assert file["checkpoint"] == {"path": "7.pt", "signal": 12}
    assert (file["memory_mib"], file["cpu_milli"]) == (200, 4_000)
    assert (file["limit_ms"], file["grace_ms"], file["cpus"]) == (60_000, 20_000, [0, 1])
