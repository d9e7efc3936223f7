"""NVML, called: thin functions that return plain values. What they mean is decided elsewhere.

The library is passed in, because NVIDIA's binding has no types and may find no driver, and because
recorded answers can then stand in for it.
"""

import importlib
from collections.abc import Callable, Iterator
from ctypes import byref, c_uint
from typing import Any, TypeVar

from muster.backends.local.hardware.gpu_health import Reading
from muster.model.errors import MusterError
from muster.model.value import Value

_T = TypeVar("_T")


class NvmlError(MusterError):
    """NVML cannot be used, or refused something; the text is NVIDIA's."""

    def __init__(self, text: str, code: int) -> None:
        super().__init__(text)
        self.code = code


class RawInstance(Value, gc=False):
    """A GPU instance as NVML tells it. No start: we are not allowed to ask where it lies."""

    id: int
    profile: str
    start: int | None
    uuid: str | None


class RawGpu(Value):
    """A GPU as NVML tells it. mig: None where MIG mode is off, or unknown to this GPU.

    links: what is at the other end of each NVLink: a bus id, or `switch`.
    """

    index: int
    uuid: str
    product: str
    memory_bytes: int
    bus_id: str = ""
    mig: tuple[RawInstance, ...] | None = None
    links: tuple[str, ...] = ()


class Profile(Value, gc=False):
    """A kind of GPU instance that a GPU offers, by NVML's own number."""

    id: int
    name: str
    compute_slices: int


def open_nvml() -> "Nvml":
    """NVML of this machine; NvmlError says why there is none."""
    library = importlib.import_module("pynvml")
    nvml = Nvml(library)
    nvml.ask(library.nvmlInit)
    return nvml


class Nvml:
    """One use of the library, until `close`. Several threads may ask."""

    def __init__(self, library: Any) -> None:
        self.library = library
        self._events: Any = None

    def ask(self, question: Callable[[], _T]) -> _T:
        """The answer; NvmlError where NVML refuses."""
        try:
            return question()
        except self.library.NVMLError as problem:
            raise NvmlError(str(problem), int(problem.value)) from problem

    def ask_if_able(self, question: Callable[[], _T], otherwise: _T) -> _T:
        """The answer, or this where the driver, the GPU or our rights do not give one."""
        try:
            return self.ask(question)
        except NvmlError:
            return otherwise

    def driver(self) -> str:
        return str(self.ask_if_able(self.library.nvmlSystemGetDriverVersion, ""))

    def cuda(self) -> str:
        """The newest CUDA that the driver knows: `12.4`."""
        number = int(self.ask_if_able(self.library.nvmlSystemGetCudaDriverVersion, 0))
        return f"{number // 1_000}.{number % 1_000 // 10}" if number else ""

    def gpus(self) -> tuple[tuple[RawGpu, ...], tuple[str, ...]]:
        """All GPUs that answer, and a remark for each that does not."""
        found: list[RawGpu] = []
        silent: list[str] = []
        for index in range(int(self.ask(self.library.nvmlDeviceGetCount))):
            try:
                found.append(self._gpu(index))
            except NvmlError as problem:
                silent.append(f"GPU {index} does not answer: {problem}")
        return tuple(found), tuple(silent)

    def gpu(self, uuid: str) -> RawGpu:
        """One GPU, asked again."""
        handle = self.device(uuid)
        return self._gpu(int(self.ask(lambda: self.library.nvmlDeviceGetIndex(handle))))

    def device(self, uuid: str) -> Any:
        return self.ask(lambda: self.library.nvmlDeviceGetHandleByUUID(uuid))

    def users(self, uuid: str) -> tuple[int, ...]:
        """The ids of processes that compute on a device."""
        handle = self.device(uuid)
        running = self.ask(lambda: self.library.nvmlDeviceGetComputeRunningProcesses(handle))
        return tuple(sorted(int(each.pid) for each in running))

    def reading(self, uuid: str) -> Reading:
        """One look at a device's health; what it does not support does not speak against it."""
        nvml = self.library
        try:
            handle = self.device(uuid)
            self.ask(lambda: nvml.nvmlDeviceGetMemoryInfo(handle))
        except NvmlError as problem:
            return Reading(code=problem.code)
        kind, period = nvml.NVML_MEMORY_ERROR_TYPE_UNCORRECTED, nvml.NVML_VOLATILE_ECC
        remapped = self.ask_if_able(lambda: nvml.nvmlDeviceGetRemappedRows(handle), (0, 0, 0, 0))
        return Reading(
            uncorrected=self.ask_if_able(
                lambda: int(nvml.nvmlDeviceGetTotalEccErrors(handle, kind, period)), None
            ),
            remap_pending=bool(remapped[2]),
            remap_failed=bool(remapped[3]),
            advice=self.ask_if_able(lambda: self._advice(handle), 0),
        )

    def watch_xids(self, uuids: tuple[str, ...]) -> None:
        """From now on `next_xid` gives the critical errors of these devices."""
        events = self.ask_if_able(self.library.nvmlEventSetCreate, None)
        if events is None:
            return
        for uuid in uuids:
            self.ask_if_able(lambda uuid=uuid: self._register(uuid, events), None)
        self._events = events

    def next_xid(self, timeout_ms: int) -> tuple[str, int] | None:
        """The device and number of the next critical error, or None when none came in time."""
        if self._events is None:
            return None
        nvml = self.library
        event = self.ask_if_able(lambda: nvml.nvmlEventSetWait_v2(self._events, timeout_ms), None)
        if event is None or event.eventType != nvml.nvmlEventTypeXidCriticalError:
            return None
        uuid = self.ask_if_able(lambda: str(nvml.nvmlDeviceGetUUID(event.device)), "")
        return uuid, int(event.eventData)

    def profiles(self, handle: Any) -> tuple[Profile, ...]:
        """The kinds of GPU instances that a GPU offers now."""
        numbers = range(int(self.library.NVML_GPU_INSTANCE_PROFILE_COUNT))
        found = (self.ask_if_able(lambda at=at: self._profile(handle, at), None) for at in numbers)
        return tuple(each for each in found if each is not None)

    def listed(self, call: Callable[..., object], owner: Any, profile: int, kind: Any) -> list[Any]:
        """NVML's way of listing things: it fills an array that we bring."""
        # No GPU has more than a few dozen instances of anything.
        room, count = (kind * 64)(), c_uint(64)
        self.ask(lambda: call(owner, profile, room, byref(count)))
        return list(room[: count.value])

    def close(self) -> None:
        if self._events is not None:
            self.ask_if_able(lambda: self.library.nvmlEventSetFree(self._events), None)
            self._events = None
        self.ask_if_able(self.library.nvmlShutdown, None)

    def _gpu(self, index: int) -> RawGpu:
        nvml = self.library
        handle = self.ask(lambda: nvml.nvmlDeviceGetHandleByIndex(index))
        return RawGpu(
            index=index,
            uuid=str(self.ask(lambda: nvml.nvmlDeviceGetUUID(handle))),
            product=str(self.ask(lambda: nvml.nvmlDeviceGetName(handle))),
            memory_bytes=int(self.ask(lambda: nvml.nvmlDeviceGetMemoryInfo(handle)).total),
            bus_id=self.ask_if_able(lambda: str(nvml.nvmlDeviceGetPciInfo(handle).busId), ""),
            mig=self._instances(handle),
            links=tuple(self._links(handle)),
        )

    def _instances(self, handle: Any) -> tuple[RawInstance, ...] | None:
        mode = self.ask_if_able(lambda: self.library.nvmlDeviceGetMigMode(handle)[0], 0)
        if not mode:
            return None
        uuids = dict(self._mig_devices(handle))
        try:
            return tuple(self._placed(handle, {id: uuid for id, (uuid, _) in uuids.items()}))
        except NvmlError:
            # Only privileged users may ask for places; every user may see the devices.
            unplaced = sorted((id, name, uuid) for id, (uuid, name) in uuids.items())
            return tuple(
                RawInstance(id=id, profile=_plain(name), start=None, uuid=uuid)
                for id, name, uuid in unplaced
            )

    def _placed(self, handle: Any, uuids: dict[int, str]) -> Iterator[RawInstance]:
        nvml = self.library
        for profile in self.profiles(handle):
            found = self.listed(
                nvml.nvmlDeviceGetGpuInstances, handle, profile.id, nvml.c_nvmlGpuInstance_t
            )
            for each in found:
                info = self.ask(lambda each=each: nvml.nvmlGpuInstanceGetInfo(each))
                id, start = int(info.id), int(info.placement.start)
                yield RawInstance(id=id, profile=profile.name, start=start, uuid=uuids.get(id))

    def _mig_devices(self, handle: Any) -> Iterator[tuple[int, tuple[str, str]]]:
        """By GPU instance: the UUID and the name of its device."""
        nvml = self.library
        for at in range(
            int(self.ask_if_able(lambda: nvml.nvmlDeviceGetMaxMigDeviceCount(handle), 0))
        ):
            device = self.ask_if_able(
                lambda at=at: nvml.nvmlDeviceGetMigDeviceHandleByIndex(handle, at), None
            )
            if device is None:
                continue
            id = int(self.ask(lambda device=device: nvml.nvmlDeviceGetGpuInstanceId(device)))
            uuid = str(self.ask(lambda device=device: nvml.nvmlDeviceGetUUID(device)))
            name = str(self.ask(lambda device=device: nvml.nvmlDeviceGetName(device)))
            yield id, (uuid, name)

    def _profile(self, handle: Any, number: int) -> Profile:
        info = self.library.nvmlDeviceGetGpuInstanceProfileInfo(handle, number)
        name = info.name.decode() if isinstance(info.name, bytes) else str(info.name)
        return Profile(id=int(info.id), name=_plain(name), compute_slices=int(info.sliceCount))

    def _links(self, handle: Any) -> Iterator[str]:
        nvml = self.library
        for link in range(int(nvml.NVML_NVLINK_MAX_LINKS)):
            if not self.ask_if_able(lambda at=link: nvml.nvmlDeviceGetNvLinkState(handle, at), 0):
                continue
            kind = self.ask_if_able(
                lambda at=link: nvml.nvmlDeviceGetNvLinkRemoteDeviceType(handle, at), None
            )
            if kind == nvml.NVML_NVLINK_DEVICE_TYPE_SWITCH:
                yield "switch"
                continue
            yield self.ask_if_able(
                lambda at=link: str(nvml.nvmlDeviceGetNvLinkRemotePciInfo(handle, at).busId), "?"
            )

    def _register(self, uuid: str, events: Any) -> None:
        nvml, handle = self.library, self.device(uuid)
        nvml.nvmlDeviceRegisterEvents(handle, nvml.nvmlEventTypeXidCriticalError, events)

    def _advice(self, handle: Any) -> int:
        # Older bindings have no name for it.
        field = getattr(self.library, "NVML_FI_DEV_GET_GPU_RECOVERY_ACTION", 230)
        info = self.library.nvmlDeviceGetFieldValues(handle, [field])[0]
        return int(info.value.uiVal) if info.nvmlReturn == 0 else 0


def _plain(name: str) -> str:
    """`NVIDIA A100-SXM4-40GB MIG 1g.5gb` and `MIG 1g.5gb` are both `1g.5gb`."""
    return name.rpartition("MIG ")[2].strip()
