"""From what one look measured to the signals of one part of a device (pure).

Counters are compared with the look before; a GPU that several jobs share is split by what the
processes of each computed.
"""

import re
from collections.abc import Iterable, Mapping

from muster.model.gpu import WHOLE_GPU_MILLI
from muster.model.holding import Holding
from muster.model.samples import DeviceSample, HostSample, JobSample, ProcessSample, Throttle
from muster.model.value import Value, replace
from muster.telemetry.diagnosis.signals import MISSING, Signals

_KIB = 1_024
_MIB = 1_048_576

# Bytes a second of one lane in one direction, by generation.
_LANE_BYTES = {
    1: 250_000_000,
    2: 500_000_000,
    3: 985_000_000,
    4: 1_969_000_000,
    5: 3_938_000_000,
    6: 7_563_000_000,
}
# Bytes a second over all NVLinks of a GPU in one direction.
_NVLINK_BYTES = {
    "P100": 80_000_000_000,
    "V100": 150_000_000_000,
    "A30": 100_000_000_000,
    "A100": 300_000_000_000,
    "A800": 200_000_000_000,
    "H100": 450_000_000_000,
    "H200": 450_000_000_000,
    "H800": 200_000_000_000,
    "H20": 450_000_000_000,
    "GH200": 450_000_000_000,
    "B200": 900_000_000_000,
    "B300": 900_000_000_000,
    "GB200": 900_000_000_000,
    "GB300": 900_000_000_000,
}
_COMPUTING_MILLI = 200
_HEAT = ("sw_thermal", "hw_thermal")
_HEAT_OF_OLD_DRIVERS = ("thermal",)


class Surroundings(Value):
    """What was measured beside a device: the job on that node, the node, and the look before."""

    job: JobSample | None = None
    host: HostSample | None = None
    host_before: HostSample | None = None
    device_before: DeviceSample | None = None


def signals_of(sample: DeviceSample, holding: Holding, beside: Surroundings) -> Signals:
    """What is known of the holding's part of the device since the look before."""
    activity = sample.activity
    pcie, link = _links(sample, beside.device_before)
    low = _throttled(sample, beside.device_before)
    seen = Signals(
        busy=_known(sample.busy_milli),
        sm=_known(activity and activity.sm_milli),
        occupancy=_known(activity and activity.occupancy_milli),
        tensor=_known(activity and activity.tensor_milli),
        fp32=_known(activity and activity.fp32_milli),
        fp64=_known(activity and activity.fp64_milli),
        dram=_known(activity and activity.dram_milli),
        memory=_part(sample.memory_used_bytes, sample.memory_bytes),
        power=_part(sample.power_mw, sample.power_limit_mw),
        clock=_part(sample.sm_clock_mhz, sample.sm_clock_most_mhz),
        link=link,
        pcie=pcie,
        temperature=_known(sample.temperature_c) * 1_000,
        heat=low["heat"],
        power_cap=low["power_cap"],
        brake=low["brake"],
        clocks_set=low["clocks_set"],
        processes=_own_processes(sample, holding),
        is_narrow=_is_narrow(sample),
    )
    if holding.gpu_milli < WHOLE_GPU_MILLI and sample.instance is None:
        seen = _own_part(seen, sample, holding)
    return with_job(seen, beside)


def with_job(signals: Signals, beside: Surroundings) -> Signals:
    """The same, with the CPU side of the job on that node."""
    job = beside.job
    network = _network(beside.host_before, beside.host)
    if job is None:
        return replace(signals, network=network)
    blocked, pressure = _known(job.blocked_milli), _known(job.pressure.io_milli)
    written, read = _known(job.written_bytes_per_s), _known(job.read_bytes_per_s)
    return replace(
        signals,
        cpu=_part(job.cpu_used_milli, job.cpu_granted_milli),
        cpu_throttled=_known(job.cpu_throttled_milli),
        thread=_known(job.busiest_thread_milli),
        io=_most(blocked, pressure),
        blocked=blocked,
        written=written / _KIB,
        moved=(written + read) / _KIB,
        network=network,
        host_memory=_part(job.memory_bytes, job.memory_limit_bytes),
    )


def _own_part(seen: Signals, sample: DeviceSample, holding: Holding) -> Signals:
    """Of a shared GPU, what this job's processes had, of what it was given.

    The driver tells by process how long each computed, and what memory it has; the parts of the
    GPU are split alike. Under MPS it may tell of memory alone: then who is alone on the GPU has
    all that it did, nobody did anything where it stood still, and the rest is not known.
    """
    every, of = sample.processes, holding.gpu_milli / WHOLE_GPU_MILLI
    if every is None:
        return replace(_without_use(seen), memory=MISSING)
    own = [each for each in every if _is_own(holding, each.job, each.attempt)]
    memory = _least(1_000, _memory_of(own, sample) / of)
    if not own or any(each.sm_milli is not None for each in own):
        all_sm = sum(each.sm_milli or 0 for each in every)
        own_sm = sum(each.sm_milli or 0 for each in own)
        part = own_sm / all_sm if all_sm else 0
        return replace(_scaled(seen, part / of), busy=min(1_000, own_sm / of), memory=memory)
    if len(own) == len(every):
        return replace(_scaled(seen, 1 / of), busy=_least(1_000, seen.busy / of), memory=memory)
    busy = MISSING if seen.busy else 0
    return replace(_without_use(seen), busy=busy, memory=memory)


def _scaled(seen: Signals, times: float) -> Signals:
    """A part of what the whole device did, of what the holding may have of it."""
    return replace(
        seen,
        sm=_least(1_000, seen.sm * times),
        tensor=_least(1_000, seen.tensor * times),
        fp32=_least(1_000, seen.fp32 * times),
        fp64=_least(1_000, seen.fp64 * times),
        dram=_least(1_000, seen.dram * times),
    )


def _without_use(seen: Signals) -> Signals:
    """Nobody can say whose it was."""
    return replace(
        seen, busy=MISSING, sm=MISSING, occupancy=MISSING, tensor=MISSING,
        fp32=MISSING, fp64=MISSING, dram=MISSING, power=MISSING,
    )  # fmt: skip


def _memory_of(own: Iterable[ProcessSample], sample: DeviceSample) -> float:
    """What the processes have of the device's memory; 0 of nobody's."""
    told = [each.memory_bytes for each in own]
    known = [each for each in told if each is not None]
    return MISSING if told and not known else _part(sum(known), sample.memory_bytes)


def _own_processes(sample: DeviceSample, holding: Holding) -> float:
    if sample.processes is None:
        return MISSING
    return sum(_is_own(holding, each.job, each.attempt) for each in sample.processes)


def _is_own(holding: Holding, job: int | None, attempt: int | None) -> bool:
    return job == holding.job and attempt in {None, holding.attempt}


def _links(sample: DeviceSample, before: DeviceSample | None) -> tuple[float, float]:
    """PCIe, and the busier of PCIe and NVLink: of what each can carry in one direction."""
    activity = sample.activity
    pcie = nvlink = MISSING
    lane = _LANE_BYTES.get(sample.links.pcie_generation or 0)
    if activity is not None and lane and sample.links.pcie_width:
        most = _most(
            _known(activity.pcie_sent_bytes_per_s), _known(activity.pcie_received_bytes_per_s)
        )
        pcie = _least(1_000, 1_000 * most / (lane * sample.links.pcie_width))
    capable = _nvlink_bytes(sample.product)
    if capable:
        nvlink = _least(1_000, 1_000 * _nvlink_rate(sample, before) / capable)
    return pcie, _most(pcie, nvlink)


def _nvlink_rate(sample: DeviceSample, before: DeviceSample | None) -> float:
    activity = sample.activity
    if activity is not None and activity.nvlink_sent_bytes_per_s is not None:
        return _most(
            _known(activity.nvlink_sent_bytes_per_s),
            _known(activity.nvlink_received_bytes_per_s),
        )
    then = None if before is None else before.links.nvlink_bytes_total
    now = sample.links.nvlink_bytes_total
    if before is None or then is None or now is None or now < then or sample.at <= before.at:
        return MISSING
    # Both directions together, as the driver counts them.
    return 500 * (now - then) / (sample.at - before.at)


_FAMILY = re.compile(r"\b(?:NVIDIA |Tesla )?((?:GB|GH|[ABHPV])\d{2,3})\b")


def _nvlink_bytes(product: str) -> int | None:
    found = _FAMILY.search(product)
    return _NVLINK_BYTES.get(found[1]) if found else None


def _is_narrow(sample: DeviceSample) -> bool:
    """Idle links lower their generation by themselves, so that it counts only while busy."""
    links = sample.links
    if links.pcie_width and links.pcie_width_most and links.pcie_width < links.pcie_width_most:
        return True
    return bool(
        links.pcie_generation
        and links.pcie_generation_most
        and links.pcie_generation < links.pcie_generation_most
        and (sample.busy_milli or 0) >= _COMPUTING_MILLI
    )


def _throttled(sample: DeviceSample, before: DeviceSample | None) -> Mapping[str, float]:
    """The part of the time in which clocks were low, by what: by counters, else by the mask."""
    return {
        "heat": _first(
            _counted(_HEAT, sample, before),
            _counted(_HEAT_OF_OLD_DRIVERS, sample, before),
            _masked(sample, Throttle.SW_THERMAL, Throttle.HW_THERMAL),
        ),
        "power_cap": _first(
            _counted(("power",), sample, before), _masked(sample, Throttle.POWER_CAP)
        ),
        "brake": _first(
            _counted(("hw_power_brake",), sample, before),
            _masked(sample, Throttle.HW_POWER_BRAKE),
        ),
        "clocks_set": _masked(sample, Throttle.CLOCKS_SETTING),
    }


def _counted(names: Iterable[str], sample: DeviceSample, before: DeviceSample | None) -> float:
    if before is None or sample.at <= before.at:
        return MISSING
    then, now = before.throttled_ns, sample.throttled_ns
    known = [name for name in names if name in now and name in then]
    if not known:
        return MISSING
    grown: int = sum(max(0, now[name] - then[name]) for name in known)
    return min(1_000, grown / (1_000 * (sample.at - before.at)))


def _masked(sample: DeviceSample, *reasons: Throttle) -> float:
    if sample.throttles is None:
        return MISSING
    return 1_000 if any(reason in sample.throttles for reason in reasons) else 0


def _network(before: HostSample | None, now: HostSample | None) -> float:
    if before is None or now is None or now.at <= before.at:
        return MISSING
    grown = [
        new - old
        for old, new in (
            (before.received_bytes_total, now.received_bytes_total),
            (before.sent_bytes_total, now.sent_bytes_total),
        )
        if old is not None and new is not None and new >= old
    ]
    return max(grown) * 1_000 / (now.at - before.at) / _MIB if grown else MISSING


def _known(value: int | None) -> float:
    return MISSING if value is None else value


def _part(some: int | None, all: int | None) -> float:
    return MISSING if some is None or not all else 1_000 * some / all


def _first(*values: float) -> float:
    return next((value for value in values if value >= 0), MISSING)


def _most(one: float, other: float) -> float:
    """The greater of what is known."""
    return other if not one >= other and other >= 0 else one


def _least(limit: float, value: float) -> float:
    # In this order what is missing stays missing.
    return min(value, limit)
