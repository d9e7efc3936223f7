"""What a Prometheus with dcgm-exporter is asked, and its answers as samples (pure).

One query for each signal, for all devices together, never one for each job. dcgm-exporter renamed
some of its fields and keeps the old ones too: what either name has is taken.
"""

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import msgspec

from muster.model.cluster import Node
from muster.model.gpu import Device
from muster.model.samples import DeviceSample, Throttle
from muster.model.value import DeviceId, Instant, NodeId, Value

BLANK = 2.0**62
"""From here on values are what old exporters give where they have none."""

_MIB = 1_048_576
_MOST = (1 << 63) - 1
"""No larger number can be sent on as JSON."""

_LONGEST_NAME = 100
_NOT_AS_PROMETHEUS = (
    msgspec.DecodeError,
    LookupError,
    TypeError,
    ValueError,
    AttributeError,
    RecursionError,
)
_BY = "UUID, Hostname, hostname, gpu, GPU_I_ID, GPU_I_PROFILE, modelName"

Row = tuple[Mapping[str, str], float]


class Signal(Value):
    """A field of a sample: under which names it is exported, and what one of it is there.

    within: the part of the sample that has it. is_last: no mean of it makes sense.
    most: it is never more.
    """

    field: str
    names: tuple[str, ...]
    times: float = 1
    within: str = ""
    is_last: bool = False
    most: int | None = None


def _signal(field: str, names: str, times: float = 1) -> Signal:
    return Signal(field=field, names=_named_in_full(names), times=times)


def _activity(field: str, names: str) -> Signal:
    """More than all was seen of MIG instances."""
    return Signal(
        field=field, names=_named_in_full(names), times=1_000, within="activity", most=1_000
    )


def _rate(field: str, names: str) -> Signal:
    return Signal(field=field, names=_named_in_full(names), within="activity")


def _last(field: str, names: str, within: str = "", times: float = 1) -> Signal:
    return Signal(
        field=field, names=_named_in_full(names), times=times, within=within, is_last=True
    )


def _named_in_full(names: str) -> tuple[str, ...]:
    return tuple(f"DCGM_FI_{name}" for name in names.split())


SIGNALS = (
    _signal("busy_milli", "DEV_GPU_UTIL", 10),
    _signal("copy_milli", "DEV_MEM_COPY_UTIL", 10),
    _signal("memory_used_bytes", "DEV_FB_USED", _MIB),
    _signal("memory_free_bytes", "DEV_FB_FREE", _MIB),
    _signal("memory_reserved_bytes", "DEV_FB_RESERVED", _MIB),
    _signal("temperature_c", "DEV_GPU_TEMP DEV_GPU_TEMP_CELSIUS"),
    _signal("memory_temperature_c", "DEV_MEMORY_TEMP DEV_MEMORY_TEMP_CELSIUS"),
    _signal("power_mw", "DEV_POWER_USAGE DEV_BOARD_POWER_WATTS", 1_000),
    _signal("power_limit_mw", "DEV_ENFORCED_POWER_LIMIT", 1_000),
    _signal("sm_clock_mhz", "DEV_SM_CLOCK"),
    _last("sm_clock_most_mhz", "DEV_MAX_SM_CLOCK"),
    _last("performance_state", "DEV_PSTATE"),
    _last("energy_mj_total", "DEV_TOTAL_ENERGY_CONSUMPTION"),
    _last("throttles", "DEV_CLOCKS_EVENT_REASONS DEV_CLOCK_THROTTLE_REASONS"),
    _last("power", "DEV_POWER_VIOLATION", "throttled_ns"),
    _last("thermal", "DEV_THERMAL_VIOLATION", "throttled_ns"),
    _last("corrected_total", "DEV_ECC_SBE_VOL_TOTAL", "memory_errors"),
    _last("uncorrected_total", "DEV_ECC_DBE_VOL_TOTAL", "memory_errors"),
    _last("corrected_ever", "DEV_ECC_SBE_AGG_TOTAL", "memory_errors"),
    _last("uncorrected_ever", "DEV_ECC_DBE_AGG_TOTAL", "memory_errors"),
    _last("pcie_generation", "DEV_PCIE_LINK_GEN", "links"),
    _last("pcie_generation_most", "DEV_PCIE_MAX_LINK_GEN", "links"),
    _last("pcie_width", "DEV_PCIE_LINK_WIDTH", "links"),
    _last("pcie_width_most", "DEV_PCIE_MAX_LINK_WIDTH", "links"),
    _last("pcie_replays_total", "DEV_PCIE_REPLAY_COUNTER", "links"),
    _activity("graphics_milli", "PROF_GR_ENGINE_ACTIVE PROF_GR_ENGINE_UTIL_RATIO"),
    _activity("sm_milli", "PROF_SM_ACTIVE PROF_SM_UTIL_RATIO"),
    _activity("occupancy_milli", "PROF_SM_OCCUPANCY PROF_SM_OCCUPANCY_RATIO"),
    _activity("tensor_milli", "PROF_PIPE_TENSOR_ACTIVE PROF_TENSOR_UTIL_RATIO"),
    _activity("dram_milli", "PROF_DRAM_ACTIVE PROF_DRAM_UTIL_RATIO"),
    _activity("fp64_milli", "PROF_PIPE_FP64_ACTIVE PROF_FP64_UTIL_RATIO"),
    _activity("fp32_milli", "PROF_PIPE_FP32_ACTIVE PROF_FP32_UTIL_RATIO"),
    _activity("fp16_milli", "PROF_PIPE_FP16_ACTIVE PROF_FP16_UTIL_RATIO"),
    _rate("pcie_sent_bytes_per_s", "PROF_PCIE_TX_BYTES"),
    _rate("pcie_received_bytes_per_s", "PROF_PCIE_RX_BYTES"),
    _rate("nvlink_sent_bytes_per_s", "PROF_NVLINK_TX_BYTES"),
    _rate("nvlink_received_bytes_per_s", "PROF_NVLINK_RX_BYTES"),
)

_REASONS = tuple(Throttle)
"""Why clocks are low, in the order of the bits of NVML's mask."""


class UnreadableAnswerError(Exception):
    """It is none of Prometheus'."""


def query(signal: Signal, match: str, seconds: int) -> str:
    """The mean of a signal over the last seconds, of every device that the match selects.

    Of a counter, or of what is a number and no amount, the last value.
    """
    over, together = ("last_over_time", "max") if signal.is_last else ("avg_over_time", "avg")
    means = (f"{over}({name}{match}[{seconds}s])" for name in signal.names)
    return f"{together} by ({_BY}) ({' or '.join(means)})"


def rows(answer: bytes) -> tuple[Row, ...]:
    """The series of an answer; those that say nothing are left out. UnreadableAnswerError."""
    try:
        found = msgspec.json.decode(answer, type=dict[str, Any])
        if found.get("status") != "success":
            raise UnreadableAnswerError(str(found.get("error", "it does not say why"))[:200])
        return tuple(_rows(found["data"]["result"]))
    except _NOT_AS_PROMETHEUS as error:
        raise UnreadableAnswerError(f"no answer of Prometheus ({error})"[:200]) from error


def _rows(result: list[dict[str, Any]]) -> Iterator[Row]:
    for each in result:
        value = float(each["value"][1])
        if math.isfinite(value) and abs(value) < BLANK:
            yield {str(name): str(text) for name, text in each["metric"].items()}, value


class Fleet:
    """The devices of a cluster, by what exporters call them."""

    def __init__(self, nodes: Iterable[Node]) -> None:
        self._by_id: dict[str, tuple[NodeId, Device]] = {}
        self._by_place: dict[tuple[str, str], tuple[NodeId, Device]] = {}
        for node in nodes:
            for device in node.devices:
                self._by_id[device.id] = (node.id, device)
                self._by_place[_short(node.id), str(device.index)] = (node.id, device)

    def find(self, labels: Mapping[str, str]) -> tuple[NodeId, Device] | None:
        """By its UUID; where the cluster knows none, by its place on its node."""
        host = labels.get("Hostname") or labels.get("hostname") or ""
        place = (_short(host), labels.get("gpu", ""))
        return self._by_id.get(labels.get("UUID", "")) or self._by_place.get(place)


def samples_of(
    answers: Mapping[Signal, Iterable[Row]], fleet: Fleet, at: Instant, seconds: int
) -> tuple[DeviceSample, ...]:
    """Devices of ours, and MIG instances of them, of which anything was answered."""
    found: defaultdict[tuple[DeviceId, int | None], dict[str, Any]] = defaultdict(dict)
    for signal, told in answers.items():
        for labels, value in told:
            place = fleet.find(labels)
            if place is None:
                continue
            fields = found[place[1].id, _instance(labels)]
            fields.update(_named(labels, place))
            into = fields.setdefault(signal.within, {}) if signal.within else fields
            into[signal.field] = _read(signal, value)
    whole = {"at": at, "interval_ms": 1_000 * seconds}
    return tuple(
        msgspec.convert({**fields, **whole, "device": id, "instance": instance}, DeviceSample)
        for (id, instance), fields in sorted(found.items(), key=_by_device)
    )


def _read(signal: Signal, value: float) -> int | tuple[Throttle, ...]:
    amount = min(_MOST, max(0, round(value * signal.times)))
    if signal.field == "throttles":
        return tuple(reason for bit, reason in enumerate(_REASONS) if amount >> bit & 1)
    return amount if signal.most is None else min(signal.most, amount)


def _by_device(item: tuple[tuple[DeviceId, int | None], object]) -> tuple[str, int]:
    (device, instance), _ = item
    return device, -1 if instance is None else instance


def _named(labels: Mapping[str, str], place: tuple[NodeId, Device]) -> dict[str, Any]:
    node, device = place
    return {
        "node": node,
        "index": device.index,
        "product": _line(labels.get("modelName", str(device.model))),
        "profile": _line(labels.get("GPU_I_PROFILE", "")),
    }


def _line(text: str) -> str:
    """A name as others gave it, which terminals of people show."""
    return "".join(each if each.isprintable() else " " for each in text[:_LONGEST_NAME])


def _instance(labels: Mapping[str, str]) -> int | None:
    told = labels.get("GPU_I_ID", "")
    return int(told) if told.isascii() and told.isdigit() and len(told) < 9 else None


def _short(host: str) -> str:
    return host.partition(".")[0].lower()


Ask = Callable[[str], bytes]
"""Sends one query, and gives the answer as it is."""


def all_samples(
    ask: Ask, match: str, fleet: Fleet, at: Instant, seconds: int
) -> tuple[DeviceSample, ...]:
    """Every signal, asked for one after the other."""
    answers = {signal: rows(ask(query(signal, match, seconds))) for signal in SIGNALS}
    return samples_of(answers, fleet, at, seconds)
