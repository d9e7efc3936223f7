"""One look at every GPU and MIG instance, through NVML.

A GPU that does not answer is left out: no old value is ever repeated for it.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, TypeVar

from muster.backends.local.hardware.nvml import Nvml, NvmlError, RawGpu, RawInstance
from muster.backends.local.measuring.gpm import Gpm
from muster.model.samples import DeviceSample, Links, MemoryErrors, ProcessSample, Throttle
from muster.model.value import DeviceId, Instant, NodeId, Value, replace

_T = TypeVar("_T")

# NVML's numbers of fields; older bindings do not name all of them.
_MEMORY_TEMPERATURE = 82
_ENERGY_MJ = 83
_REPLAYS = 94
_NVLINK_SENT_KIB = 138
_NVLINK_RECEIVED_KIB = 139
_POWER_MEAN_MW = 185
_POWER_NOW_MW = 186
_ALL_LINKS = 0xFFFFFFFF

THROTTLED: Mapping[int, str] = {
    74: "power",
    75: "thermal",
    76: "sync_boost",
    77: "board_limit",
    78: "low_util",
    79: "reliability",
    269: "sw_thermal",
    270: "hw_thermal",
    271: "hw_power_brake",
}
"""The counters of nanoseconds in which clocks were low, by NVML's number."""

_FIELDS = (_MEMORY_TEMPERATURE, _ENERGY_MJ, _REPLAYS, _POWER_MEAN_MW, _POWER_NOW_MW, *THROTTLED)

# The bits of NVML's mask of reasons, from the lowest.
_REASONS = (
    Throttle.GPU_IDLE,
    Throttle.CLOCKS_SETTING,
    Throttle.POWER_CAP,
    Throttle.HW_SLOWDOWN,
    Throttle.SYNC_BOOST,
    Throttle.SW_THERMAL,
    Throttle.HW_THERMAL,
    Throttle.HW_POWER_BRAKE,
    Throttle.DISPLAY_CLOCKS,
)

# NVML's own numbers: of thresholds, clocks, kinds and periods of memory errors, of link errors.
_SHUTDOWN, _SLOWDOWN = 0, 1
_SM, _MEMORY = 1, 2
_CORRECTED, _UNCORRECTED = 0, 1
_SINCE_LOADED, _EVER = 0, 1
_LINK_REPLAY, _LINK_RECOVERY, _LINK_CRC_FLIT, _LINK_CRC_DATA = range(4)

# What the driver gives where it has no number; some drivers give numbers near it.
_BLANK = 1 << 62


class SampledNode(Value, gc=False):
    """Whose GPUs are looked at."""

    node: NodeId
    driver: str = ""


class GpuSampler:
    """Looks at GPUs, and remembers what the next look must be compared with. One thread."""

    def __init__(self, nvml: Nvml, where: SampledNode) -> None:
        self._nvml = nvml
        self._where = where
        self._gpm = Gpm(nvml)
        self._looked_at: dict[DeviceId, Instant] = {}
        self._utilised_at: dict[DeviceId, int] = {}

    def look(self, gpus: Iterable[RawGpu], at: Instant) -> tuple[DeviceSample, ...]:
        """All GPUs that answer, each followed by its MIG instances."""
        found: list[DeviceSample] = []
        for raw in gpus:
            try:
                found.extend(self._looks(raw, at))
            except NvmlError:
                self._looked_at.pop(DeviceId(raw.uuid), None)
        return tuple(found)

    def close(self) -> None:
        self._gpm.close()

    def _looks(self, raw: RawGpu, at: Instant) -> Iterator[DeviceSample]:
        id = DeviceId(raw.uuid)
        handle = self._nvml.device(raw.uuid)
        before = self._looked_at.get(id)
        whole = replace(
            self._whole(raw, handle, at),
            interval_ms=None if before is None or at <= before else at - before,
        )
        self._looked_at[id] = at
        if raw.mig is None:
            yield replace(
                whole,
                activity=self._gpm.activity(raw.uuid, handle),
                processes=self._processes(id, handle),
            )
            return
        yield whole
        for instance in raw.mig:
            part = self._part(whole, handle, instance)
            if part is not None:
                yield part

    def _part(self, whole: DeviceSample, handle: Any, of: RawInstance) -> DeviceSample | None:
        """One MIG instance: its own memory, activity and processes; the rest is the GPU's."""
        try:
            device = self._nvml.device(of.uuid or "")
            memory = self._memory(device)
        except NvmlError:
            return None
        activity = self._gpm.activity(f"{whole.device}/{of.id}", handle, instance=of.id)
        return DeviceSample(
            device=whole.device,
            node=whole.node,
            at=whole.at,
            index=whole.index,
            product=whole.product,
            bus_id=whole.bus_id,
            driver=whole.driver,
            instance=of.id,
            profile=of.profile,
            start=of.start,
            interval_ms=whole.interval_ms,
            busy_milli=None if activity is None else activity.graphics_milli,
            memory_used_bytes=memory["used"],
            memory_free_bytes=memory["free"],
            memory_reserved_bytes=memory["reserved"],
            activity=activity,
            processes=self._running(device),
        )

    def _whole(self, raw: RawGpu, handle: Any, at: Instant) -> DeviceSample:
        nvml, able = self._nvml.library, self._able
        memory = self._memory(handle)
        fields = self._fields(handle, _FIELDS)
        rates = able(lambda: nvml.nvmlDeviceGetUtilizationRates(handle))
        mask = able(lambda: int(nvml.nvmlDeviceGetCurrentClocksEventReasons(handle)))
        power = fields.get(_POWER_MEAN_MW)
        return DeviceSample(
            device=DeviceId(raw.uuid),
            node=self._where.node,
            at=at,
            index=raw.index,
            product=raw.product,
            bus_id=raw.bus_id,
            driver=self._where.driver,
            busy_milli=None if rates is None else 10 * int(rates.gpu),
            copy_milli=None if rates is None else 10 * int(rates.memory),
            encoder_milli=able(lambda: 10 * int(nvml.nvmlDeviceGetEncoderUtilization(handle)[0])),
            decoder_milli=able(lambda: 10 * int(nvml.nvmlDeviceGetDecoderUtilization(handle)[0])),
            memory_used_bytes=memory["used"],
            memory_free_bytes=memory["free"],
            memory_reserved_bytes=memory["reserved"],
            temperature_c=able(lambda: int(nvml.nvmlDeviceGetTemperature(handle, 0))),
            memory_temperature_c=fields.get(_MEMORY_TEMPERATURE) or None,
            margin_c=able(lambda: int(nvml.nvmlDeviceGetMarginTemperature(handle))),
            slowdown_c=self._threshold(handle, _SLOWDOWN),
            shutdown_c=self._threshold(handle, _SHUTDOWN),
            power_mw=fields.get(_POWER_NOW_MW) if power is None else power,
            power_limit_mw=able(lambda: int(nvml.nvmlDeviceGetEnforcedPowerLimit(handle))),
            power_limit_set_mw=able(lambda: int(nvml.nvmlDeviceGetPowerManagementLimit(handle))),
            energy_mj_total=fields.get(_ENERGY_MJ),
            sm_clock_mhz=able(lambda: int(nvml.nvmlDeviceGetClockInfo(handle, _SM))),
            sm_clock_most_mhz=able(lambda: int(nvml.nvmlDeviceGetMaxClockInfo(handle, _SM))),
            memory_clock_mhz=able(lambda: int(nvml.nvmlDeviceGetClockInfo(handle, _MEMORY))),
            performance_state=able(lambda: int(nvml.nvmlDeviceGetPerformanceState(handle))),
            throttles=None if mask is None else throttles_of(mask),
            throttled_ns={
                word: fields[number] for number, word in THROTTLED.items() if number in fields
            },
            links=self._links(raw, handle, fields.get(_REPLAYS)),
            memory_errors=self._memory_errors(handle),
        )

    def _memory(self, handle: Any) -> dict[str, int | None]:
        """By version 2, which tells what the driver keeps for itself; NvmlError: it is gone."""
        nvml = self._nvml.library
        told = self._able(lambda: nvml.nvmlDeviceGetMemoryInfo(handle, version=nvml.nvmlMemory_v2))
        if told is not None:
            return {"used": int(told.used), "free": int(told.free), "reserved": int(told.reserved)}
        plain = self._nvml.ask(lambda: nvml.nvmlDeviceGetMemoryInfo(handle))
        return {"used": int(plain.used), "free": int(plain.free), "reserved": None}

    def _threshold(self, handle: Any, kind: int) -> int | None:
        nvml = self._nvml.library
        return self._able(lambda: int(nvml.nvmlDeviceGetTemperatureThreshold(handle, kind))) or None

    def _links(self, raw: RawGpu, handle: Any, replays: int | None) -> Links:
        nvml, able = self._nvml.library, self._able
        return Links(
            pcie_generation=able(lambda: int(nvml.nvmlDeviceGetCurrPcieLinkGeneration(handle))),
            pcie_generation_most=able(lambda: int(nvml.nvmlDeviceGetMaxPcieLinkGeneration(handle))),
            pcie_width=able(lambda: int(nvml.nvmlDeviceGetCurrPcieLinkWidth(handle))),
            pcie_width_most=able(lambda: int(nvml.nvmlDeviceGetMaxPcieLinkWidth(handle))),
            pcie_replays_total=replays,
            nvlink_bytes_total=self._nvlink_bytes(handle) if raw.links else None,
            nvlink_crc_flit_total=self._link_errors(raw, handle, _LINK_CRC_FLIT),
            nvlink_crc_data_total=self._link_errors(raw, handle, _LINK_CRC_DATA),
            nvlink_replays_total=self._link_errors(raw, handle, _LINK_REPLAY),
            nvlink_recoveries_total=self._link_errors(raw, handle, _LINK_RECOVERY),
        )

    def _nvlink_bytes(self, handle: Any) -> int | None:
        told = self._fields(
            handle, ((_NVLINK_SENT_KIB, _ALL_LINKS), (_NVLINK_RECEIVED_KIB, _ALL_LINKS))
        )
        return 1_024 * sum(told.values()) if told else None

    def _link_errors(self, raw: RawGpu, handle: Any, kind: int) -> int | None:
        """Over all links that are there; None where none of them counts."""
        nvml = self._nvml.library
        counts = [
            self._able(
                lambda link=link: int(nvml.nvmlDeviceGetNvLinkErrorCounter(handle, link, kind))
            )
            for link in range(len(raw.links))
        ]
        known = [count for count in counts if count is not None and count < _BLANK]
        return sum(known) if known else None

    def _memory_errors(self, handle: Any) -> MemoryErrors:
        nvml = self._nvml.library
        rows = self._able(lambda: nvml.nvmlDeviceGetRemappedRows(handle))

        def count(kind: int, period: int) -> int | None:
            return self._able(lambda: int(nvml.nvmlDeviceGetTotalEccErrors(handle, kind, period)))

        return MemoryErrors(
            corrected_total=count(_CORRECTED, _SINCE_LOADED),
            uncorrected_total=count(_UNCORRECTED, _SINCE_LOADED),
            corrected_ever=count(_CORRECTED, _EVER),
            uncorrected_ever=count(_UNCORRECTED, _EVER),
            remapped_corrected=None if rows is None else int(rows[0]),
            remapped_uncorrected=None if rows is None else int(rows[1]),
            remap_pending=None if rows is None else bool(rows[2]),
            remap_failed=None if rows is None else bool(rows[3]),
        )

    def _processes(self, id: DeviceId, handle: Any) -> tuple[ProcessSample, ...] | None:
        """Every process on a whole GPU, with what each computed: so sharers are seen apart."""
        running = self._running(handle)
        if running is None:
            return None
        shares = self._shares(id, handle)
        return tuple(replace(each, sm_milli=shares.get(each.pid)) for each in running)

    def _running(self, handle: Any) -> tuple[ProcessSample, ...] | None:
        nvml = self._nvml.library
        told = self._able(lambda: nvml.nvmlDeviceGetComputeRunningProcesses(handle))
        if told is None:
            return None
        found = {int(each.pid): each.usedGpuMemory for each in told}
        return tuple(
            ProcessSample(pid=pid, memory_bytes=None if used is None else int(used))
            for pid, used in sorted(found.items())
        )

    def _shares(self, id: DeviceId, handle: Any) -> dict[int, int]:
        """What each process computed since the last look, as the mean of what the driver kept."""
        nvml, since = self._nvml.library, self._utilised_at.get(id, 0)
        told = self._able(lambda: list(nvml.nvmlDeviceGetProcessUtilization(handle, since))) or []
        kept: dict[int, list[int]] = {}
        for each in told:
            # The driver leaves entries empty where it had nothing to say.
            if int(each.timeStamp) > since and int(each.smUtil) <= 100:
                kept.setdefault(int(each.pid), []).append(int(each.smUtil))
        self._utilised_at[id] = max([since, *(int(each.timeStamp) for each in told)])
        return {pid: 10 * sum(values) // len(values) for pid, values in kept.items()}

    def _fields(self, handle: Any, wanted: tuple[Any, ...]) -> dict[int, int]:
        """The fields that this GPU has, by number."""
        nvml = self._nvml.library
        told = self._able(lambda: nvml.nvmlDeviceGetFieldValues(handle, list(wanted)))
        if told is None:
            return {}
        values = {int(each.fieldId): _number(each) for each in told if each.nvmlReturn == 0}
        return {number: value for number, value in values.items() if 0 <= value < _BLANK}

    def _able(self, question: Callable[[], _T]) -> _T | None:
        return self._nvml.ask_if_able(question, None)


def throttles_of(mask: int) -> tuple[Throttle, ...]:
    """The reasons that NVML's mask names, lowest bit first."""
    return tuple(reason for bit, reason in enumerate(_REASONS) if mask >> bit & 1)


def _number(field: Any) -> int:
    """A field's value; which member of the union holds it, the driver says."""
    members = ("dVal", "uiVal", "ulVal", "ullVal", "sllVal", "siVal")
    return int(getattr(field.value, members[int(field.valueType)]))
