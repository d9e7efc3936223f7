from pathlib import Path

from muster.backends.local.hardware.gpus import NvidiaInventory
from muster.backends.local.hardware.host import Cpus, Host
from muster.backends.local.hardware.inventory import CLUSTER, POOL
from muster.backends.local.hardware.machine import Machine, find_machine
from muster.backends.local.hardware.pinning import Pinning, choose
from muster.backends.local.hardware.pretend import parse_pretend
from muster.model.gpu import MpsShare
from muster.model.placement import Allocation, DeviceShare, Placement
from muster.model.resources import Resources
from muster.model.value import DeviceId, Instant, JobId, NodeId

NOWHERE = frozenset[int]()
CPUS = Cpus(by_numa={0: (0, 1, 2, 3), 1: (4, 5, 6, 7)}, milli=8_000)


def test_the_real_machine_is_one_node_with_an_honest_cluster(tmp_path: Path) -> None:
    machine = find_machine(tmp_path, ())

    (node,) = machine.nodes()
    cluster = machine.cluster()
    machine.close()

    assert not node.pretend
    assert node.cpu_milli > 0
    assert (cluster.abilities.suspend, cluster.abilities.resize) == (True, False)
    assert cluster.abilities.mig <= bool(node.devices)


def test_cpus_near_the_gpus_come_first() -> None:
    assert choose(CPUS.by_numa, 2, near=frozenset({1})) == (4, 5)


def test_a_node_that_has_least_left_is_filled_up_first() -> None:
    assert choose({0: (0, 1, 2, 3), 1: (6, 7)}, 2, near=NOWHERE) == (6, 7)


def test_an_attempt_stays_on_one_numa_node_if_one_has_room() -> None:
    assert choose({0: (0,), 1: (4, 5, 6)}, 3, near=frozenset({0})) == (4, 5, 6)


def test_an_attempt_that_is_larger_than_a_numa_node_takes_several() -> None:
    assert choose(CPUS.by_numa, 6, near=frozenset({1})) == (0, 1, 4, 5, 6, 7)


def test_where_there_are_too_few_cpus_nobody_is_pinned() -> None:
    assert choose({0: (0,)}, 2, near=NOWHERE) == ()
    assert choose({0: (0,)}, 0, near=NOWHERE) == ()


def test_pinned_cpus_belong_to_one_attempt(tmp_path: Path) -> None:
    machine = real(tmp_path)

    first = machine.cpus(allocation(1, cpu_milli=3_000))
    second = machine.cpus(allocation(2, cpu_milli=3_000))
    third = machine.cpus(allocation(3, cpu_milli=3_000))

    assert (first, second, third) == ((0, 1, 2), (4, 5, 6), ())


def test_asked_twice_the_cpus_are_the_same(tmp_path: Path) -> None:
    machine = real(tmp_path)

    first = machine.cpus(allocation(1, cpu_milli=2_000))

    assert machine.cpus(allocation(1, cpu_milli=2_000)) == first


def test_freed_cpus_are_given_again(tmp_path: Path) -> None:
    machine = real(tmp_path)
    first = machine.cpus(allocation(1, cpu_milli=4_000))

    machine.free(JobId(1), 1)
    machine.free(JobId(1), 1)

    assert machine.cpus(allocation(2, cpu_milli=4_000)) == first


def test_a_part_of_a_cpu_is_not_pinned(tmp_path: Path) -> None:
    machine = real(tmp_path)

    assert machine.cpus(allocation(1, cpu_milli=500)) == ()
    assert machine.cpus(allocation(2, cpu_milli=0)) == ()


def test_after_a_restart_the_living_keep_their_cpus(tmp_path: Path) -> None:
    before = real(tmp_path)
    before.cpus(allocation(1, cpu_milli=2_000))
    kept = before.cpus(allocation(2, cpu_milli=2_000))

    after = real(tmp_path)
    after.adopt((allocation(2, cpu_milli=2_000),))

    assert after.cpus(allocation(2, cpu_milli=2_000)) == kept
    assert after.cpus(allocation(3, cpu_milli=2_000)) == (0, 1)


def test_cpus_that_are_gone_after_a_restart_are_not_given(tmp_path: Path) -> None:
    Pinning(CPUS, tmp_path / "cpus.json").give(JobId(1), 1, count=8, near=NOWHERE)

    fewer = Pinning(Cpus(by_numa={0: (0, 1)}, milli=2_000), tmp_path / "cpus.json")

    assert fewer.give(JobId(2), 1, count=2, near=NOWHERE) == (0, 1)


def test_on_pretend_nodes_nobody_is_pinned(tmp_path: Path) -> None:
    machine = find_machine(tmp_path, (parse_pretend("1xA100-40GB"),))

    assert machine.cpus(allocation(1, cpu_milli=2_000)) == ()
    machine.free(JobId(1), 1)
    machine.adopt(())


def test_pretend_shares_have_limits_and_no_daemon(tmp_path: Path) -> None:
    machine = find_machine(tmp_path, (parse_pretend("1xA100-40GB"),))
    share = DeviceShare(device=DeviceId("pretend1/gpu0"), slice=MpsShare(milli=500))
    placed = placement(cpu_milli=1_000, devices=(share,))

    env = machine.sharing(placed)
    machine.release(placed)

    assert env == {
        "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE": "50",
        "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT": "0=20480M",
    }


def test_a_task_with_whole_gpus_needs_no_sharing(tmp_path: Path) -> None:
    machine = find_machine(tmp_path, (parse_pretend("1xA100-40GB"),))
    whole = DeviceShare(device=DeviceId("pretend1/gpu0"))

    assert machine.sharing(placement(cpu_milli=1_000, devices=(whole,))) == {}


def real(home: Path) -> Machine:
    here = Host(node=NodeId("box"), cpus=CPUS, memory_mib=1_024, labels={})
    return Machine(NvidiaInventory(here, None, mps=False), cores=Pinning(CPUS, home / "cpus.json"))


def allocation(job: int, *, cpu_milli: int) -> Allocation:
    return Allocation(
        job=JobId(job),
        attempt=1,
        cluster=CLUSTER,
        placements=(placement(cpu_milli=cpu_milli),),
        placed_at=Instant(0),
    )


def placement(*, cpu_milli: int, devices: tuple[DeviceShare, ...] = ()) -> Placement:
    return Placement(
        group="main",
        index=0,
        node=NodeId("box"),
        pool=POOL,
        amount=Resources(cpu_milli=cpu_milli, memory_mib=1),
        devices=devices,
    )
