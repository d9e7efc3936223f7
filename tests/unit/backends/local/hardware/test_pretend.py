from pathlib import Path

import pytest

from muster.backends.base import Cut
from muster.backends.local.hardware.machine import Machine, find_machine
from muster.backends.local.hardware.pretend import (
    BadPretendError,
    Pretend,
    PretendGpus,
    break_devices,
    parse_pretend,
)
from muster.model.cluster import BackendKind
from muster.model.errors import BackendDownError
from muster.model.gpu import Mig, MigInstance
from muster.model.placement import DeviceShare
from muster.model.value import DeviceId, GpuModel, Instant, NodeId

GPU0 = DeviceId("pretend1/gpu0")
NODE = NodeId("pretend1")
LAYOUT = (MigInstance(profile="3g.20gb", start=0), MigInstance(profile="1g.5gb", start=4))


def gpus(count: int, model: str, memory_mib: int) -> PretendGpus:
    return PretendGpus(count=count, model=GpuModel(model), memory_mib=memory_mib)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("4xA100-40GB", (gpus(4, "A100-40GB", 40_960),)),
        ("8xH100-80GB", (gpus(8, "H100-80GB", 81_559),)),
        (
            "2xA100-40GB+2xT4-16GB",
            (gpus(2, "A100-40GB", 40_960), gpus(2, "T4-16GB", 15_360)),
        ),
        (" 4 x A100-40gb ", (gpus(4, "A100-40GB", 40_960),)),
        ("L4-24GB", (gpus(1, "L4-24GB", 23_034),)),
        ("2xX9000-100GB", (gpus(2, "X9000-100GB", 102_400),)),
        ("0", ()),
        ("", ()),
        ("none", ()),
    ],
)
def test_pretend_gpus_are_read(text: str, found: tuple[PretendGpus, ...]) -> None:
    assert parse_pretend(text).gpus == found


@pytest.mark.parametrize("text", ["four", "4x", "0xA100-40GB", "4xA100-40GB+", "-1xT4-16GB", "4"])
def test_what_cannot_be_read_is_answered_with_an_example(text: str) -> None:
    with pytest.raises(BadPretendError, match=r"4xA100-40GB|X-40GB|-40GB"):
        parse_pretend(text)


def test_a_gpu_without_a_size_is_answered_with_the_sizes_it_has() -> None:
    with pytest.raises(BadPretendError, match="A100-40GB or A100-80GB"):
        parse_pretend("4xA100")


def test_more_gpus_than_a_machine_can_have_are_refused() -> None:
    with pytest.raises(BadPretendError, match="use more nodes"):
        parse_pretend("65xT4-16GB")


@pytest.mark.parametrize(("nodes", "cpus", "memory_gib"), [(0, 1, 1), (1, 0, 1), (1, 1, 0)])
def test_nodes_of_nothing_are_refused(nodes: int, cpus: int, memory_gib: int) -> None:
    with pytest.raises(BadPretendError):
        parse_pretend("0", nodes=nodes, cpus=cpus, memory_gib=memory_gib)


def test_pretend_nodes_say_that_they_are_pretend(tmp_path: Path) -> None:
    machine = machine_with(tmp_path, "4xA100-40GB", nodes=3)

    nodes = machine.nodes()

    assert [node.id for node in nodes] == ["pretend1", "pretend2", "pretend3"]
    assert all(node.pretend and node.labels["muster/pretend"] == "true" for node in nodes)
    assert nodes[1].devices[3].id == "pretend2/gpu3"
    assert (nodes[0].cpu_milli, nodes[0].memory_mib) == (32_000, 262_144)


def test_a_pretend_node_without_gpus_has_a_little_of_everything(tmp_path: Path) -> None:
    node = machine_with(tmp_path, "0").nodes()[0]

    assert (node.cpu_milli, node.memory_mib, node.devices) == (8_000, 32_768, ())


def test_a_pretend_node_has_the_cpus_and_memory_that_it_was_given(tmp_path: Path) -> None:
    pretend = parse_pretend("1xT4-16GB", cpus=2, memory_gib=4)

    node = find_machine(tmp_path, (pretend,)).nodes()[0]

    assert (node.cpu_milli, node.memory_mib) == (2_000, 4_096)


def test_the_cluster_can_cut_only_what_can_be_cut(tmp_path: Path) -> None:
    cuttable = machine_with(tmp_path, "1xA100-40GB").cluster()
    plain = machine_with(tmp_path, "1xT4-16GB").cluster()

    assert cuttable.name == "local"
    assert cuttable.backend is BackendKind.LOCAL
    assert (cuttable.abilities.mig, cuttable.abilities.repartition) == (True, True)
    assert (plain.abilities.mig, plain.abilities.repartition) == (False, False)
    assert (plain.abilities.mps, plain.abilities.suspend, plain.abilities.resize) == (
        True,
        True,
        False,
    )


def test_a_cut_survives_a_restart(tmp_path: Path) -> None:
    machine = machine_with(tmp_path, "2xA100-40GB")

    machine.cut(Cut(node=NODE, device=GPU0, instances=LAYOUT))

    again = machine_with(tmp_path, "2xA100-40GB")
    assert [device.mig for device in machine.nodes()[0].devices] == [LAYOUT, None]
    assert again.nodes() == machine.nodes()


def test_a_cut_is_news_at_the_next_poll(tmp_path: Path) -> None:
    machine = machine_with(tmp_path, "2xA100-40GB")

    machine.cut(Cut(node=NODE, device=GPU0, instances=LAYOUT))

    assert machine.poll(Instant(1))
    assert not machine.poll(Instant(2))


def test_mig_mode_can_be_turned_off_again(tmp_path: Path) -> None:
    machine = machine_with(tmp_path, "1xA100-40GB")

    machine.cut(Cut(node=NODE, device=GPU0, instances=LAYOUT))
    machine.cut(Cut(node=NODE, device=GPU0, instances=None))

    assert machine.nodes()[0].devices[0].mig is None
    assert machine_with(tmp_path, "1xA100-40GB").nodes() == machine.nodes()


def test_a_cut_of_gpus_that_were_declared_otherwise_is_forgotten(tmp_path: Path) -> None:
    machine_with(tmp_path, "1xA100-40GB").cut(Cut(node=NODE, device=GPU0, instances=LAYOUT))

    other = machine_with(tmp_path, "1xT4-16GB")

    assert other.nodes()[0].devices[0].mig is None


@pytest.mark.parametrize(
    ("gpus", "device", "profile"),
    [("1xT4-16GB", GPU0, "1g.5gb"), ("1xA100-40GB", GPU0, "9g.90gb"), ("0", GPU0, "1g.5gb")],
)
def test_what_cannot_be_cut_is_refused(
    tmp_path: Path, gpus: str, device: DeviceId, profile: str
) -> None:
    machine = machine_with(tmp_path, gpus)

    with pytest.raises(BackendDownError):
        machine.cut(
            Cut(node=NODE, device=device, instances=(MigInstance(profile=profile, start=0),))
        )


def test_a_broken_device_is_seen_at_the_next_poll(tmp_path: Path) -> None:
    machine = machine_with(tmp_path, "2xA100-40GB")

    break_devices(tmp_path, {GPU0: "Xid 79: fallen off the bus"})

    assert machine.poll(Instant(1))
    assert [device.healthy for device in machine.nodes()[0].devices] == [False, True]
    assert machine.nodes()[0].devices[0].reason == "Xid 79: fallen off the bus"
    assert not machine.poll(Instant(2))


def test_a_device_that_is_mended_is_well_again(tmp_path: Path) -> None:
    machine = machine_with(tmp_path, "2xA100-40GB")
    break_devices(tmp_path, {GPU0: "Xid 79"})
    machine.poll(Instant(1))

    machine.resume(NODE)

    assert machine.poll(Instant(2))
    assert all(device.healthy for device in machine.nodes()[0].devices)


def test_a_faults_file_that_nobody_can_read_breaks_nothing(tmp_path: Path) -> None:
    machine = machine_with(tmp_path, "1xA100-40GB")

    (tmp_path / "pretend-faults.json").write_text('{"pretend1/gpu0": ', encoding="utf-8")

    assert not machine.poll(Instant(1))


def test_a_device_that_broke_before_the_start_is_broken_from_the_start(tmp_path: Path) -> None:
    break_devices(tmp_path, {GPU0: "Xid 48"})

    assert not machine_with(tmp_path, "1xA100-40GB").nodes()[0].devices[0].healthy


def test_a_task_sees_pretend_gpus_by_their_number(tmp_path: Path) -> None:
    machine = machine_with(tmp_path, "4xA100-40GB")

    seen = machine.visible(DeviceShare(device=DeviceId("pretend1/gpu3")))

    assert seen == "3"


def test_each_pretend_instance_has_a_name_of_its_own(tmp_path: Path) -> None:
    machine = machine_with(tmp_path, "1xA100-40GB")

    names = {
        machine.visible(DeviceShare(device=GPU0, slice=Mig(profile="1g.5gb"), start=start))
        for start in range(7)
    }

    assert len(names) == 7
    assert all(name.startswith("MIG-") for name in names)


def test_doctor_learns_that_all_this_is_pretence(tmp_path: Path) -> None:
    assert "pretend" in machine_with(tmp_path, "1xA100-40GB").remarks()[0]


def machine_with(home: Path, gpus: str, nodes: int = 1) -> Machine:
    pretend: Pretend = parse_pretend(gpus, nodes=nodes)
    return find_machine(home, (pretend,))
