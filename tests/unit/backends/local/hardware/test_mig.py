import pytest

from muster.backends.base import Cut
from muster.backends.local.hardware.gpus import NvidiaInventory
from muster.backends.local.hardware.host import Cpus, Host
from muster.backends.local.hardware.mig import Create, Destroy, SwitchOff, SwitchOn, cut_steps
from muster.backends.local.hardware.nvml import Nvml, RawInstance
from muster.model.errors import BackendDownError
from muster.model.gpu import MigInstance
from muster.model.value import DeviceId, GpuModel, Instant, NodeId
from unit.backends.local.hardware.recorded_nvml import (
    RecordedGpu,
    RecordedInstance,
    RecordedLibrary,
)

H200 = GpuModel("H200-141GB")
UUID = "GPU-1"
NODE = NodeId("box")
HERE = Host(node=NODE, cpus=Cpus(by_numa={0: (0,)}, milli=1_000), memory_mib=1_024, labels={})
BIG = MigInstance(profile="3g.71gb", start=0)
MIDDLE = MigInstance(profile="2g.35gb", start=4)
SMALL = MigInstance(profile="1g.18gb", start=6)


def raw(id: int, wanted: MigInstance, *, placed: bool = True) -> RawInstance:
    start = wanted.start if placed else None
    return RawInstance(id=id, profile=wanted.profile, start=start, uuid=f"MIG-{id}")


def test_a_whole_gpu_is_switched_on_and_cut_from_the_largest_down() -> None:
    steps = cut_steps(H200, None, (SMALL, MIDDLE, BIG))

    assert steps == (
        SwitchOn(),
        Create(profile="3g.71gb", start=0, size=4),
        Create(profile="2g.35gb", start=4, size=2),
        Create(profile="1g.18gb", start=6, size=1),
    )


def test_what_stays_is_not_touched() -> None:
    steps = cut_steps(H200, (raw(1, BIG), raw(3, MIDDLE)), (BIG, SMALL))

    assert steps == (Destroy(instance=3), Create(profile="1g.18gb", start=6, size=1))


def test_what_is_already_so_takes_no_step() -> None:
    assert cut_steps(H200, (raw(1, BIG),), (BIG,)) == ()
    assert cut_steps(H200, None, None) == ()


def test_mig_mode_goes_off_after_the_last_instance() -> None:
    steps = cut_steps(H200, (raw(1, BIG), raw(3, MIDDLE)), None)

    assert steps == (Destroy(instance=1), Destroy(instance=3), SwitchOff())


def test_mig_mode_can_be_on_without_instances() -> None:
    assert cut_steps(H200, None, ()) == (SwitchOn(),)
    assert cut_steps(H200, (raw(1, BIG),), ()) == (Destroy(instance=1),)


def test_instances_without_places_are_matched_by_the_places_they_were_given() -> None:
    present = (raw(1, BIG, placed=False), raw(3, MIDDLE, placed=False))

    assert cut_steps(H200, present, (BIG,)) == (Destroy(instance=3),)


def test_a_gpu_is_cut_through_nvml() -> None:
    gpu = RecordedGpu(uuid=UUID)
    library = RecordedLibrary(gpu)
    inventory = NvidiaInventory(HERE, Nvml(library), mps=False)

    inventory.cut(cut(BIG, MIDDLE))

    assert library.calls == [
        ("mode", 1),
        ("create", 9, 0, 4),
        ("compute", 2),
        ("create", 14, 4, 2),
        ("compute", 1),
    ]
    assert set(inventory.nodes()[0].devices[0].mig or ()) == {BIG, MIDDLE}


def test_a_cut_is_news_at_the_next_poll() -> None:
    inventory = NvidiaInventory(HERE, Nvml(RecordedLibrary(RecordedGpu(uuid=UUID))), mps=False)

    inventory.cut(cut(BIG))
    polls = [inventory.poll(Instant(0)), inventory.poll(Instant(0))]
    inventory.close()

    assert polls == [True, False]


def test_a_gpu_is_cut_again_through_nvml() -> None:
    instances = {
        1: RecordedInstance(profile_id=9, start=0, compute=[2]),
        3: RecordedInstance(profile_id=14, start=4, compute=[1]),
    }
    library = RecordedLibrary(RecordedGpu(uuid=UUID, mig=True, instances=instances))
    inventory = NvidiaInventory(HERE, Nvml(library), mps=False)

    inventory.cut(cut(BIG, MigInstance(profile="1g.18gb", start=5)))

    assert library.calls == [("destroy", 3), ("create", 19, 5, 1), ("compute", 0)]


def test_a_gpu_that_is_made_whole_ends_with_mig_mode_off() -> None:
    instances = {1: RecordedInstance(profile_id=9, start=0, compute=[2])}
    library = RecordedLibrary(RecordedGpu(uuid=UUID, mig=True, instances=instances))
    inventory = NvidiaInventory(HERE, Nvml(library), mps=False)

    inventory.cut(Cut(node=NODE, device=DeviceId(UUID), instances=None))

    assert library.calls == [("destroy", 1), ("mode", 0)]
    assert inventory.nodes()[0].devices[0].mig is None


def test_mig_mode_is_not_switched_under_a_process() -> None:
    library = RecordedLibrary(RecordedGpu(uuid=UUID, pids=(17, 4)))
    inventory = NvidiaInventory(HERE, Nvml(library), mps=False)

    with pytest.raises(BackendDownError, match="processes 4, 17 use GPU 0"):
        inventory.cut(cut(BIG))

    assert library.calls == []


def test_a_switch_that_waits_for_a_reset_is_reported() -> None:
    library = RecordedLibrary(RecordedGpu(uuid=UUID, needs_reset=True))
    inventory = NvidiaInventory(HERE, Nvml(library), mps=False)

    with pytest.raises(BackendDownError, match="reset"):
        inventory.cut(cut(BIG))


def test_an_instance_in_use_is_left_alone_and_reported() -> None:
    instances = {1: RecordedInstance(profile_id=9, start=0, compute=[2])}
    library = RecordedLibrary(RecordedGpu(uuid=UUID, mig=True, instances=instances, pids=(4,)))
    inventory = NvidiaInventory(HERE, Nvml(library), mps=False)

    with pytest.raises(BackendDownError, match="cannot be cut"):
        inventory.cut(cut())

    assert inventory.nodes()[0].devices[0].mig == (BIG,)


def test_a_profile_that_the_gpu_does_not_offer_is_reported() -> None:
    library = RecordedLibrary(RecordedGpu(uuid=UUID, mig=True))
    inventory = NvidiaInventory(HERE, Nvml(library), mps=False)

    with pytest.raises(BackendDownError, match=r"it offers .*3g\.71gb"):
        inventory.cut(cut(MigInstance(profile="1g.5gb", start=0)))


def test_a_device_of_another_machine_cannot_be_cut_here() -> None:
    inventory = NvidiaInventory(HERE, Nvml(RecordedLibrary(RecordedGpu(uuid=UUID))), mps=False)

    with pytest.raises(BackendDownError, match="no device"):
        inventory.cut(Cut(node=NODE, device=DeviceId("GPU-9"), instances=None))


def cut(*instances: MigInstance) -> Cut:
    return Cut(node=NODE, device=DeviceId(UUID), instances=instances)
