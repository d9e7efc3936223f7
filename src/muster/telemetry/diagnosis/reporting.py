"""Everything that one attempt did so far, and the report made of it (pure).

account = Account(price)
account.look(samples)               # what each look says of its devices and nodes
account.add(minute, judged)         # each minute that is over
account.report(until, is_over=True)
"""

from collections.abc import Iterable, Mapping

from muster.model.efficiency import CauseTime, DeviceUse, JobReport, NodeUse
from muster.model.finding import Cause, Confidence
from muster.model.holding import Holding
from muster.model.samples import DeviceSample, JobSample
from muster.model.value import MINUTE, DeviceId, Duration, Instant, NodeId
from muster.telemetry.diagnosis import money
from muster.telemetry.diagnosis.gathering import Minute
from muster.telemetry.diagnosis.judging import Course, Judged, judge
from muster.telemetry.diagnosis.money import Time
from muster.telemetry.diagnosis.summary import (
    SHOWN,
    PartUse,
    Summary,
    confidence,
    findings,
    headline,
)

_SHARE_OF_MILLI = 1_000


class _Seen:
    """What was last seen of a device, and its first and highest counts."""

    def __init__(self, sample: DeviceSample) -> None:
        self.index = sample.index
        self.memory_bytes = sample.memory_bytes
        self.first_energy_mj = self.energy_mj = sample.energy_mj_total
        self.memory_peak_bytes = sample.memory_used_bytes

    def add(self, sample: DeviceSample) -> None:
        self.memory_bytes = sample.memory_bytes or self.memory_bytes
        self.energy_mj = sample.energy_mj_total
        if sample.memory_used_bytes is not None:
            self.memory_peak_bytes = max(self.memory_peak_bytes or 0, sample.memory_used_bytes)

    @property
    def used_mj(self) -> int | None:
        """A counter that fell back has forgotten; what is not known is not made up."""
        first, last = self.first_energy_mj, self.energy_mj
        return None if first is None or last is None or last < first else last - first


class Account:
    """One attempt. It grows with devices and causes, not with time.

    idle_ms: for how long none of its devices has computed, up to the last minute that is over.
    """

    def __init__(self, holding: Holding, micros_per_hour: int) -> None:
        self.holding = holding
        self.since = holding.since
        self.summary = Summary(micros_per_hour)
        self.idle_ms = 0
        self._idle_lately = 0
        self._course = Course()
        self._devices: dict[DeviceId, _Seen] = {}
        self._nodes: dict[NodeId, JobSample] = {}

    def look(self, devices: Iterable[DeviceSample], jobs: Iterable[JobSample]) -> None:
        """What a look found on this attempt's devices, and of its processes."""
        for sample in devices:
            seen = self._devices.get(sample.device)
            if seen is None:
                self._devices[sample.device] = _Seen(sample)
            else:
                seen.add(sample)
        for job in jobs:
            self._nodes[job.node] = job

    def add(self, minute: Minute) -> tuple[Judged, ...]:
        """Judge a minute that is over."""
        judged, self._course = judge([part.member for part in minute.parts], self._course)
        self.summary.add(minute, judged)
        self._count_idle()
        return judged

    def _count_idle(self) -> None:
        """Work makes up for idleness as courses count it: a look now and then is none."""
        courses = self._course.devices.values()
        lately = min((max(each.idle_ms, each.untouched_ms) for each in courses), default=0)
        if lately == 0:
            self.idle_ms = 0
        elif lately >= self._idle_lately:
            self.idle_ms += MINUTE
        self._idle_lately = lately

    def report(self, until: Instant, *, is_over: bool) -> JobReport:
        """The attempt as it is known at this instant."""
        times, price = self.summary.times(), self.summary.micros_per_hour
        first = headline(self.summary) if times else None
        held = self.summary.time
        return JobReport(
            job=self.holding.job,
            attempt=self.holding.attempt,
            user=self.holding.user,
            queue=self.holding.queue,
            cluster=self.holding.cluster,
            pool=self.holding.pool,
            since=self.since,
            until=until,
            is_over=is_over,
            headline=first,
            confidence=confidence(self.summary, first) if first else Confidence.POSSIBLE,
            gpu_ms=Duration(held.gpu_ms),
            cost_micros=money.cost_micros(held.milli_ms, price),
            wasted_micros=money.wasted_micros(held.wasted, price),
            means=self._means(),
            causes=_cause_times(times, price),
            findings=findings(self.summary),
            devices=tuple(self._device_use(each) for each in self.summary.uses()),
            nodes=tuple(_node_use(self._nodes[node]) for node in sorted(self._nodes)),
        )

    def _means(self) -> Mapping[str, int]:
        means = {name: self.summary.mean(name) for name in SHOWN}
        return {name: round(mean) for name, mean in means.items() if mean is not None}

    def _device_use(self, use: PartUse) -> DeviceUse:
        seen = self._devices.get(use.part.device)
        peak, memory = use.memory_peak_milli, None if seen is None else seen.memory_bytes
        part = memory * use.gpu_milli // _SHARE_OF_MILLI if memory is not None else None
        return DeviceUse(
            node=use.part.node,
            device=use.part.device,
            gpu_milli=use.gpu_milli,
            held_ms=use.held,
            index=None if seen is None else seen.index,
            means=use.means,
            memory_bytes=part,
            memory_peak_bytes=(
                None if peak is None or part is None else part * peak // _SHARE_OF_MILLI
            ),
            energy_mj=None if seen is None else seen.used_mj,
        )


def _cause_times(times: Mapping[Cause, Time], price: int) -> tuple[CauseTime, ...]:
    """Rounded so that they sum to what the attempt held and wasted."""
    held = money.shared_out(
        {cause: time.milli_ms for cause, time in times.items()},
        sum(time.milli_ms for time in times.values()) // _SHARE_OF_MILLI,
    )
    wasted = money.shared_out(
        {cause: time.wasted for cause, time in times.items()},
        money.wasted_micros(sum(time.wasted for time in times.values()), price),
    )
    order = sorted(times, key=lambda cause: (-times[cause].wasted, -times[cause].milli_ms, cause))
    return tuple(
        CauseTime(cause=cause, gpu_ms=Duration(held[cause]), wasted_micros=wasted[cause])
        for cause in order
    )


def _node_use(sample: JobSample) -> NodeUse:
    used = sample.cpu_ns_total
    return NodeUse(
        node=sample.node,
        cpu_granted_milli=sample.cpu_granted_milli,
        cpu_used_ms=None if used is None else Duration(used // 1_000_000),
        memory_peak_bytes=sample.memory_peak_bytes or sample.memory_bytes,
        memory_granted_bytes=sample.memory_limit_bytes,
    )
