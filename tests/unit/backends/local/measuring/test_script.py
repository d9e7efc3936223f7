from muster.backends.local.measuring.script import Script, scripted
from muster.model.gpu import Device
from muster.model.samples import DeviceSample
from muster.model.value import DeviceId, GpuModel, Instant, NodeId

DEVICE = Device(id=DeviceId("pretend1/gpu0"), index=0, model=GpuModel("H100"), memory_mib=81_920)


def told(script: Script, now: int) -> DeviceSample:
    return scripted(script, NodeId("pretend1"), DEVICE, Instant(now))


def test_a_pretend_gpu_is_idle_and_says_that_it_is_pretend() -> None:
    sample = told({}, 0)

    assert (sample.busy_milli, sample.pretend, sample.product) == (0, True, "H100")
    assert sample.memory_bytes == 81_920 << 20


def test_steps_follow_each_other_and_begin_again() -> None:
    script: Script = {"*": [{"seconds": 60, "busy_milli": 950}, {"seconds": 30}]}

    assert [told(script, 1_000 * at).busy_milli for at in (0, 59, 60, 89, 90)] == [
        *(950, 950, 0, 0, 950)
    ]


def test_a_step_that_cannot_be_read_is_an_idle_gpu() -> None:
    assert told({"pretend1/gpu0": [{"busy_milli": "much"}]}, 0).busy_milli == 0
    assert told({"pretend1/gpu0": [{"seconds": -5}]}, 0).busy_milli == 0
