from pathlib import Path

import pytest

from muster.backends.local.hardware.device_nodes import (
    GivenGpu,
    GpuNodes,
    gpu_nodes,
    wall_around,
)

DEVICES = """Character devices:
  1 mem
195 nvidia
195 nvidiactl
226 drm
505 nvidia-fs
506 nvidia-nvswitch
507 nvidia-caps
508 nvidia-uvm

Block devices:
  8 sd
"""
WALLED = (195, 506, 507, 508)
CONTROLS = ((195, 254), (195, 255), (508, 0), (508, 1))
FIRST, SECOND = GpuNodes(minor=0), GpuNodes(minor=1)


@pytest.fixture
def machine(tmp_path: Path) -> Path:
    """A machine with two GPUs, as the driver shows them."""
    write(tmp_path / "proc/devices", DEVICES)
    for place, minor in (("0000:0a:00.0", 0), ("0000:3b:00.0", 1)):
        information = f"Model: \t\t NVIDIA H200\nDevice Minor: \t {minor}\n"
        write(tmp_path / f"proc/driver/nvidia/gpus/{place}/information", information)
    return tmp_path


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def test_a_gpu_is_found_by_its_place_on_the_bus(machine: Path) -> None:
    assert gpu_nodes("00000000:3B:00.0", machine) == SECOND
    assert gpu_nodes("00000000:FF:00.0", machine) is None


def test_a_job_without_gpus_is_given_nothing(machine: Path) -> None:
    wall = wall_around((), (FIRST, SECOND), machine)

    assert (wall.majors, wall.given) == (WALLED, ())


def test_a_whole_gpu_comes_with_what_cuda_needs_and_no_capabilities(machine: Path) -> None:
    wall = wall_around([GivenGpu(nodes=SECOND)], (FIRST, SECOND), machine)

    assert (wall.majors, wall.given) == (WALLED, ((195, 1), *CONTROLS))


def test_a_slice_comes_with_its_own_capabilities_only(machine: Path) -> None:
    folder = machine / "proc/driver/nvidia/capabilities/gpu0/mig"
    files = {
        "config": 1,
        "gi1/access": 12,
        "gi1/ci0/access": 13,
        "gi2/access": 21,
        "gi2/ci0/access": 22,
    }
    for name, minor in files.items():
        write(folder / name, f"DeviceFileMinor: {minor}\nDeviceFileMode: 292\n")

    wall = wall_around([GivenGpu(nodes=FIRST, instance=2)], (FIRST,), machine)

    assert wall.given == ((195, 0), *CONTROLS[:2], (507, 21), (507, 22), *CONTROLS[2:])


def test_graphics_nodes_of_other_gpus_are_walled_off_and_those_of_nobody_are_not(
    machine: Path,
) -> None:
    write(machine / "sys/bus/pci/devices/0000:0a:00.0/drm/renderD128/dev", "226:128\n")
    write(machine / "sys/bus/pci/devices/0000:3b:00.0/drm/renderD129/dev", "226:129\n")
    for minor in (128, 129, 130):
        write(machine / f"sys/class/drm/renderD{minor}/dev", f"226:{minor}\n")
    first, second = (gpu_nodes(place, machine) for place in ("0000:0a:00.0", "0000:3b:00.0"))
    assert first is not None
    assert second is not None

    wall = wall_around([GivenGpu(nodes=first)], (first, second), machine)

    assert 226 in wall.majors
    assert [node for node in wall.given if node[0] == 226] == [(226, 128), (226, 130)]
