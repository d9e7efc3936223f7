import time
from collections.abc import Callable, Generator, Iterable
from contextlib import contextmanager
from itertools import count, repeat
from pathlib import Path
from threading import Event

import pytest

from muster.backends.local.hardware.gpu_watch import Watch, Watched
from muster.backends.local.hardware.gpus import (
    NvidiaInventory,
    Upkeep,
    find_inventory,
    link_lines,
)
from muster.backends.local.hardware.health_file import HealthFile
from muster.backends.local.hardware.host import Cpus, Host
from muster.backends.local.hardware.nvml import Nvml, NvmlError, RawGpu
from muster.backends.local.hardware.smoking import SmokeResult, SmokeTests
from muster.backends.local.measuring.gpu_sampler import GpuSampler, SampledNode
from muster.model.errors import BackendDownError
from muster.model.gpu import DeviceState, Mig, MigInstance, TimeShare
from muster.model.placement import DeviceShare
from muster.model.value import DeviceId, Instant, NodeId
from unit.backends.local.hardware.recorded_nvml import (
    RecordedGpu,
    RecordedInstance,
    RecordedLibrary,
)

HERE = Host(
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
def fleet_of(
    library: RecordedLibrary,
    *,
    mps: bool = True,
    smoke_tests: SmokeTests | None = None,
    memory: HealthFile | None = None,
) -> Generator[NvidiaInventory]:
    upkeep = Upkeep(smoke_tests=smoke_tests, memory=memory)
    inventory = NvidiaInventory(HERE, Nvml(library), mps=mps, upkeep=upkeep)
    try:
        yield inventory
    finally:
        inventory.close()


def test_a_gpu_is_found_with_what_it_has() -> None:
    with fleet_of(RecordedLibrary(RecordedGpu(uuid=UUID))) as inventory:
        (node,) = inventory.nodes()

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

    with fleet_of(mixed) as inventory:
        (node,) = inventory.nodes()

    assert [device.model for device in node.devices] == ["H200-141GB", "T4-16GB"]
    assert "gpu.model" not in node.labels


def test_a_machine_without_nvml_has_no_gpus_and_says_why() -> None:
    inventory = find_inventory(HERE, mps=True)

    if inventory.nodes()[0].devices:
        pytest.skip("this machine has an NVIDIA GPU")
    assert not inventory.abilities().mps
    assert not inventory.poll(Instant(0))
    assert "no GPUs" in inventory.remarks()[0]
    inventory.close()


def test_a_gpu_that_is_lost_at_the_start_is_remarked_on() -> None:
    library = RecordedLibrary(RecordedGpu(uuid="GPU-a", lost=True), RecordedGpu(uuid="GPU-b"))

    with fleet_of(library) as inventory:
        assert [device.id for device in inventory.nodes()[0].devices] == ["GPU-b"]
        assert inventory.remarks()[0].startswith("GPU 0 does not answer")


def test_a_gpu_that_knows_no_mig_is_whole() -> None:
    library = RecordedLibrary(
        RecordedGpu(uuid=UUID, product="Tesla T4", memory_mib=15_360, mig=None, uncorrected=None)
    )

    with fleet_of(library) as inventory:
        assert inventory.nodes()[0].devices[0].mig is None
        assert not inventory.abilities().mig
        assert inventory.abilities().mps


def test_without_the_control_program_there_is_no_mps() -> None:
    with fleet_of(RecordedLibrary(RecordedGpu(uuid=UUID)), mps=False) as inventory:
        assert not inventory.abilities().mps
        assert inventory.abilities().mig


def test_instances_are_found_where_they_lie() -> None:
    library = RecordedLibrary(RecordedGpu(uuid=UUID, mig=True, instances=dict(CUT)))

    with fleet_of(library) as inventory:
        mig = inventory.nodes()[0].devices[0].mig

    assert mig is not None
    assert {(one.profile, one.start) for one in mig} == {
        ("3g.71gb", 0),
        ("2g.35gb", 4),
        ("1g.18gb", 6),
    }


def test_without_rights_instances_get_places_that_could_be_theirs() -> None:
    gpu = RecordedGpu(uuid=UUID, mig=True, instances=dict(CUT))

    with fleet_of(RecordedLibrary(gpu, privileged=False)) as inventory:
        mig = inventory.nodes()[0].devices[0].mig

    assert mig == (
        MigInstance(profile="3g.71gb", start=0),
        MigInstance(profile="2g.35gb", start=4),
        MigInstance(profile="1g.18gb", start=6),
    )


def test_a_task_sees_what_it_was_given() -> None:
    library = RecordedLibrary(RecordedGpu(uuid=UUID, mig=True, instances=dict(CUT)))

    with fleet_of(library) as inventory:
        whole = inventory.visible(DeviceShare(device=DEVICE))
        turn = inventory.visible(DeviceShare(device=DEVICE, slice=TimeShare(replicas=4)))
        part = inventory.visible(DeviceShare(device=DEVICE, slice=Mig(profile="2g.35gb"), start=4))

    assert (whole, turn, part) == (UUID, UUID, f"MIG-{UUID}/3")


def test_an_instance_that_is_not_there_cannot_be_seen() -> None:
    with (
        fleet_of(RecordedLibrary(RecordedGpu(uuid=UUID, mig=True))) as inventory,
        pytest.raises(BackendDownError, match="no MIG instance"),
    ):
        inventory.visible(DeviceShare(device=DEVICE, slice=Mig(profile="2g.35gb"), start=4))


def test_links_are_reported_by_who_is_at_the_other_end() -> None:
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

    with fleet_of(library) as inventory:
        library.xids.append(("GPU-b", 79))
        polled_until(inventory, lambda: not inventory.nodes()[0].devices[1].healthy)
        devices = inventory.nodes()[0].devices

    assert devices[0].healthy
    assert devices[1].reason == "Xid 79: fallen off the bus"


def test_an_error_that_names_no_device_breaks_them_all() -> None:
    library = RecordedLibrary(RecordedGpu(uuid="GPU-a"), RecordedGpu(uuid="GPU-b"))

    with fleet_of(library) as inventory:
        library.xids.append(("", 79))
        polled_until(inventory, lambda: not any(d.healthy for d in inventory.nodes()[0].devices))


class ToldTests(SmokeTests):
    """Smoke tests that end when they are told to."""

    def __init__(self) -> None:
        self.running: dict[DeviceId, str] = {}
        self.results: list[SmokeResult] = []

    def begin(self, device: DeviceId, visible: str) -> None:
        self.running[device] = visible

    def end(self, device: DeviceId, wrong: str | None = None) -> None:
        del self.running[device]
        self.results.append(SmokeResult(device=device, wrong=wrong))

    def over(self) -> tuple[SmokeResult, ...]:
        found, self.results = tuple(self.results), []
        return found

    def close(self) -> None:
        self.running.clear()


def test_a_gpu_that_is_lost_breaks_and_is_tested_before_it_comes_back() -> None:
    gpu, tests = RecordedGpu(uuid=UUID), ToldTests()
    library = RecordedLibrary(gpu)

    with fleet_of(library, smoke_tests=tests) as inventory:
        gpu.lost = True
        polled_until(inventory, lambda: not inventory.nodes()[0].devices[0].healthy)
        reason = inventory.nodes()[0].devices[0].reason
        inventory.resume(NodeId("another"))
        inventory.poll(Instant(0))
        still = inventory.nodes()[0].devices[0].healthy
        inventory.resume(NodeId("box"))
        inventory.poll(Instant(0))
        waiting = inventory.nodes()[0].devices[0].state
        tests.end(DEVICE)
        inventory.poll(Instant(0))
        after = inventory.nodes()[0].devices[0].state

    assert "lost" in reason
    assert not still
    assert (waiting, after) == (DeviceState.PROBATION, DeviceState.WELL)


def test_a_gpu_that_was_broken_is_tested_when_muster_starts_again(tmp_path: Path) -> None:
    gpu, tests = RecordedGpu(uuid=UUID), ToldTests()
    library = RecordedLibrary(gpu)
    with fleet_of(library, memory=HealthFile(tmp_path)) as inventory:
        library.xids.append((UUID, 79))
        polled_until(inventory, lambda: not inventory.nodes()[0].devices[0].healthy)
        told = inventory.errors()

    library = RecordedLibrary(gpu)
    with fleet_of(library, memory=HealthFile(tmp_path), smoke_tests=tests) as inventory:
        inventory.poll(Instant(0))
        waiting = inventory.nodes()[0].devices[0].state
        tests.end(DEVICE, wrong="3 words")
        inventory.poll(Instant(0))
        (device,) = inventory.nodes()[0].devices

    assert [(each.device, each.xid) for each in told] == [(UUID, 79)]
    assert waiting is DeviceState.PROBATION
    assert (device.state, "3 words" in device.reason) == (DeviceState.BROKEN, True)


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


def test_the_watch_wakes_us_with_its_first_look_and_ends_when_asked_to() -> None:
    library = RecordedLibrary(RecordedGpu(uuid=UUID))
    woken = Event()
    nvml = Nvml(library)
    sampler = GpuSampler(nvml, SampledNode(node=NodeId("n1")))
    watched = Watched(devices=(DEVICE,), gpus=lambda: nvml.gpus()[0], sampler=sampler)
    watch = Watch(nvml, watched, woken.set)

    assert woken.wait(20)
    assert watch.close()


def test_the_library_is_shut_when_the_fleet_is_closed() -> None:
    library = RecordedLibrary(RecordedGpu(uuid=UUID))

    with fleet_of(library) as inventory:
        inventory.poll(Instant(0))

    assert library.shut


def test_a_driver_that_hangs_breaks_all_devices_until_it_answers() -> None:
    library = RecordedLibrary(RecordedGpu(uuid=UUID))
    library.answers.clear()

    with fleet_of(library) as inventory:
        clock = count(0, 5_000)
        polled_until(inventory, lambda: not inventory.nodes()[0].devices[0].healthy, clock)
        silent = inventory.nodes()[0].devices[0]
        library.answers.set()
        library.xids.append((UUID, 13))
        polled_until(inventory, lambda: inventory.nodes()[0].devices[0].healthy)

    assert "does not answer" in silent.reason


def test_a_pause_of_our_own_is_not_the_drivers() -> None:
    library = RecordedLibrary(RecordedGpu(uuid=UUID))
    library.answers.clear()

    with fleet_of(library) as inventory:
        inventory.poll(Instant(0))
        inventory.poll(Instant(3_600_000))
        device = inventory.nodes()[0].devices[0]
        library.answers.set()

    assert device.healthy


def polled_until(
    inventory: NvidiaInventory, happened: Callable[[], bool], clock: Iterable[int] = repeat(0)
) -> None:
    deadline = time.monotonic() + 20
    for now in clock:
        if time.monotonic() > deadline:
            break
        inventory.poll(Instant(now))
        if happened():
            return
        time.sleep(0.01)
    pytest.fail("it did not happen in time")
