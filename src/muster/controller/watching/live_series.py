"""What was measured of jobs in the last hour, for those who look at one that runs."""

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from muster.controller.watching.device_source import by_device, holdings_on
from muster.model.holding import Holding
from muster.model.samples import DeviceSample, JobSample
from muster.model.value import HOUR, SECOND, DeviceId, Duration, Instant, JobId, NodeId, Value
from muster.telemetry.look import Look
from muster.telemetry.window import Window

USUAL_INTERVAL = Duration(15 * SECOND)

MOST_SERIES = 10_000
"""So many values of one look are kept; what is more is not looked at by anybody in an hour."""


class SeriesKey(NamedTuple):
    """One signal of one attempt, on one device or, without one, on one node."""

    job: JobId
    attempt: int
    node: NodeId
    device: DeviceId | None
    instance: int | None
    signal: str


class Series(Value):
    """The values of one signal: instants and numbers, the oldest first."""

    key: SeriesKey
    values: tuple[tuple[Instant, float], ...]


class LiveSeries:
    """Hears of every look; any thread may ask."""

    def __init__(self) -> None:
        self._window: Window[SeriesKey] = Window(HOUR, USUAL_INTERVAL)

    def look(self, look: Look) -> None:
        """Keep what was measured of every attempt."""
        values: dict[SeriesKey, float] = {}
        holders = by_device(look.holdings)
        for samples in look.samples.values():
            for device in samples.devices:
                for holding in holdings_on(device, holders.get(device.device, [])):
                    values.update(_of_device(device, holding))
                if len(values) > MOST_SERIES:
                    break
            for job in samples.jobs[:MOST_SERIES]:
                values.update(_of_job(job))
        self._window.add(look.at, values)

    def of(self, job: JobId, since: Instant | None = None) -> tuple[Series, ...]:
        """All series of a job, by attempt, node, device and signal."""
        known = self._window.keys()
        found = sorted(
            (key for key in known if key.job == job),
            key=lambda key: (
                key.attempt,
                key.node,
                key.device or "",
                key.instance or 0,
                key.signal,
            ),
        )
        return tuple(
            Series(key=key, values=tuple(self._window.values(key, since))) for key in found
        )


def _of_device(sample: DeviceSample, holding: Holding) -> Iterator[tuple[SeriesKey, float]]:
    for signal, value in device_signals(sample).items():
        yield (
            SeriesKey(
                holding.job,
                holding.attempt,
                sample.node,
                sample.device,
                sample.instance,
                signal,
            ),
            value,
        )


def device_signals(sample: DeviceSample) -> Mapping[str, float]:
    """What a page shows of a device: parts of 1, degrees and watts; those that are there."""
    activity, memory = sample.activity, sample.memory_bytes
    used = sample.memory_used_bytes
    told: dict[str, float | None] = {
        "busy": _part(sample.busy_milli),
        "sm": None if activity is None else _part(activity.sm_milli),
        "tensor": None if activity is None else _part(activity.tensor_milli),
        "dram": None if activity is None else _part(activity.dram_milli),
        "memory": used / memory if used is not None and memory else None,
        "power": None if sample.power_mw is None else sample.power_mw / 1_000,
        "heat": sample.temperature_c,
    }
    return {signal: value for signal, value in told.items() if value is not None}


def _of_job(sample: JobSample) -> Iterator[tuple[SeriesKey, float]]:
    granted, io = sample.cpu_granted_milli, sample.pressure.io_milli
    told: dict[str, float | None] = {
        "cpu": sample.cpu_used_milli / granted
        if sample.cpu_used_milli is not None and granted
        else None,
        "io": _part(sample.blocked_milli if io is None else io),
        "host_memory": sample.memory_bytes,
    }
    for signal, value in told.items():
        if value is not None:
            yield SeriesKey(sample.job, sample.attempt, sample.node, None, None, signal), value


def _part(milli: int | None) -> float | None:
    return None if milli is None else milli / 1_000
