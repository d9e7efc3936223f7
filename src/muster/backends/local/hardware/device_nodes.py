"""Which device nodes belong to which NVIDIA GPU or slice, and what every job with a GPU needs.

Read below `root`, so that a recorded tree can stand in for the machine.
"""

import shutil
import subprocess
from collections.abc import Iterable, Mapping
from pathlib import Path

from muster.backends.local.hardware.host import ROOT
from muster.backends.local.isolation.devices import DeviceWall, Node, character_majors
from muster.model.value import Value

GPU_MAJOR = 195
"""NVIDIA's own number, the same everywhere: a minor for each GPU, and the two below."""

_CONTROL, _MODESET = 255, 254
_UVM, _UVM_TOOLS = 0, 1
_DRM_MAJOR = 226
# Direct storage moves data between files and memory that a job has; without a GPU it is of no use.
_FOR_EVERYBODY = ("nvidia-fs",)
_LOAD_S = 30


class GpuNodes(Value):
    """One GPU's own nodes: its minor number, and those by which graphics programs open it."""

    minor: int
    drm: tuple[Node, ...] = ()


class GivenGpu(Value):
    """A GPU that a job has, or one GPU instance of it, by NVML's number."""

    nodes: GpuNodes
    instance: int | None = None


def gpu_nodes(bus_id: str, root: Path = ROOT) -> GpuNodes | None:
    """The nodes of the GPU at this place of the bus; None where the driver does not list it."""
    place = bus_id.lower()[-12:]
    told = _text(root / "proc/driver/nvidia/gpus" / place / "information")
    minor = _after(told, "Device Minor:")
    if minor is None:
        return None
    drm = (root / "sys/bus/pci/devices" / place / "drm").glob("*/dev")
    return GpuNodes(minor=minor, drm=tuple(sorted(map(_numbers, map(_text, drm)))))


def wall_around(
    given: Iterable[GivenGpu], present: Iterable[GpuNodes], root: Path = ROOT
) -> DeviceWall:
    """The wall of a job that has these GPUs of those that are present, and may be none at all."""
    given = tuple(given)
    majors = character_majors(_text(root / "proc/devices"))
    nodes: set[Node] = set()
    if given:
        nodes |= _for_all(majors)
    for each in given:
        nodes |= {(GPU_MAJOR, each.nodes.minor), *each.nodes.drm}
        nodes |= _instance_nodes(each, majors, root)
    walled = {major for name, major in majors.items() if _is_walled(name)}
    ours = {node for each in present for node in each.drm}
    if ours:
        # A machine's other graphics devices are nobody's in particular.
        walled.add(_DRM_MAJOR)
        nodes |= {_numbers(_text(path)) for path in (root / "sys/class/drm").glob("*/dev")} - ours
    return DeviceWall(majors=tuple(sorted({GPU_MAJOR, *walled})), given=tuple(sorted(nodes)))


def load_uvm(root: Path = ROOT) -> None:
    """Have the driver's memory module loaded, which CUDA would load itself when first used.

    A wall that was built before does not know its number.
    """
    program = shutil.which("nvidia-modprobe")
    if program is None or "nvidia-uvm" in character_majors(_text(root / "proc/devices")):
        return
    subprocess.run(  # noqa: S603 -- the driver's own program
        [program, "-u", "-c=0"],
        check=False,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        timeout=_LOAD_S,
    )


def _for_all(majors: Mapping[str, int]) -> set[Node]:
    """What CUDA, NVML and MPS clients open besides the GPU itself."""
    found = {(GPU_MAJOR, _CONTROL), (GPU_MAJOR, _MODESET)}
    if "nvidia-uvm" in majors:
        found |= {(majors["nvidia-uvm"], minor) for minor in (_UVM, _UVM_TOOLS)}
    return found


def _instance_nodes(given: GivenGpu, majors: Mapping[str, int], root: Path) -> set[Node]:
    """The nodes that open the GPU instance and the compute instances in it."""
    major = majors.get("nvidia-caps")
    if given.instance is None or major is None:
        return set()
    gpu = root / f"proc/driver/nvidia/capabilities/gpu{given.nodes.minor}"
    folder = gpu / f"mig/gi{given.instance}"
    files = (path for pattern in ("access", "ci*/access") for path in folder.glob(pattern))
    minors = (_after(_text(path), "DeviceFileMinor:") for path in files)
    return {(major, minor) for minor in minors if minor is not None}


def _is_walled(name: str) -> bool:
    return name.startswith("nvidia") and not name.startswith(_FOR_EVERYBODY)


def _numbers(text: str) -> Node:
    """`226:128` as the kernel writes it."""
    major, _, minor = text.strip().partition(":")
    return int(major), int(minor)


def _after(text: str, label: str) -> int | None:
    for line in text.splitlines():
        if line.startswith(label):
            number = line.removeprefix(label).strip()
            return int(number) if number.isdecimal() else None
    return None


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
