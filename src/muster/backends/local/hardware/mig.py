"""Cutting a real GPU into MIG instances: which steps it takes (pure), and taking them.

Instances that stay are not touched, so jobs on them go on. MIG mode is switched only when asked
for, and only while no process uses the GPU.
"""

from collections.abc import Iterable
from ctypes import byref

from muster.backends.base import Cut
from muster.backends.local.hardware.inventory import CLUSTER
from muster.backends.local.hardware.nvml import Nvml, NvmlError, RawGpu, RawInstance
from muster.model.errors import BackendDownError
from muster.model.gpu import MigInstance
from muster.model.mig import free_starts, mig_profile
from muster.model.value import GpuModel, Value


class SwitchOn(Value, tag="on", gc=False):
    """Turn MIG mode on."""


class SwitchOff(Value, tag="off", gc=False):
    """Turn MIG mode off."""


class Destroy(Value, tag="destroy", gc=False):
    """Destroy a GPU instance, and the compute instances in it, by NVML's number."""

    instance: int


class Create(Value, tag="create", gc=False):
    """Create a GPU instance at a place, and one compute instance that is all of it."""

    profile: str
    start: int
    size: int


Step = SwitchOn | SwitchOff | Destroy | Create


def cut_steps(
    model: GpuModel, present: tuple[RawInstance, ...] | None, wanted: tuple[MigInstance, ...] | None
) -> tuple[Step, ...]:
    """From these instances (None: MIG mode is off) to those, and no step more than that takes."""
    here = () if present is None else tuple(zip(placed(model, present), present, strict=True))
    want = frozenset(wanted or ())
    gone = [Destroy(instance=raw.id) for one, raw in here if one not in want]
    missing = want - {one for one, _ in here}
    made = sorted(
        (_create(model, one) for one in missing), key=lambda step: (-step.size, step.start)
    )
    on = [SwitchOn()] if present is None and wanted is not None else []
    off = [SwitchOff()] if present is not None and wanted is None else []
    return (*on, *gone, *made, *off)


def placed(model: GpuModel, present: Iterable[RawInstance]) -> tuple[MigInstance, ...]:
    """The instances as the model knows them.

    Where we may not ask for their places, each gets the first that is left: it then names the
    instance, though it may lie elsewhere.
    """
    found: list[MigInstance] = []
    for raw in present:
        start = raw.start
        if start is None:
            start = next(iter(free_starts(model, found, raw.profile)), 0)
        found.append(MigInstance(profile=raw.profile, start=start))
    return tuple(found)


def instance_at(gpu: RawGpu, model: GpuModel, wanted: MigInstance) -> RawInstance | None:
    """The instance of this profile and place, or None when it is not there."""
    here = gpu.mig or ()
    return dict(zip(placed(model, here), here, strict=True)).get(wanted)


def carry_out(nvml: Nvml, gpu: RawGpu, model: GpuModel, action: Cut) -> None:
    """Cut the GPU. BackendDownError says what is in the way; what was done so far stays."""
    steps = cut_steps(model, gpu.mig, action.instances)
    try:
        for step in steps:
            _take(nvml, gpu, step)
    except NvmlError as problem:
        text = f"GPU {gpu.index} cannot be cut: {problem}; cutting needs root and an idle GPU"
        raise BackendDownError(CLUSTER, text) from problem


def _take(nvml: Nvml, gpu: RawGpu, step: Step) -> None:
    match step:
        case SwitchOn():
            _switch(nvml, gpu, on=True)
        case SwitchOff():
            _switch(nvml, gpu, on=False)
        case Destroy():
            _destroy(nvml, gpu.uuid, step.instance)
        case Create():
            _build(nvml, gpu.uuid, step)


def _switch(nvml: Nvml, gpu: RawGpu, *, on: bool) -> None:
    users = nvml.users(gpu.uuid)
    if users:
        text = (
            f"processes {', '.join(map(str, users))} use GPU {gpu.index}; MIG mode waits for them"
        )
        raise BackendDownError(CLUSTER, text)
    handle = nvml.device(gpu.uuid)
    pending = nvml.ask(lambda: nvml.library.nvmlDeviceSetMigMode(handle, int(on)))
    if pending:
        text = f"MIG mode of GPU {gpu.index} changes when it is reset: nvidia-smi -i {gpu.index} -r"
        raise BackendDownError(CLUSTER, text)


def _destroy(nvml: Nvml, uuid: str, instance: int) -> None:
    library, handle = nvml.library, nvml.device(uuid)
    whole = nvml.ask(lambda: library.nvmlDeviceGetGpuInstanceById(handle, instance))
    for number in _compute_profiles(nvml, whole).values():
        parts = nvml.listed(
            library.nvmlGpuInstanceGetComputeInstances,
            whole,
            number,
            library.c_nvmlComputeInstance_t,
        )
        for part in parts:
            nvml.ask(lambda part=part: library.nvmlComputeInstanceDestroy(part))
    nvml.ask(lambda: library.nvmlGpuInstanceDestroy(whole))


def _build(nvml: Nvml, uuid: str, step: Create) -> None:
    library, handle = nvml.library, nvml.device(uuid)
    offered = {each.name: each for each in nvml.profiles(handle)}
    if step.profile not in offered:
        text = f"it offers {', '.join(sorted(offered)) or 'no instances'}, not {step.profile}"
        raise NvmlError(text, code=library.NVML_ERROR_NOT_SUPPORTED)
    profile = offered[step.profile]
    place = library.c_nvmlGpuInstancePlacement_t(step.start, step.size)
    make = library.nvmlDeviceCreateGpuInstanceWithPlacement
    whole = nvml.ask(lambda: make(handle, profile.id, byref(place)))
    try:
        number = _compute_profiles(nvml, whole).get(profile.compute_slices, 0)
        nvml.ask(lambda: library.nvmlGpuInstanceCreateComputeInstance(whole, number))
    except NvmlError:
        # Without a compute instance it is of no use, and in the way.
        nvml.ask_if_able(lambda: library.nvmlGpuInstanceDestroy(whole), None)
        raise


def _compute_profiles(nvml: Nvml, whole: object) -> dict[int, int]:
    """NVML's numbers of the compute instances that fit into a GPU instance, by their slices."""
    library, found = nvml.library, dict[int, int]()
    shared = library.NVML_COMPUTE_INSTANCE_ENGINE_PROFILE_SHARED
    ask = library.nvmlGpuInstanceGetComputeInstanceProfileInfo
    for at in range(int(library.NVML_COMPUTE_INSTANCE_PROFILE_COUNT)):
        profile = nvml.ask_if_able(lambda at=at: ask(whole, at, shared), None)
        if profile is not None:
            found.setdefault(int(profile.sliceCount), int(profile.id))
    return found


def _create(model: GpuModel, wanted: MigInstance) -> Create:
    profile = mig_profile(model, wanted.profile)
    size = profile.memory_slices if profile else 1
    return Create(profile=wanted.profile, start=wanted.start, size=size)
