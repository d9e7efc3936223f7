"""NVIDIA's NVML binding with recorded GPUs behind it, in place of a driver."""

import ctypes
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

NOT_SUPPORTED = 3
NO_PERMISSION = 4
NOT_FOUND = 6
TIMEOUT = 10
GPU_IS_LOST = 15
IN_USE = 19
INSUFFICIENT_RESOURCES = 23

# number, name, NVML's id, compute slices
H200_PROFILES = (
    (0, "MIG 1g.18gb", 19, 1),
    (9, "MIG 1g.35gb", 15, 1),
    (1, "MIG 2g.35gb", 14, 2),
    (2, "MIG 3g.71gb", 9, 3),
    (3, "MIG 4g.71gb", 5, 4),
    (4, "MIG 7g.141gb", 0, 7),
)


class RecordedNvmlError(Exception):
    """As pynvml.NVMLError: a code, and words for it."""

    def __init__(self, value: int) -> None:
        super().__init__(f"recorded error {value}")
        self.value = value


@dataclass
class RecordedInstance:
    profile_id: int
    start: int
    compute: list[int] = field(default_factory=lambda: [0])


@dataclass
class RecordedGpu:
    uuid: str
    product: str = "NVIDIA H200"
    memory_mib: int = 143_771
    bus_id: str = "00000000:0A:00.0"
    mig: bool | None = False
    instances: dict[int, RecordedInstance] = field(default_factory=dict[int, RecordedInstance])
    links: dict[int, str] = field(default_factory=dict[int, str])
    lost: bool = False
    uncorrected: int | None = 0
    remapped: tuple[int, int, int, int] = (0, 0, 0, 0)
    advice: int = 0
    pids: tuple[int, ...] = ()
    needs_reset: bool = False
    fields: dict[int, int] = field(default_factory=dict[int, int])
    used_mib: int = 1_024
    busy: int | None = 40
    shares: tuple[tuple[int, int, int], ...] = ()
    """What each process computed: when, which, percent."""
    activity: dict[int, float] | None = None
    """GPM's metrics by number; None: it has no GPM."""


class RecordedLibrary:
    """The part of pynvml that we call. `calls` lists what changed something.

    While `answers` is clear, a thread that waits for events hangs, as in a driver that died.
    """

    NVMLError = RecordedNvmlError
    NVML_ERROR_NOT_SUPPORTED = NOT_SUPPORTED
    NVML_MEMORY_ERROR_TYPE_UNCORRECTED = 1
    NVML_VOLATILE_ECC = 0
    NVML_NVLINK_MAX_LINKS = 18
    NVML_NVLINK_DEVICE_TYPE_SWITCH = 2
    NVML_GPU_INSTANCE_PROFILE_COUNT = 10
    NVML_COMPUTE_INSTANCE_PROFILE_COUNT = 8
    NVML_COMPUTE_INSTANCE_ENGINE_PROFILE_SHARED = 0
    NVML_FI_DEV_GET_GPU_RECOVERY_ACTION = 230
    nvmlEventTypeXidCriticalError = 8  # noqa: N815 -- NVIDIA's name
    nvmlMemory_v2 = 33_554_472  # noqa: N815 -- NVIDIA's name
    NVML_GPM_METRICS_GET_VERSION = 1
    c_nvmlGpuInstance_t = ctypes.c_uint  # noqa: N815 -- NVIDIA's name
    c_nvmlComputeInstance_t = ctypes.c_uint  # noqa: N815 -- NVIDIA's name

    class c_nvmlGpuInstancePlacement_t(ctypes.Structure):  # noqa: N801 -- NVIDIA's name
        _fields_ = (("start", ctypes.c_uint), ("size", ctypes.c_uint))

    def __init__(self, *gpus: RecordedGpu, privileged: bool = True) -> None:
        self.gpus = {gpu.uuid: gpu for gpu in gpus}
        self.privileged = privileged
        self.calls: list[tuple[object, ...]] = []
        self.xids: list[tuple[str, int]] = []
        self.shut = False
        self.answers = threading.Event()
        self.answers.set()

    def __getattr__(self, name: str) -> Callable[..., Any]:
        answers = ANSWERS.get(name)
        if answers is None and name.startswith("nvmlDeviceGet"):
            return lambda *_, **__: supported(None)
        if answers is None:
            raise AttributeError(name)
        return lambda *arguments, **_: answers(self, *arguments)

    def gpu(self, uuid: str) -> RecordedGpu:
        if uuid not in self.gpus:
            raise RecordedNvmlError(NOT_FOUND)
        if self.gpus[uuid].lost:
            raise RecordedNvmlError(GPU_IS_LOST)
        return self.gpus[uuid]

    def owner(self, instance: int) -> RecordedGpu:
        return next(gpu for gpu in self.gpus.values() if instance in gpu.instances)


def supported(value: Any) -> Any:
    if value is None:
        raise RecordedNvmlError(NOT_SUPPORTED)
    return value


def _shutdown(library: RecordedLibrary) -> None:
    library.shut = True


def _handle(library: RecordedLibrary, uuid: str) -> str:
    if uuid.startswith("MIG-"):
        whole, id = _mig_parts(uuid)
        return f"MIG-{library.gpu(whole.removeprefix('MIG-')).uuid}/{id}"
    return library.gpu(uuid).uuid


def _at(library: RecordedLibrary, index: int) -> str:
    return library.gpu(list(library.gpus)[index]).uuid


def _uuid(_: RecordedLibrary, handle: str) -> str:
    return handle


def _name(library: RecordedLibrary, handle: str) -> str:
    if not handle.startswith("MIG-"):
        return library.gpu(handle).product
    _, id = _mig_parts(handle)
    one = library.owner(id).instances[id]
    name = next(name for _, name, known, _ in H200_PROFILES if known == one.profile_id)
    return f"{library.owner(id).product} {name}"


def _mig_parts(handle: str) -> tuple[str, int]:
    text, _, id = handle.rpartition("/")
    return text, int(id)


def _mig_mode(library: RecordedLibrary, handle: str) -> list[int]:
    mode = int(supported(library.gpu(handle).mig))
    return [mode, mode]


def _set_mig_mode(library: RecordedLibrary, handle: str, mode: int) -> int:
    gpu = library.gpu(handle)
    library.calls.append(("mode", mode))
    if gpu.needs_reset:
        return IN_USE
    gpu.mig = bool(mode)
    return 0


def _mig_device(library: RecordedLibrary, handle: str, index: int) -> str:
    usable = sorted(id for id, one in library.gpu(handle).instances.items() if one.compute)
    if index >= len(usable):
        raise RecordedNvmlError(NOT_FOUND)
    return f"MIG-{handle}/{usable[index]}"


def _profile(_: RecordedLibrary, __: str, number: int) -> SimpleNamespace:
    for known, name, id, slices in H200_PROFILES:
        if known == number:
            return SimpleNamespace(id=id, name=name.encode(), sliceCount=slices)
    raise RecordedNvmlError(NOT_SUPPORTED)


def _instances(library: RecordedLibrary, handle: str, profile: int, room: Any, count: Any) -> None:
    if not library.privileged:
        raise RecordedNvmlError(NO_PERMISSION)
    found = [id for id, one in library.gpu(handle).instances.items() if one.profile_id == profile]
    fill(room, count, found)


def fill(room: Any, count: Any, found: list[int]) -> None:
    for at, each in enumerate(found):
        room[at] = each
    count._obj.value = len(found)


def _instance_facts(library: RecordedLibrary, id: int) -> SimpleNamespace:
    one = library.owner(id).instances[id]
    return SimpleNamespace(id=id, placement=SimpleNamespace(start=one.start))


def _by_id(library: RecordedLibrary, handle: str, id: int) -> int:
    if id not in library.gpu(handle).instances:
        raise RecordedNvmlError(NOT_FOUND)
    return id


def _compute_profile(_: RecordedLibrary, __: int, number: int, ___: int) -> SimpleNamespace:
    if number not in {0, 1, 2, 3, 4}:
        raise RecordedNvmlError(NOT_SUPPORTED)
    return SimpleNamespace(id=number, sliceCount=(1, 2, 3, 4, 7)[number])


def _compute_instances(
    library: RecordedLibrary, id: int, profile: int, room: Any, count: Any
) -> None:
    """Compute instances are numbered by the GPU instance that they fill."""
    one = library.owner(id).instances[id]
    fill(room, count, [id] if profile in one.compute else [])


def _destroy_compute(library: RecordedLibrary, id: int) -> None:
    if library.owner(id).pids:
        raise RecordedNvmlError(IN_USE)
    library.owner(id).instances[id].compute.clear()


def _destroy(library: RecordedLibrary, id: int) -> None:
    gpu = library.owner(id)
    if gpu.instances[id].compute:
        raise RecordedNvmlError(IN_USE)
    library.calls.append(("destroy", id))
    del gpu.instances[id]


def _create(library: RecordedLibrary, handle: str, profile: int, place: Any) -> int:
    start, size = place._obj.start, place._obj.size
    library.calls.append(("create", profile, start, size))
    gpu = library.gpu(handle)
    if any(one.start == start for one in gpu.instances.values()):
        raise RecordedNvmlError(INSUFFICIENT_RESOURCES)
    id = max(gpu.instances, default=0) + 1
    gpu.instances[id] = RecordedInstance(profile, start, compute=[])
    return id


def _create_compute(library: RecordedLibrary, id: int, profile: int) -> None:
    library.calls.append(("compute", profile))
    library.owner(id).instances[id].compute.append(profile)


def _link(library: RecordedLibrary, handle: str, link: int) -> str:
    return supported(library.gpu(handle).links.get(link))


def _next_event(library: RecordedLibrary, _: object, __: int) -> SimpleNamespace:
    library.answers.wait()
    if not library.xids:
        raise RecordedNvmlError(TIMEOUT)
    uuid, number = library.xids.pop(0)
    return SimpleNamespace(device=uuid, eventType=8, eventData=number)


def _field(
    library: RecordedLibrary, handle: str, wanted: list[int | tuple[int, int]]
) -> list[SimpleNamespace]:
    gpu = library.gpu(handle)
    known = {230: gpu.advice, **gpu.fields}
    numbers = [each if isinstance(each, int) else each[0] for each in wanted]
    return [
        SimpleNamespace(
            fieldId=number,
            nvmlReturn=0 if number in known else NOT_SUPPORTED,
            valueType=1,
            value=SimpleNamespace(uiVal=known.get(number, 0)),
        )
        for number in numbers
    ]


def _memory(library: RecordedLibrary, handle: str) -> SimpleNamespace:
    is_part = handle.startswith("MIG-")
    gpu = library.gpu(_mig_parts(handle)[0].removeprefix("MIG-") if is_part else handle)
    total = (gpu.memory_mib // 7 if is_part else gpu.memory_mib) << 20
    used = gpu.used_mib << 20
    return SimpleNamespace(total=total, used=used, free=total - used, reserved=0)


def _rates(library: RecordedLibrary, handle: str) -> SimpleNamespace:
    return SimpleNamespace(gpu=supported(library.gpu(handle).busy), memory=10)


def _process_shares(library: RecordedLibrary, handle: str, since: int) -> list[SimpleNamespace]:
    found = [
        SimpleNamespace(timeStamp=at, pid=pid, smUtil=percent)
        for at, pid, percent in library.gpu(handle).shares
        if at > since
    ]
    return found or supported(None)


def _gpm_offer(library: RecordedLibrary, handle: str) -> SimpleNamespace:
    return SimpleNamespace(isSupportedDevice=int(library.gpu(handle).activity is not None))


def _gpm_alloc(library: RecordedLibrary) -> SimpleNamespace:
    sample = SimpleNamespace(gpu=None)
    library.calls.append(("sample", id(sample)))
    return sample


def _gpm_free(library: RecordedLibrary, sample: SimpleNamespace) -> None:
    library.calls.remove(("sample", id(sample)))


def _gpm_get(library: RecordedLibrary, handle: str, *rest: Any) -> SimpleNamespace:
    rest[-1].gpu = library.gpu(handle)
    return rest[-1]


def _gpm_metrics(_: RecordedLibrary, wanted: SimpleNamespace) -> SimpleNamespace:
    told = wanted.sample2.gpu.activity
    for each in wanted.metrics[: wanted.numMetrics]:
        each.nvmlReturn = 0 if each.metricId in told else NOT_SUPPORTED
        each.value = told.get(each.metricId, 0.0)
    return wanted


def _gpm_question(_: RecordedLibrary) -> SimpleNamespace:
    return SimpleNamespace(metrics=[SimpleNamespace() for _ in range(64)])


def _running(library: RecordedLibrary, handle: str) -> list[SimpleNamespace]:
    gpu = library.gpu(_mig_parts(handle)[0].removeprefix("MIG-") if "/" in handle else handle)
    return [SimpleNamespace(pid=pid, usedGpuMemory=1 << 30) for pid in gpu.pids]


def _always(answer: object) -> Callable[..., object]:
    return lambda *_: answer


def _fact(of: Callable[[RecordedGpu], object]) -> Callable[..., object]:
    """Something that a GPU tells of itself, whatever else is asked with it."""

    def answer(library: RecordedLibrary, handle: str, *_: object) -> object:
        return of(library.gpu(handle))

    return answer


def _count(library: RecordedLibrary) -> int:
    return len(library.gpus)


def _index(library: RecordedLibrary, handle: str) -> int:
    return list(library.gpus).index(handle)


def _instance_of(_: RecordedLibrary, device: str) -> int:
    return _mig_parts(device)[1]


def _link_state(library: RecordedLibrary, handle: str, link: int) -> int:
    return int(bool(_link(library, handle, link)))


def _link_kind(library: RecordedLibrary, handle: str, link: int) -> int:
    return 2 if _link(library, handle, link) == "switch" else 0


def _link_end(library: RecordedLibrary, handle: str, link: int) -> SimpleNamespace:
    return SimpleNamespace(busId=_link(library, handle, link))


ANSWERS: dict[str, Callable[..., Any]] = {
    "nvmlInit": _always(None),
    "nvmlShutdown": _shutdown,
    "nvmlSystemGetDriverVersion": _always("580.159.04"),
    "nvmlSystemGetCudaDriverVersion": _always(13_000),
    "nvmlDeviceGetCount": _count,
    "nvmlDeviceGetIndex": _index,
    "nvmlDeviceGetHandleByIndex": _at,
    "nvmlDeviceGetHandleByUUID": _handle,
    "nvmlDeviceGetUUID": _uuid,
    "nvmlDeviceGetName": _name,
    "nvmlDeviceGetMemoryInfo": _memory,
    "nvmlDeviceGetUtilizationRates": _rates,
    "nvmlDeviceGetTemperature": _fact(lambda _: 41),
    "nvmlDeviceGetCurrentClocksEventReasons": _fact(lambda _: 0b100_0100),
    "nvmlDeviceGetProcessUtilization": _process_shares,
    "nvmlGpmQueryDeviceSupport": _gpm_offer,
    "nvmlGpmSampleAlloc": _gpm_alloc,
    "nvmlGpmSampleFree": _gpm_free,
    "nvmlGpmSampleGet": _gpm_get,
    "nvmlGpmMigSampleGet": _gpm_get,
    "nvmlGpmMetricsGet": _gpm_metrics,
    "c_nvmlGpmMetricsGet_t": _gpm_question,
    "nvmlDeviceGetPciInfo": _fact(lambda gpu: SimpleNamespace(busId=gpu.bus_id)),
    "nvmlDeviceGetMigMode": _mig_mode,
    "nvmlDeviceSetMigMode": _set_mig_mode,
    "nvmlDeviceGetMaxMigDeviceCount": _always(7),
    "nvmlDeviceGetMigDeviceHandleByIndex": _mig_device,
    "nvmlDeviceGetGpuInstanceId": _instance_of,
    "nvmlDeviceGetGpuInstanceProfileInfo": _profile,
    "nvmlDeviceGetGpuInstances": _instances,
    "nvmlDeviceGetGpuInstanceById": _by_id,
    "nvmlGpuInstanceGetInfo": _instance_facts,
    "nvmlGpuInstanceGetComputeInstanceProfileInfo": _compute_profile,
    "nvmlGpuInstanceGetComputeInstances": _compute_instances,
    "nvmlComputeInstanceDestroy": _destroy_compute,
    "nvmlGpuInstanceDestroy": _destroy,
    "nvmlDeviceCreateGpuInstanceWithPlacement": _create,
    "nvmlGpuInstanceCreateComputeInstance": _create_compute,
    "nvmlDeviceGetComputeRunningProcesses": _running,
    "nvmlDeviceGetNvLinkState": _link_state,
    "nvmlDeviceGetNvLinkRemoteDeviceType": _link_kind,
    "nvmlDeviceGetNvLinkRemotePciInfo": _link_end,
    "nvmlDeviceGetTotalEccErrors": _fact(lambda gpu: supported(gpu.uncorrected)),
    "nvmlDeviceGetRemappedRows": _fact(lambda gpu: gpu.remapped),
    "nvmlDeviceGetFieldValues": _field,
    "nvmlEventSetCreate": _always("events"),
    "nvmlEventSetFree": _always(None),
    "nvmlDeviceRegisterEvents": _fact(lambda gpu: gpu.uuid),
    "nvmlEventSetWait_v2": _next_event,
}
