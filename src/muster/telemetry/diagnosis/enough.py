"""The request that would have done: what an attempt needed, with some room above it (pure)."""

from collections.abc import Iterator, Sequence

from muster.model.efficiency import DeviceUse, JobReport
from muster.model.gpu import WHOLE_GPU_MILLI
from muster.model.job import JobSpec
from muster.model.mig import geometry, mig_milli
from muster.model.value import MINUTE, Duration, GpuModel, Value
from muster.telemetry.diagnosis import flags
from muster.telemetry.diagnosis.flags import Language

_ROOM_MILLI = 1_200
"""A fifth above what was needed."""

_MIB = 1_048_576
_USED_MILLI = 20
"""A device that was busy for less than this had no work."""

_LEAST_PERCENT = 10
_LEAST_MEMORY_MIB = 256
_LEAST_TIME = Duration(10 * MINUTE)


class Asked(Value):
    """What was asked for, where it ran, and how requests are written there.

    ended_well: the job came to its own end, so that the time it took is the time it takes.
    """

    spec: JobSpec
    language: Language
    model: GpuModel | None = None
    ended_well: bool = False


class Amount(Value, gc=False):
    """One thing that was asked for: how much, how much was used, and the flag that is enough."""

    what: str
    asked: str
    used: str
    flag: str


class GpuPart(Value, gc=False):
    """A part of a GPU that is enough: a MIG profile, or a percentage under MPS."""

    milli: int
    profile: str = ""
    percent: int = 0

    def flag(self, language: Language) -> str:
        if self.profile:
            return flags.profile(self.profile, language)
        return flags.share(self.percent, language)


def enough(report: JobReport, asked: Asked) -> tuple[Amount, ...]:
    """Where less than was asked for would have done; nothing of jobs of several kinds of tasks."""
    if len(asked.spec.groups) != 1 or not report.elapsed_ms:
        return ()
    return (
        *_gpus(report, asked),
        *_cpus(report, asked),
        *_memory(report, asked),
        *_time(report, asked),
    )


def gpu_part(report: JobReport, model: GpuModel | None) -> GpuPart | None:
    """The smallest part of its one GPU that holds what the job needed; None if it needed it all."""
    if len(report.devices) != 1 or report.devices[0].gpu_milli < WHOLE_GPU_MILLI:
        return None
    device = report.devices[0]
    sm = device.means.get("sm", device.means.get("busy"))
    peak, memory = device.memory_peak_bytes, device.memory_bytes
    if sm is None or peak is None or not memory:
        return None
    part = max(sm, WHOLE_GPU_MILLI * peak // memory) * _ROOM_MILLI // WHOLE_GPU_MILLI
    if part >= WHOLE_GPU_MILLI // 2:
        return None
    return _profile(model, peak, part) or _share(part)


def _profile(model: GpuModel | None, peak: int, part: int) -> GpuPart | None:
    cut = geometry(model)
    if cut is None:
        return None
    needed_mib = peak * _ROOM_MILLI // (WHOLE_GPU_MILLI * _MIB)
    fits = [
        each
        for each in cut.profiles
        if not each.media
        and each.memory_mib >= needed_mib
        and mig_milli(model, each.name) >= min(part, WHOLE_GPU_MILLI)
    ]
    if not fits:
        return None
    least = min(fits, key=lambda each: (each.compute_slices, each.memory_slices, each.name))
    return GpuPart(milli=mig_milli(model, least.name), profile=least.name)


def _share(part: int) -> GpuPart:
    percent = max(_LEAST_PERCENT, -(-part // 50) * 5)
    return GpuPart(milli=percent * 10, percent=percent)


def _gpus(report: JobReport, asked: Asked) -> Iterator[Amount]:
    devices, group = report.devices, asked.spec.groups[0]
    if not devices:
        return
    part = gpu_part(report, asked.model)
    if part is not None and group.count == 1:
        name = part.profile or f"{part.percent} % of a GPU"
        sm, peak = devices[0].means.get("sm", 0) // 10, _peak_mib(devices[0])
        yield Amount(
            what="GPU",
            asked="a whole one",
            used=f"{sm} % of its SMs, {peak} MiB: {name} is enough",
            flag=part.flag(asked.language),
        )
        return
    used = sum(each.means.get("busy", WHOLE_GPU_MILLI) >= _USED_MILLI for each in devices)
    if used < len(devices) and used % group.count == 0 and used:
        yield Amount(
            what="GPUs",
            asked=str(len(devices)),
            used=str(used),
            flag=flags.gpus(used // group.count, asked.language),
        )


def _cpus(report: JobReport, asked: Asked) -> Iterator[Amount]:
    """Of the node that used most, which decides for all."""
    granted = sum(each.cpu_granted_milli or 0 for each in report.nodes)
    used = [
        (each.cpu_used_ms * 1_000 // report.elapsed_ms, each.cpu_granted_milli)
        for each in report.nodes
        if each.cpu_used_ms is not None and each.cpu_granted_milli
    ]
    each_milli = asked.spec.groups[0].each.cpu_milli
    if not used or not granted or not each_milli:
        return
    part = max(1_000 * milli // of for milli, of in used)
    needed = max(1, -(-each_milli * part * _ROOM_MILLI // 1_000_000_000))
    if needed * 1_000 < each_milli:
        yield Amount(
            what="CPUs",
            asked=f"{each_milli / 1_000:g}",
            used=f"{each_milli * part / 1_000_000:.1f} on the mean",
            flag=flags.cpus(needed, asked.language),
        )


def _memory(report: JobReport, asked: Asked) -> Iterator[Amount]:
    """Of one task, where a node has one; of several it is not known who used what."""
    group = asked.spec.groups[0]
    peaks = [node.memory_peak_bytes for node in report.nodes if node.memory_peak_bytes]
    if not group.each.memory_mib or not peaks or group.count > len(report.nodes):
        return
    peak = max(peaks) // _MIB
    needed = max(_LEAST_MEMORY_MIB, -(-peak * _ROOM_MILLI // 1_000))
    if needed * _ROOM_MILLI < group.each.memory_mib * 1_000:
        yield Amount(
            what="memory",
            asked=f"{group.each.memory_mib} MiB",
            used=f"{peak} MiB",
            flag=flags.memory(needed, asked.language),
        )


def _time(report: JobReport, asked: Asked) -> Iterator[Amount]:
    """What others are told of when a place is free again: shorter limits start earlier."""
    limit = asked.spec.time_limit
    if limit is None or not asked.ended_well or not report.is_over:
        return
    needed = Duration(max(_LEAST_TIME, report.elapsed_ms * _ROOM_MILLI // 1_000))
    if needed * 2 < limit:
        yield Amount(
            what="time",
            asked=_minutes(limit),
            used=_minutes(Duration(report.elapsed_ms)),
            flag=flags.time_limit(needed, asked.language),
        )


def peak_milli(devices: Sequence[DeviceUse]) -> int | None:
    """How full the memory of the fullest GPU was."""
    known = [
        WHOLE_GPU_MILLI * each.memory_peak_bytes // each.memory_bytes
        for each in devices
        if each.memory_peak_bytes is not None and each.memory_bytes
    ]
    return max(known, default=None)


def _peak_mib(device: DeviceUse) -> int:
    return (device.memory_peak_bytes or 0) // _MIB


def _minutes(span: Duration) -> str:
    minutes = -(-span // MINUTE)
    return f"{minutes // 60}:{minutes % 60:02d}:00"
