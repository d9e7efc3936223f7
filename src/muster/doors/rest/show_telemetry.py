"""What is measured, as documents (pure)."""

from collections import defaultdict
from collections.abc import Iterable, Sequence

from muster.api.telemetry import DevicesNowDocument, JobSeriesDocument, SeriesOfDeviceDocument
from muster.controller.queries.telemetry import DeviceNow
from muster.controller.watching.live_series import Series, SeriesKey
from muster.model.samples import DeviceSample
from muster.model.value import DeviceId, Duration, Instant, NodeId

_Place = tuple[int, NodeId, DeviceId | None, int | None]


def devices_document(devices: Sequence[DeviceNow]) -> DevicesNowDocument:
    """In columns."""
    samples = [each.sample for each in devices]
    return DevicesNowDocument(
        id=tuple(str(each.device.id) for each in devices),
        node=tuple(str(each.node.id) for each in devices),
        index=tuple(each.device.index for each in devices),
        model=tuple(str(each.device.model) for each in devices),
        rack=tuple(each.node.where[-1] if each.node.where else None for each in devices),
        health=tuple(each.device.state.value for each in devices),
        jobs=tuple(tuple(map(int, each.jobs)) for each in devices),
        busy=tuple(_part(each and each.busy_milli) for each in samples),
        memory=tuple(map(_memory, samples)),
        heat=tuple(each and each.temperature_c for each in samples),
        margin=tuple(each and each.margin_c for each in samples),
        power=tuple(_part(each and each.power_mw) for each in samples),
    )


def series_document(
    found: Iterable[Series], signals: Sequence[str], step: Duration
) -> JobSeriesDocument:
    """Means of each step, from the first instant that any of them has."""
    wanted = [each for each in found if each.key.signal in signals and each.values]
    if not wanted:
        return JobSeriesDocument(start=None, step_ms=step)
    first = min(each.values[0][0] for each in wanted)
    start = Instant(first - first % step)
    steps = (max(each.values[-1][0] for each in wanted) - start) // step + 1
    by_place: defaultdict[_Place, list[Series]] = defaultdict(list)
    for each in wanted:
        by_place[_place(each.key)].append(each)
    documents = [
        SeriesOfDeviceDocument(
            attempt=attempt,
            node=node,
            id=device,
            instance=instance,
            values={each.key.signal: _means(each, start, step, steps) for each in of_place},
        )
        for (attempt, node, device, instance), of_place in by_place.items()
    ]
    return JobSeriesDocument(
        start=start,
        step_ms=step,
        devices=tuple(each for each in documents if each.id is not None),
        nodes=tuple(each for each in documents if each.id is None),
    )


def _place(key: SeriesKey) -> _Place:
    return key.attempt, key.node, key.device, key.instance


def _means(series: Series, start: Instant, step: Duration, steps: int) -> tuple[float | None, ...]:
    sums, counts = [0.0] * steps, [0] * steps
    for at, value in series.values:
        place = (at - start) // step
        sums[place] += value
        counts[place] += 1
    return tuple(
        round(total / count, 4) if count else None
        for total, count in zip(sums, counts, strict=True)
    )


def _part(milli: int | None) -> float | None:
    return None if milli is None else milli / 1_000


def _memory(sample: DeviceSample | None) -> float | None:
    if sample is None or sample.memory_used_bytes is None or not sample.memory_bytes:
        return None
    return round(sample.memory_used_bytes / sample.memory_bytes, 4)
