"""Real GPUs, measured beside nvidia-smi. Run it on a machine that has some."""

import shutil
import subprocess
from collections.abc import Iterator
from threading import Event

import pytest

from muster.backends.local.hardware.nvml import Nvml, NvmlError, open_nvml
from muster.backends.local.measuring.gpu_sampler import GpuSampler, SampledNode
from muster.model.samples import DeviceSample
from muster.model.value import Instant, NodeId

FIELDS = "uuid,memory.total,memory.reserved,driver_version,temperature.gpu,enforced.power.limit"


@pytest.fixture
def nvml() -> Iterator[Nvml]:
    try:
        found = open_nvml()
    except NvmlError as problem:
        pytest.skip(f"no GPU here: {problem}")
    yield found
    found.close()


def looks(nvml: Nvml, count: int) -> list[tuple[DeviceSample, ...]]:
    """GPM gives means of no less than a tenth of a second, so some time must really pass."""
    sampler = GpuSampler(nvml, SampledNode(node=NodeId("here"), driver=nvml.driver()))
    found: list[tuple[DeviceSample, ...]] = []
    for at in range(count):
        gpus, _ = nvml.gpus()
        found.append(sampler.look(gpus, Instant(1_000 * at)))
        Event().wait(0.3)
    sampler.close()
    return found


def test_what_we_measure_is_what_nvidia_smi_shows(nvml: Nvml) -> None:
    program = shutil.which("nvidia-smi")
    if program is None:
        pytest.skip("no nvidia-smi here")
    told = subprocess.run(  # noqa: S603 -- NVIDIA's own
        [program, f"--query-gpu={FIELDS}", "--format=csv,noheader,nounits"],
        capture_output=True,
        text=True,
        check=True,
    )
    rows = {line.split(", ")[0]: line.split(", ")[1:] for line in told.stdout.splitlines()}

    whole = [each for each in looks(nvml, 1)[0] if each.instance is None]

    assert {each.device for each in whole} == set(rows)
    for each in whole:
        memory, reserved, driver, celsius, watts = rows[each.device]
        assert each.driver == driver
        assert (each.memory_bytes or 0) >> 20 == pytest.approx(int(memory), abs=2)
        assert (each.memory_reserved_bytes or 0) >> 20 == pytest.approx(int(reserved), abs=2)
        assert each.temperature_c == pytest.approx(int(celsius), abs=5)
        assert (each.power_limit_mw or 0) / 1_000 == pytest.approx(float(watts), abs=1)


def test_hopper_and_later_tell_what_their_parts_do(nvml: Nvml) -> None:
    _, second = looks(nvml, 2)
    for each in second:
        handle = nvml.device(each.device)
        major, _ = nvml.library.nvmlDeviceGetCudaComputeCapability(handle)
        if major < 9 or nvml.gpu(each.device).mig is not None:
            continue
        assert each.activity is not None
        assert each.activity.sm_milli is not None
        assert each.activity.dram_milli is not None
