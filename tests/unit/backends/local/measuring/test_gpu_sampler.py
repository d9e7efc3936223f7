from muster.backends.local.hardware.nvml import Nvml
from muster.backends.local.measuring.gpm import share_of
from muster.backends.local.measuring.gpu_sampler import GpuSampler, SampledNode, throttles_of
from muster.backends.local.measuring.sampling import with_owners
from muster.model.samples import DeviceSample, Throttle
from muster.model.value import Instant, JobId, NodeId
from unit.backends.local.hardware.recorded_nvml import (
    RecordedGpu,
    RecordedInstance,
    RecordedLibrary,
)

WHERE = SampledNode(node=NodeId("n1"), driver="580")


def looks(library: RecordedLibrary, *instants: int) -> list[tuple[DeviceSample, ...]]:
    nvml = Nvml(library)
    sampler = GpuSampler(nvml, WHERE)
    found: list[tuple[DeviceSample, ...]] = []
    for at in instants:
        gpus, _ = nvml.gpus()
        found.append(sampler.look(gpus, Instant(at)))
    sampler.close()
    return found


def test_a_gpu_tells_what_it_can_and_leaves_out_what_it_cannot() -> None:
    gpu = RecordedGpu("GPU-1", fields={83: 5_000, 185: 300_000, 269: 7})

    ((sample,),) = looks(RecordedLibrary(gpu), 1_000)

    assert (sample.device, sample.node, sample.driver) == ("GPU-1", "n1", "580")
    assert (sample.busy_milli, sample.copy_milli, sample.temperature_c) == (400, 100, 41)
    assert (sample.power_mw, sample.energy_mj_total) == (300_000, 5_000)
    assert sample.throttled_ns == {"sw_thermal": 7}
    assert sample.throttles == (Throttle.POWER_CAP, Throttle.HW_THERMAL)
    assert (sample.sm_clock_mhz, sample.margin_c, sample.activity) == (None, None, None)
    assert sample.memory_bytes == gpu.memory_mib << 20


def test_activity_is_the_mean_between_two_looks() -> None:
    gpu = RecordedGpu("GPU-1", activity={2: 55.5, 10: 101.0, 20: 2.0})
    library = RecordedLibrary(gpu)

    (first,), (second,) = looks(library, 1_000, 16_000)

    assert first.activity is None
    assert second.interval_ms == 15_000
    assert second.activity is not None
    assert (second.activity.sm_milli, second.activity.dram_milli) == (555, 1_000)
    assert second.activity.pcie_sent_bytes_per_s == 2 << 20
    assert second.activity.tensor_milli is None
    assert library.calls == []


def test_jobs_that_share_a_gpu_are_seen_apart() -> None:
    gpu = RecordedGpu("GPU-1", pids=(20, 30), shares=((5, 20, 60), (6, 20, 80), (6, 30, 10)))

    ((sample,),) = looks(RecordedLibrary(gpu), 1_000)
    owned = with_owners(sample, {20: (JobId(7), 1)})

    assert owned.processes is not None
    assert [(each.pid, each.job, each.sm_milli) for each in owned.processes] == [
        (20, 7, 700),
        (30, None, 100),
    ]


def test_what_was_seen_before_is_not_counted_again() -> None:
    gpu = RecordedGpu("GPU-1", pids=(20,), shares=((5, 20, 60),))

    _, (second,) = looks(RecordedLibrary(gpu), 1_000, 16_000)

    assert second.processes is not None
    assert second.processes[0].sm_milli is None


def test_a_gpu_that_does_not_answer_disappears() -> None:
    library = RecordedLibrary(RecordedGpu("GPU-1"), RecordedGpu("GPU-2"))
    nvml = Nvml(library)
    sampler = GpuSampler(nvml, WHERE)
    gpus, _ = nvml.gpus()
    sampler.look(gpus, Instant(0))

    library.gpus["GPU-1"].lost = True

    assert [each.device for each in sampler.look(gpus, Instant(15_000))] == ["GPU-2"]


def test_every_mig_instance_is_looked_at_by_itself() -> None:
    gpu = RecordedGpu(
        "GPU-1",
        mig=True,
        busy=None,
        instances={3: RecordedInstance(19, 0)},
        activity={1: 25.0},
    )

    _, (whole, part) = looks(RecordedLibrary(gpu), 1_000, 16_000)

    assert (whole.instance, whole.busy_milli, whole.activity) == (None, None, None)
    assert (part.device, part.instance, part.profile) == ("GPU-1", 3, "1g.18gb")
    assert part.busy_milli == 250


def test_reasons_are_read_from_the_lowest_bit() -> None:
    assert throttles_of(0) == ()
    assert throttles_of(0b1_0000_0001) == (Throttle.GPU_IDLE, Throttle.DISPLAY_CLOCKS)


def test_more_than_all_of_it_is_cut() -> None:
    assert share_of(130.0) == 1_000
    assert share_of(None) is None
