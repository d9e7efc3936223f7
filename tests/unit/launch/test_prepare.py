from muster.launch.attempt import DeviceAccess, in_rank_order
from muster.launch.prepare import HostFile, master_port, prepare
from muster.model.launch import Checkpointing, Launch
from muster.model.resources import Resources
from muster.model.site import Confinement
from muster.model.value import replace
from unit.launch.given import placed, task

NOTHING = DeviceAccess()


def test_ports_lie_where_nobody_else_looks() -> None:
    ports = [master_port(job, 1) for job in range(0, 100_000, 997)]

    assert all(20_000 <= port < 60_000 for port in ports)
    assert len(set(ports)) > 90


def test_ranks_follow_the_groups_of_the_job() -> None:
    attempt = placed(task(0, "n1", group="aux"), task(1, "n1"), task(0, "n1"))

    placements = in_rank_order(attempt).allocation.placements

    assert [(each.group, each.index) for each in placements] == [
        ("main", 0),
        ("main", 1),
        ("aux", 0),
    ]


def test_a_prepared_attempt_has_all_that_an_engine_needs() -> None:
    launch = Launch(
        argv=("train", "--fast"),
        env={"A": "b", "MUSTER_JOB_ID": "forged"},
        stdout="%x-%t.out",
        checkpoint=Checkpointing(path="%j.pt", signal=12),
    )
    attempt = placed(task(0, "n1"), task(1, "n1"), launch=launch)

    prepared = prepare(attempt, (NOTHING, NOTHING), master="n1")

    assert prepared.env["A"] == "b"
    assert prepared.env["MUSTER_CHECKPOINT_PATH"] == "7.pt"
    assert prepared.env["MUSTER_JOB_ID"] == "7"
    assert prepared.env["MASTER_ADDR"] == "n1"
    assert [each.stdout for each in prepared.tasks] == ["fit-0.out", "fit-1.out"]
    assert prepared.checkpoint == Checkpointing(path="7.pt", signal=12)
    assert (prepared.memory_mib, prepared.cpu_milli) == (200, 4_000)


def test_scripts_of_other_batch_systems_find_a_host_file() -> None:
    attempt = placed(task(0, "n1"), task(1, "n2"), launch=Launch(env={"LS_SUBCWD": "/w"}))

    prepared = prepare(attempt, (NOTHING, NOTHING), master="n1")

    assert prepared.host_file == HostFile(text="n1\nn1\nn2\nn2\n", variables=("LSB_DJOB_HOSTFILE",))
    assert prepare(placed(task(0, "n1")), (NOTHING,), master="n1").host_file is None


def test_no_memory_limit_is_so_small_that_a_shell_could_not_start() -> None:
    small = replace(task(0, "n1"), amount=Resources(cpu_milli=1_000, memory_mib=5))

    assert prepare(placed(small), (NOTHING,), master="n1").memory_mib == 30


def test_a_site_can_let_jobs_use_more_memory_than_they_asked_for() -> None:
    attempt = replace(placed(task(0, "n1")), confinement=Confinement(memory=False))

    assert prepare(attempt, (NOTHING,), master="n1").memory_mib == 0
