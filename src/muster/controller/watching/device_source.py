"""Metrics of what was measured: devices, who has them, machines. From the last look alone."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping

from muster.controller.watching.left_out import LeftOut
from muster.controller.watching.watcher import STALE_LOOKS, Watcher
from muster.controller.watching.xids import Xids
from muster.controller.world.record import Record
from muster.model.cluster import BackendKind, Node, NodeState
from muster.model.gpu import Device, DeviceState
from muster.model.holding import Holding
from muster.model.job import Job
from muster.model.queue import is_private
from muster.model.samples import DeviceSample, Samples, Throttle
from muster.model.value import MINUTE, ClusterName, DeviceId, Duration, Instant
from muster.telemetry import names
from muster.telemetry.device_families import (
    MOST_DEVICES,
    MOST_HOLDINGS,
    Labelled,
    device_families,
    job_family,
    labels_of,
    throttled,
)
from muster.telemetry.family import Family, Labels, Point
from muster.telemetry.look import Look

POD_LABEL = "kubernetes/pod"
"""The label by which a job says which pod it is: namespace and name."""

MOST_TROUBLES = 1_000

EVENTS_FOR = Duration(5 * MINUTE)

_Part = tuple[DeviceId, int | None]


class DeviceSource:
    """Asked when somebody wants metrics; hears of every look."""

    def __init__(self, watcher: Watcher, record: Record, left_out: LeftOut, xids: Xids) -> None:
        self._watcher = watcher
        self._xids = xids
        self._record = record
        self._left_out = left_out
        self._events: list[tuple[Instant, Counter[tuple[_Part, Throttle]]]] = []
        watcher.subscribers.append(self.look)

    def look(self, look: Look) -> None:
        """Remember why clocks were low."""
        seen = Counter(
            ((each.device, each.instance), reason)
            for samples in look.samples.values()
            if not samples.secondhand
            for each in samples.devices
            for reason in each.throttles or ()
        )
        kept = [each for each in self._events if 0 <= look.at - each[0] < EVENTS_FOR]
        self._events = [*kept, (look.at, seen)]

    def __call__(self, now: Instant) -> Iterator[Family]:
        yield names.NODE_TROUBLE.family(self._troubles())
        yield names.GPU_HEALTH.family(self._unwell())
        yield self._xids.totals(self._own_devices())
        look = self._watcher.fresh(now)
        if look is None:
            return
        own = {name: each for name, each in look.samples.items() if not each.secondhand}
        holders = by_device(look.holdings)
        devices = self._labelled(own, holders, look)
        yield from device_families(devices)
        yield from self._xids.families(devices, now)
        yield self._clock_events(devices)
        yield names.HEALTH_STATUS.family(self._health(devices))
        yield throttled((sample, (*labels, *self._place(sample))) for sample, labels in devices)
        if len(look.holdings) <= MOST_HOLDINGS:
            yield job_family(look.holdings)
        else:
            self._left_out.count("device_jobs", len(look.holdings))
        yield from _host_families(own)
        yield names.NODE_INFO.family(self._nodes(devices))

    def _labelled(
        self,
        own: Mapping[ClusterName, Samples],
        holders: Mapping[DeviceId, list[Holding]],
        look: Look,
    ) -> list[Labelled]:
        oldest = look.at - STALE_LOOKS * look.interval
        fresh = [each for samples in own.values() for each in samples.devices if each.at >= oldest]
        if len(fresh) > MOST_DEVICES:
            self._left_out.count("devices", len(fresh) - MOST_DEVICES)
        return [
            (each, labels_of(each, self._more(each, holders.get(each.device, []))))
            for each in fresh[:MOST_DEVICES]
        ]

    def _more(self, sample: DeviceSample, holdings: list[Holding]) -> Labels:
        """Of a device that one job alone has: which pod it is, and its number if rules say so."""
        jobs = {each.job for each in holdings_on(sample, holdings)}
        if len(jobs) != 1:
            return ()
        job = self._record.jobs.get(jobs.pop())
        if job is None:
            return ()
        site = self._record.site
        # What the jobs of a private queue are called is nobody's business who reads all metrics.
        pod = () if is_private(site.queues, job.spec.queue) else _pod(job)
        return (*pod, ("hpc_job", str(job.id))) if site.telemetry.job_labels else pod

    def _place(self, sample: DeviceSample) -> Labels:
        node = self._record.nodes.get(sample.node)
        return () if node is None else (("cluster", node.cluster), ("pool", node.pool))

    def _nodes(self, devices: list[Labelled]) -> Iterator[Point]:
        """Of those only whose GPUs have series, so that these can be told by rack."""
        for name in sorted({sample.node for sample, _ in devices}):
            node = self._record.nodes.get(name)
            if node is not None:
                rack = node.where[-1] if node.where else ""
                place = (("cluster", node.cluster), ("pool", node.pool))
                yield Point((*place, ("Hostname", name), ("rack", rack)), 1)

    def _troubles(self) -> Iterator[Point]:
        """Nodes that take no work, and why; the first thousand by name."""
        with self._record.lock:
            nodes = sorted(self._record.nodes.items())
        troubled = [
            (node.cluster, name, kind) for name, node in nodes for kind in _troubles_of(node)
        ]
        if len(troubled) > MOST_TROUBLES:
            self._left_out.count("node_troubles", len(troubled) - MOST_TROUBLES)
        for cluster, name, kind in troubled[:MOST_TROUBLES]:
            yield Point((("cluster", cluster), ("node", name), ("kind", kind)), 1)

    def _unwell(self) -> Iterator[Point]:
        """GPUs of every cluster with which something is or was wrong."""
        with self._record.lock:
            nodes = sorted(self._record.nodes.items())
        unwell = [
            (node, device)
            for _, node in nodes
            for device in node.devices
            if device.state is not DeviceState.WELL
        ]
        if len(unwell) > MOST_TROUBLES:
            self._left_out.count("gpu_health", len(unwell) - MOST_TROUBLES)
        for node, device in unwell[:MOST_TROUBLES]:
            yield Point((*_named(node, device), ("state", device.state.value)), 1)

    def _health(self, devices: list[Labelled]) -> Iterator[Point]:
        """As dcgm-exporter's health checks say it, of all of its watches together."""
        known = {sample.node for sample, _ in devices}
        nodes = (self._record.nodes.get(name) for name in sorted(known))
        states = {
            device.id: device.state for node in nodes if node is not None for device in node.devices
        }
        for sample, labels in devices:
            state = states.get(sample.device)
            if state is not None and sample.instance is None:
                yield Point((*labels, ("health_watch", "ALL")), _HEALTH[state])

    def _own_devices(self) -> list[tuple[Node, Device, Labels]]:
        """Those whose driver this Muster asks itself, whether they answer just now or not."""
        with self._record.lock:
            clusters = self._record.clusters
            nodes = [
                node
                for _, node in sorted(self._record.nodes.items())
                if node.cluster in clusters and clusters[node.cluster].backend is BackendKind.LOCAL
            ]
        found = [(node, device, _named(node, device)) for node in nodes for device in node.devices]
        return found[:MOST_DEVICES]

    def _clock_events(self, devices: list[Labelled]) -> Family:
        counts: Counter[tuple[_Part, Throttle]] = Counter()
        for _, seen in self._events:
            counts.update(seen)
        return names.CLOCK_EVENTS.family(
            Point((*labels, ("clock_event", str(reason))), counts[part, reason])
            for sample, labels in devices
            if sample.throttles is not None
            for part in ((sample.device, sample.instance),)
            for reason in Throttle
        )


_HEALTH = {
    DeviceState.WELL: 0,
    DeviceState.SUSPECT: 10,
    DeviceState.PROBATION: 10,
    DeviceState.BROKEN: 20,
    DeviceState.RETIRED: 20,
}


def _named(node: Node, device: Device) -> Labels:
    """A device of the record in the words of those that are measured."""
    pretend = (("pretend", "true"),) if node.pretend else ()
    place = (("cluster", node.cluster), ("pool", node.pool), *pretend)
    return (("gpu", str(device.index)), ("UUID", device.id), ("Hostname", node.id), *place)


def _troubles_of(node: Node) -> Iterator[str]:
    if node.state is NodeState.DOWN:
        yield "gone"
    if any(not device.healthy for device in node.devices):
        yield "broken_gpu"


def holdings_on(sample: DeviceSample, holdings: list[Holding]) -> list[Holding]:
    """Of those who hold parts of this GPU, those who have what was looked at."""
    if sample.instance is None:
        return holdings
    return [each for each in holdings if each.instance == sample.instance]


def by_device(holdings: tuple[Holding, ...]) -> Mapping[DeviceId, list[Holding]]:
    found: defaultdict[DeviceId, list[Holding]] = defaultdict(list)
    for each in holdings:
        found[each.device].append(each)
    return found


def _pod(job: Job) -> Labels:
    namespace, _, pod = job.spec.labels.get(POD_LABEL, "").partition("/")
    if not pod:
        return ()
    return (("namespace", namespace), ("pod", pod))


def _host_families(own: Mapping[ClusterName, Samples]) -> Iterator[Family]:
    hosts = [host for samples in own.values() for host in samples.hosts]
    yield names.NODE_PRESSURE.family(
        Point((("node", host.node), ("kind", kind)), milli / 1_000)
        for host in hosts
        for kind, milli in (
            ("cpu", host.pressure.cpu_milli),
            ("memory", host.pressure.memory_milli),
            ("io", host.pressure.io_milli),
        )
        if milli is not None
    )
    for metric, index in ((names.NODE_DISK_FREE, 1), (names.NODE_DISK, 0)):
        yield metric.family(
            Point(
                (("node", host.node), ("kind", disk.what)),
                (disk.bytes, disk.free_bytes)[index],
            )
            for host in hosts
            for disk in host.disks
        )
