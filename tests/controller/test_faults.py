"""Injected faults: the alert that names each, how far its GPU is trusted, and what becomes of jobs.

All that looks at what runs is there as in a leader, in pretend time: what drivers say is judged,
sampled, counted and held against the rules that Muster ships.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import pytest

from controller.desk import LAB, SITE, node, spec
from muster.backends.local.hardware.gpu_health import Health, Reading, judged, struck
from muster.backends.simulated.attempt import Behaviour
from muster.backends.simulated.backend import SimulatedBackend
from muster.controller.alerting.loop import shipped_rules
from muster.controller.loop.controller import LastPlan
from muster.controller.loop.plan_times import PlanTimes
from muster.controller.watching.own_source import ProcessFacts
from muster.controller.watching.watching import Watching
from muster.model.cluster import BackendKind, Cluster, Node
from muster.model.errors import BackendDownError
from muster.model.event import ClusterSeen, DeviceErred, Event, NodeSeen
from muster.model.gpu import DeviceState
from muster.model.job import Job, JobState
from muster.model.placement import Allocation
from muster.model.samples import (
    Activity,
    DeviceSample,
    Disk,
    HostSample,
    Links,
    MemoryErrors,
    Samples,
)
from muster.model.value import HOUR, DeviceId, Duration, Instant, JobId, NodeId, replace
from muster.model.xid import XIDS, xid_of
from muster.simulator.run import Arrival, Simulation
from muster.telemetry.alerting.judging import AlertState, Judge
from muster.telemetry.alerting.reading import rule_groups
from muster.telemetry.alerting.rules import AlertRule

pytestmark = pytest.mark.slow

STEP_MS = 15_000
STEPS_BEFORE, STEPS_AFTER = 24, 60
STEPS_AFTER_XID = 8
GPU = DeviceId("n1/gpu0")
CLUSTER = Cluster(name=LAB, backend=BackendKind.LOCAL)
GROUPS = rule_groups(shipped_rules())
WAITS_MS = {
    rule.name: rule.for_ms
    for group in GROUPS
    for rule in group.rules
    if isinstance(rule, AlertRule)
}

NOTHING_WRONG = Reading()
Sampled = Callable[[DeviceSample, int], DeviceSample]
"""What is measured of a sick GPU, so many looks after it fell ill."""


@dataclass(frozen=True, kw_only=True)
class Fault:
    """alerts: which fire, and no other. after_looks: how many more they need to be sure of it.

    gpus: which are sick. requeued: does the job that holds GPU 0 of node 1 run again elsewhere?
    """

    name: str
    alerts: frozenset[str]
    sampled: Sampled = lambda sample, _: sample
    gpus: frozenset[DeviceId] = frozenset({GPU})
    reading: Reading = NOTHING_WRONG
    xid: int = 0
    state: DeviceState = DeviceState.WELL
    requeued: bool = False
    after_looks: int = 0
    is_lost: bool = False
    node_down: bool = False
    cluster_down: bool = False
    is_silent: bool = False
    disk_free_percent: int = 50
    store_free_bytes: int = 1 << 40


def changed(**fields: object) -> Sampled:
    return lambda sample, _: replace(sample, **fields)


def slowed(word: str) -> Sampled:
    return lambda sample, looks: replace(
        sample, throttled_ns={**sample.throttled_ns, word: looks * STEP_MS * 1_000_000}
    )


def errors(**each_look: int) -> Sampled:
    return lambda sample, looks: replace(
        sample,
        memory_errors=replace(
            sample.memory_errors, **{name: number * looks for name, number in each_look.items()}
        ),
    )


def linked(**each_look: int) -> Sampled:
    return lambda sample, looks: replace(
        sample,
        links=replace(sample.links, **{name: number * looks for name, number in each_look.items()}),
    )


THREE = frozenset(DeviceId(f"n1/gpu{index}") for index in range(3))
UNHELD = DeviceId("n2/gpu3")

FAULTS = (
    Fault(
        name="hot",
        alerts=frozenset({"GPUTemperatureTooHigh"}),
        sampled=changed(temperature_c=88, margin_c=5),
    ),
    Fault(
        name="hot memory",
        alerts=frozenset({"GpuMemoryTemperatureTooHigh"}),
        sampled=changed(memory_temperature_c=98),
    ),
    Fault(
        name="about to be slowed",
        alerts=frozenset({"GpuHeatMarginThin"}),
        sampled=changed(margin_c=2),
    ),
    Fault(
        name="slowed by heat",
        alerts=frozenset({"GpuThermalThrottle"}),
        sampled=slowed("hw_thermal"),
        after_looks=2,
    ),
    Fault(
        name="a rack slowed by heat",
        alerts=frozenset({"GpuThermalThrottle", "CoolingFailureSuspected"}),
        sampled=slowed("hw_thermal"),
        gpus=THREE,
        after_looks=2,
    ),
    Fault(
        name="low power state",
        alerts=frozenset({"GpuStuckInLowPowerState"}),
        sampled=changed(performance_state=8),
    ),
    Fault(
        name="power brake",
        alerts=frozenset({"GpuPowerBrake"}),
        sampled=slowed("hw_power_brake"),
        after_looks=1,
    ),
    Fault(
        name="too much power",
        alerts=frozenset({"GpuPowerOverLimit"}),
        sampled=changed(power_mw=760_000),
    ),
    Fault(
        name="a stray process",
        alerts=frozenset({"GpuHotWhileUnheld"}),
        gpus=frozenset({UNHELD}),
        sampled=changed(power_mw=400_000, busy_milli=950),
    ),
    Fault(
        name="memory errors that were not corrected",
        alerts=frozenset({"GpuEccUncorrected", "GpuBroken"}),
        sampled=errors(uncorrected_total=1),
        reading=Reading(uncorrected=1),
        state=DeviceState.BROKEN,
        requeued=True,
        after_looks=1,
    ),
    Fault(
        name="memory errors that were corrected",
        alerts=frozenset({"GpuEccCorrectedRising"}),
        sampled=errors(corrected_total=60),
        after_looks=3,
    ),
    Fault(
        name="a row that could not be replaced",
        alerts=frozenset({"GpuRowRemapFailed", "GpuBroken"}),
        sampled=lambda sample, _: replace(
            sample, memory_errors=replace(sample.memory_errors, remap_failed=True)
        ),
        reading=Reading(uncorrected=0, remap_failed=True),
        state=DeviceState.RETIRED,
        requeued=True,
    ),
    Fault(
        name="a row to be replaced",
        alerts=frozenset({"GpuRowRemapPending"}),
        sampled=lambda sample, _: replace(
            sample, memory_errors=replace(sample.memory_errors, remap_pending=True)
        ),
        reading=Reading(uncorrected=0, remap_pending=True),
        state=DeviceState.SUSPECT,
    ),
    Fault(
        name="NVLink",
        alerts=frozenset({"GpuNvlinkErrors"}),
        sampled=linked(nvlink_recoveries_total=1),
        after_looks=1,
    ),
    Fault(
        name="PCIe repeats",
        alerts=frozenset({"GpuPcieReplays"}),
        sampled=linked(pcie_replays_total=50),
        after_looks=20,
    ),
    Fault(
        name="narrow link",
        alerts=frozenset({"GpuPcieLinkNarrow"}),
        sampled=lambda sample, _: replace(sample, links=replace(sample.links, pcie_width=4)),
    ),
    Fault(
        name="a lost GPU",
        alerts=frozenset({"GpuBroken"}),
        reading=Reading(code=15),
        is_lost=True,
        state=DeviceState.BROKEN,
        requeued=True,
    ),
    Fault(
        name="a lost node",
        alerts=frozenset({"NodeGone"}),
        node_down=True,
        is_lost=True,
        requeued=True,
    ),
    Fault(name="a full disk", alerts=frozenset({"NodeDiskFilling"}), disk_free_percent=5),
    Fault(name="a full store", alerts=frozenset({"StoreTrouble"}), store_free_bytes=900_000_000),
    Fault(
        name="a dead backend",
        alerts=frozenset({"BackendUnreachable"}),
        gpus=frozenset(),
        cluster_down=True,
        is_silent=True,
    ),
    Fault(
        name="a cluster that nobody measures any more",
        alerts=frozenset({"TelemetryStale"}),
        gpus=frozenset(),
        is_silent=True,
        after_looks=8,
    ),
    *(
        Fault(
            name=f"Xid {number}",
            alerts=frozenset({"GpuBroken", "GpuXidFatal"} if xid_of(number).verdict.breaks else ()),
            xid=number,
            state=struck(Health(), number, Instant(1)).state,
            requeued=xid_of(number).verdict.breaks,
        )
        for number in sorted({*XIDS, 9_999})
    ),
)


class Engine(SimulatedBackend):
    """A cluster whose GPUs are measured, and of which somebody can say something."""

    is_silent = False
    # Filled in by the floor that it belongs to.
    sampling: Callable[[Instant], Samples]
    news: tuple[Event, ...] = ()

    def observe(self, now: Instant) -> tuple[Event, ...]:
        news, self.news = self.news, ()
        return (*super().observe(now), *news)

    def samples(self, now: Instant) -> Samples:
        if self.is_silent:
            raise BackendDownError(LAB, "nobody answers")
        return self.sampling(now)


class Leader:
    """As much of a controller as those who look at it see."""

    is_leading = True

    def __init__(self) -> None:
        self.last_plan = LastPlan()
        self.plan_times = PlanTimes()


@dataclass
class Floor:
    """Two nodes with four GPUs each, and two jobs: one holds all of the first node."""

    fault: Fault
    looks: int = 0
    firing: list[set[str]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.nodes: dict[NodeId, Node] = {each.id: each for each in (node("n1", 4), node("n2", 4))}
        self.healths: dict[DeviceId, Health] = {}
        self.engine = Engine(list(self.nodes.values()), CLUSTER, _lasts)
        self.engine.sampling = self.samples
        self.simulation = Simulation(SITE, {LAB: self.engine})
        self.leader = Leader()
        free = self.fault.store_free_bytes
        room = lambda: (1 << 30, free if self.is_ill else 1 << 40)  # noqa: E731
        self.watching = Watching(
            self.simulation.journal,
            self.leader,  # pyright: ignore[reportArgumentType]
            {LAB: self.engine},
            lambda: self.simulation.now,
            ProcessFacts(version="1", room=room),
        )
        self.watching.tally.begin()
        self.watching.diagnosing.begin()
        self.judge = Judge(GROUPS)
        self.jobs = [self._submits(gpus) for gpus in (4, 2)]

    @property
    def is_ill(self) -> bool:
        return self.looks > STEPS_BEFORE

    @property
    def ill_for(self) -> int:
        return max(0, self.looks - STEPS_BEFORE)

    def passes(self, steps: int) -> None:
        for _ in range(steps):
            self.looks += 1
            if self.ill_for == 1:
                self._falls_ill()
            if self.is_ill:
                self._judged()
            now = Instant(self.simulation.now + STEP_MS)
            self.simulation.run(until=now)
            if self.simulation.plan is not None:
                self.leader.last_plan.settle(self.simulation.plan, now, 1)
            self.watching.watcher.look(now)
            found = self.judge.look(self.watching.metrics.families(now), now)
            assert found.failures == ()
            alerts = {each.name for each in found.alerts if each.state is AlertState.FIRING}
            self.firing.append(alerts)

    def samples(self, now: Instant) -> Samples:
        devices = [
            self._sampled(each, device.id, device.index, now)
            for each in self.nodes.values()
            for device in each.devices
            if not (self.is_ill and self.fault.is_lost and self._is_sick(each, device.id))
        ]
        free = self.fault.disk_free_percent if self.is_ill else 50
        hosts = tuple(
            HostSample(node=name, at=now, disks=(Disk(what="state", bytes=100, free_bytes=free),))
            for name in self.nodes
        )
        return Samples(at=now, devices=tuple(devices), hosts=hosts)

    def state(self) -> DeviceState:
        return self.healths.get(GPU, Health()).state

    def job(self) -> Job:
        return self.simulation.record.jobs[self.jobs[0]]

    def held_by_first(self) -> set[DeviceId]:
        held = self.simulation.record.allocations.get(self.jobs[0])
        placements = () if held is None else held.placements
        return {share.device for placed in placements for share in placed.devices}

    def _is_sick(self, machine: Node, device: DeviceId) -> bool:
        return device in self.fault.gpus or (self.fault.node_down and machine.id == "n1")

    def _sampled(self, machine: Node, device: DeviceId, index: int, now: Instant) -> DeviceSample:
        is_held = device in self._held()
        sample = DeviceSample(
            device=device,
            node=machine.id,
            at=now,
            index=index,
            interval_ms=STEP_MS,
            busy_milli=950 if is_held else 0,
            activity=Activity(graphics_milli=950, sm_milli=900) if is_held else Activity(),
            temperature_c=60,
            memory_temperature_c=70,
            margin_c=27,
            power_mw=500_000 if is_held else 70_000,
            power_limit_mw=700_000,
            performance_state=0,
            throttled_ns=dict.fromkeys(("hw_thermal", "sw_thermal", "hw_power_brake", "power"), 0),
            links=WELL_LINKED,
            memory_errors=NO_ERRORS,
        )
        is_sick = self.is_ill and device in self.fault.gpus
        return self.fault.sampled(sample, self.ill_for) if is_sick else sample

    def _held(self) -> set[DeviceId]:
        return {
            share.device
            for held in self.simulation.record.allocations.values()
            for placed in held.placements
            for share in placed.devices
        }

    def _falls_ill(self) -> None:
        fault, now = self.fault, self.simulation.now
        events: list[Event] = []
        if fault.xid:
            errs = DeviceErred(at=now, node=NodeId("n1"), device=GPU, xid=fault.xid)
            events.append(errs)
            self.healths[GPU] = struck(Health(), fault.xid, now)
        if fault.node_down:
            self.engine.fail_node(NodeId("n1"), Instant(now + 1))
            return
        self.engine.is_silent = fault.is_silent
        if fault.cluster_down:
            events.append(ClusterSeen(at=now, cluster=replace(CLUSTER, reachable=False)))
        self.engine.news += (*events, *self._seen())

    def _judged(self) -> None:
        """What the driver says at every look, from the first one on."""
        before = self.healths.get(GPU, judged(Health(), Reading(uncorrected=0), Instant(1)))
        self.healths[GPU] = judged(before, self.fault.reading, self.simulation.now)
        if self.healths[GPU].state is not before.state and not self.fault.node_down:
            self.engine.news += self._seen()

    def _seen(self) -> tuple[Event, ...]:
        for name, machine in self.nodes.items():
            self.nodes[name] = replace(
                machine,
                devices=tuple(
                    replace(each, healthy=not health.is_out, judged=health.state, reason="ill")
                    if (health := self.healths.get(each.id)) is not None
                    else each
                    for each in machine.devices
                ),
            )
        now = self.simulation.now
        return tuple(NodeSeen(at=now, node=each) for each in self.nodes.values())

    def _submits(self, gpus: int) -> JobId:
        arrival = Arrival(at=self.simulation.now, spec=spec(gpus=gpus))
        (job,) = self.simulation.submit(arrival).jobs
        self.simulation.turn()
        return job


WELL_LINKED = Links(
    pcie_generation=5,
    pcie_generation_most=5,
    pcie_width=16,
    pcie_width_most=16,
    pcie_replays_total=0,
    nvlink_crc_flit_total=0,
    nvlink_replays_total=0,
    nvlink_recoveries_total=0,
)
NO_ERRORS = MemoryErrors(
    corrected_total=0, uncorrected_total=0, remap_pending=False, remap_failed=False
)


def _lasts(_: Job, __: Allocation) -> Behaviour:
    return Behaviour(work=Duration(10 * HOUR))


def waits(alerts: frozenset[str]) -> Mapping[str, int]:
    """How many looks each must hold for before it fires."""
    return {name: -(-WAITS_MS[name] // STEP_MS) for name in alerts}


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_a_fault_is_told_under_its_name_in_time_and_nothing_else_is(fault: Fault) -> None:
    floor = Floor(fault)
    floor.passes(STEPS_BEFORE)
    assert not any(floor.firing)
    held = floor.simulation.record.allocations[floor.jobs[0]]
    assert {each.node for each in held.placements} == {"n1"}

    longest = max(waits(fault.alerts).values(), default=0)
    floor.passes(longest + fault.after_looks + 2)
    in_time = floor.firing[-1]
    floor.passes(STEPS_AFTER_XID if fault.xid else STEPS_AFTER)

    assert in_time == fault.alerts
    assert set[str]().union(*floor.firing) == fault.alerts
    assert floor.state() is fault.state
    if fault.requeued:
        assert (floor.job().state, floor.job().attempt) in GONE_ELSEWHERE
        assert GPU not in floor.held_by_first()
    else:
        assert (floor.job().state, floor.job().attempt) == (JobState.RUNNING, 1)


GONE_ELSEWHERE = {(JobState.PENDING, 0), (JobState.PENDING, 1), (JobState.RUNNING, 2)}
"""It waits for four GPUs of one node, or has them."""
