import time
from collections.abc import Callable, Generator, Iterable
from contextlib import contextmanager
from itertools import count, repeat
from threading import Event

import pytest

from muster.backends.local.gpus import NvidiaFleet, found_fleet, link_lines
from muster.backends.local.hardware import Cpus, Hardware
from muster.backends.local.nvml import Nvml, NvmlError, RawGpu
from muster.backends.local.watch import Watch
from muster.model.errors import BackendDownError
from muster.model.gpu import Mig, MigInstance, TimeShare
from muster.model.placement import DeviceShare
from muster.model.value import DeviceId, Instant, NodeId
from unit.backends.local.recorded_nvml import (
    RecordedGpu,
    RecordedInstance,
    RecordedLibrary,
)

HERE = Hardware(
    node=NodeId("box"),
    cpus=Cpus(by_numa={0: (0, 1)}, milli=2_000),
    memory_mib=1_024,
    labels={"muster/arch": "x86_64"},
)
UUID = "GPU-11111111-2222-3333-4444-555555555555"
DEVICE = DeviceId(UUID)
CUT = {
    3: RecordedInstance(profile_id=14, start=4),
    1: RecordedInstance(profile_id=9, start=0),
    7: RecordedInstance(profile_id=19, start=6),
}


@contextmanager
def fleet_of(library: RecordedLibrary, *, mps: bool = True) -> Generator[NvidiaFleet]:
    fleet = NvidiaFleet(HERE, Nvml(library), mps=mps)
    try:
        yield fleet
    finally:
        fleet.close()


def test_a_gpu_is_found_with_what_it_has() -> None:
    with fleet_of(RecordedLibrary(RecordedGpu(uuid=UUID))) as fleet:
        (node,) = fleet.nodes()

    (device,) = node.devices
    assert (node.id, node.cpu_milli, node.memory_mib, node.pretend) == ("box", 2_000, 1_024, False)
    assert (device.id, device.index, device.model) == (UUID, 0, "H200-141GB")
    assert (device.memory_mib, device.healthy, device.mig) == (143_771, True, None)
    assert node.labels == {
        "muster/arch": "x86_64",
        "gpu.model": "H200-141GB",
        "gpu.driver": "580.159.04",
        "gpu.cuda": "13.0",
    }


def test_a_machine_with_several_models_has_no_single_model() -> None:
    mixed = RecordedLibrary(
        RecordedGpu(uuid="GPU-a"), RecordedGpu(uuid="GPU-b", product="Tesla T4", memory_mib=15_360)
    )

    with fleet_of(mixed) as fleet:
        (node,) = fleet.nodes()

    assert [device.model for device in node.devices] == ["H200-141GB", "T4-16GB"]
    assert "gpu.model" not in node.labels


def test_a_machine_without_nvml_has_no_gpus_and_says_why() -> None:
    fleet = found_fleet(HERE, mps=True)

    if fleet.nodes()[0].devices:
        pytest.skip("this machine has an NVIDIA GPU")
    assert not fleet.abilities().mps
    assert not fleet.poll(Instant(0))
    assert "no GPUs" in fleet.remarks()[0]
    fleet.close()


def test_a_gpu_that_is_lost_at_the_start_is_remarked_on() -> None:
    library = RecordedLibrary(RecordedGpu(uuid="GPU-a", lost=True), RecordedGpu(uuid="GPU-b"))

    with fleet_of(library) as fleet:
        assert [device.id for device in fleet.nodes()[0].devices] == ["GPU-b"]
        assert fleet.remarks()[0].startswith("GPU 0 does not answer")


def test_a_gpu_that_knows_no_mig_is_whole() -> None:
    library = RecordedLibrary(
        RecordedGpu(uuid=UUID, product="Tesla T4", memory_mib=15_360, mig=None, uncorrected=None)
    )

    with fleet_of(library) as fleet:
        assert fleet.nodes()[0].devices[0].mig is None
        assert not fleet.abilities().mig
        assert fleet.abilities().mps


def test_without_the_control_program_there_is_no_mps() -> None:
    with fleet_of(RecordedLibrary(RecordedGpu(uuid=UUID)), mps=False) as fleet:
        assert not fleet.abilities().mps
        assert fleet.abilities().mig


def test_instances_are_found_where_they_lie() -> None:
    library = RecordedLibrary(RecordedGpu(uuid=UUID, mig=True, instances=dict(CUT)))

    with fleet_of(library) as fleet:
        mig = fleet.nodes()[0].devices[0].mig

    assert mig is not None
    assert {(one.profile, one.start) for one in mig} == {
        ("3g.71gb", 0),
        ("2g.35gb", 4),
        ("1g.18gb", 6),
    }


def test_without_rights_instances_get_places_that_could_be_theirs() -> None:
    gpu = RecordedGpu(uuid=UUID, mig=True, instances=dict(CUT))

    with fleet_of(RecordedLibrary(gpu, privileged=False)) as fleet:
        mig = fleet.nodes()[0].devices[0].mig

    assert mig == (
        MigInstance(profile="3g.71gb", start=0),
        MigInstance(profile="2g.35gb", start=4),
        MigInstance(profile="1g.18gb", start=6),
    )


def test_a_task_sees_what_it_was_given() -> None:
    library = RecordedLibrary(RecordedGpu(uuid=UUID, mig=True, instances=dict(CUT)))

    with fleet_of(library) as fleet:
        whole = fleet.visible(DeviceShare(device=DEVICE))
        turn = fleet.visible(DeviceShare(device=DEVICE, slice=TimeShare(replicas=4)))
        part = fleet.visible(DeviceShare(device=DEVICE, slice=Mig(profile="2g.35gb"), start=4))

    assert (whole, turn, part) == (UUID, UUID, f"MIG-{UUID}/3")


def test_an_instance_that_is_not_there_cannot_be_seen() -> None:
    with (
        fleet_of(RecordedLibrary(RecordedGpu(uuid=UUID, mig=True))) as fleet,
        pytest.raises(BackendDownError, match="no MIG instance"),
    ):
        fleet.visible(DeviceShare(device=DEVICE, slice=Mig(profile="2g.35gb"), start=4))


def test_links_are_told_by_who_is_at_the_other_end() -> None:
    gpus = (
        RawGpu(index=0, uuid="a", product="x", memory_bytes=1, bus_id="00000000:0A:00.0"),
        RawGpu(
            index=1,
            uuid="b",
            product="x",
            memory_bytes=1,
            bus_id="00000000:0B:00.0",
            links=("0000:0a:00.0", "0000:0A:00.0", "switch"),
        ),
    )

    assert link_lines(gpus) == ("GPU 1 to GPU 0: 2 NVLinks", "GPU 1 to switch: 1 NVLinks")


def test_links_are_read() -> None:
    library = RecordedLibrary(RecordedGpu(uuid=UUID, links={0: "switch", 3: "00000000:0B:00.0"}))

    gpus, _ = Nvml(library).gpus()

    assert gpus[0].links == ("switch", "00000000:0B:00.0")


def test_a_critical_error_breaks_its_device_at_a_poll() -> None:
    library = RecordedLibrary(RecordedGpu(uuid="GPU-a"), RecordedGpu(uuid="GPU-b"))

    with fleet_of(library) as fleet:
        library.xids.append(("GPU-b", 79))
        polled_until(fleet, lambda: not fleet.nodes()[0].devices[1].healthy)
        devices = fleet.nodes()[0].devices

    assert devices[0].healthy
    assert devices[1].reason == "Xid 79: fallen off the bus"


def test_an_error_that_names_no_device_breaks_them_all() -> None:
    library = RecordedLibrary(RecordedGpu(uuid="GPU-a"), RecordedGpu(uuid="GPU-b"))

    with fleet_of(library) as fleet:
        library.xids.append(("", 79))
        polled_until(fleet, lambda: not any(d.healthy for d in fleet.nodes()[0].devices))


def test_a_gpu_that_is_lost_breaks_and_can_be_resumed() -> None:
    gpu = RecordedGpu(uuid=UUID)
    library = RecordedLibrary(gpu)

    with fleet_of(library) as fleet:
        gpu.lost = True
        polled_until(fleet, lambda: not fleet.nodes()[0].devices[0].healthy)
        reason = fleet.nodes()[0].devices[0].reason
        fleet.resume(NodeId("another"))
        fleet.poll(Instant(0))
        still = fleet.nodes()[0].devices[0].healthy
        fleet.resume(NodeId("box"))
        fleet.poll(Instant(0))
        after = fleet.nodes()[0].devices[0].healthy

    assert "lost" in reason
    assert (still, after) == (False, True)


def test_readings_are_what_nvml_said() -> None:
    gpu = RecordedGpu(uuid=UUID, uncorrected=5, remapped=(1, 2, 1, 0), advice=4)
    nvml = Nvml(RecordedLibrary(gpu))

    reading = nvml.reading(UUID)

    assert (reading.uncorrected, reading.remap_pending, reading.remap_failed) == (5, True, False)
    assert reading.advice == 4


def test_a_refusal_carries_its_code() -> None:
    nvml = Nvml(RecordedLibrary(RecordedGpu(uuid=UUID, lost=True)))

    with pytest.raises(NvmlError) as refused:
        nvml.device(UUID)

    assert refused.value.code == 15


def test_the_watch_wakes_us_with_its_first_look_and_ends_when_told_to() -> None:
    library = RecordedLibrary(RecordedGpu(uuid=UUID))
    woken = Event()
    watch = Watch(Nvml(library), (DEVICE,), woken.set)

    assert woken.wait(20)
    assert watch.close()


def test_the_library_is_shut_when_the_fleet_is_closed() -> None:
    library = RecordedLibrary(RecordedGpu(uuid=UUID))

    with fleet_of(library) as fleet:
        fleet.poll(Instant(0))

    assert library.shut


def test_a_driver_that_hangs_breaks_all_devices_until_it_answers() -> None:
    library = RecordedLibrary(RecordedGpu(uuid=UUID))
    library.answers.clear()

    with fleet_of(library) as fleet:
        clock = count(0, 5_000)
        polled_until(fleet, lambda: not fleet.nodes()[0].devices[0].healthy, clock)
        silent = fleet.nodes()[0].devices[0]
        library.answers.set()
        library.xids.append((UUID, 13))
        polled_until(fleet, lambda: fleet.nodes()[0].devices[0].healthy)

    assert "does not answer" in silent.reason


def test_a_pause_of_our_own_is_not_the_drivers() -> None:
    library = RecordedLibrary(RecordedGpu(uuid=UUID))
    library.answers.clear()

    with fleet_of(library) as fleet:
        fleet.poll(Instant(0))
        fleet.poll(Instant(3_600_000))
        device = fleet.nodes()[0].devices[0]
        library.answers.set()

    assert device.healthy


def polled_until(
    fleet: NvidiaFleet, happened: Callable[[], bool], clock: Iterable[int] = repeat(0)
) -> None:
    deadline = time.monotonic() + 20
    for now in clock:
        if time.monotonic() > deadline:
            break
        fleet.poll(Instant(now))
        if happened():
            return
        time.sleep(0.01)
    pytest.fail("it did not happen in time")
