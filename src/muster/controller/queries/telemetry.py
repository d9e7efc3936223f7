"""What is measured, for those who may see it: metrics, devices as they are, series of a job."""

import gzip
from collections.abc import Collection
from threading import Lock

from muster.controller.messages import Caller
from muster.controller.queries.jobs import JobQueries
from muster.controller.rights import demand, demand_viewer, has_role
from muster.controller.watching.live_series import Series
from muster.controller.watching.metrics import Source
from muster.controller.watching.watching import Watching
from muster.controller.world.journal import Clock
from muster.controller.world.record import Record
from muster.model.cluster import Node
from muster.model.errors import ForbiddenError, UnknownError
from muster.model.forbidden import NotYourJob
from muster.model.gpu import Device
from muster.model.holding import Holding
from muster.model.job import Job
from muster.model.queue import is_private, is_within
from muster.model.samples import DeviceSample
from muster.model.site import Role
from muster.model.value import DeviceId, Duration, Instant, JobId, QueuePath, Value
from muster.telemetry import names
from muster.telemetry.exposition import classic, openmetrics
from muster.telemetry.family import Family, Point
from muster.telemetry.look import Look
from muster.telemetry.subtree import DevicePart, within, without_names

KEPT_FOR = Duration(5_000)
"""So long a page is sent again to whoever asks for the same: ten scrapers cost one."""

MOST_PAGES = 64

LEVEL = 1
"""Of compression: a page shrinks to a tenth by it, and more would cost more than it saves."""


class PageWanted(Value):
    """Which page of metrics: of this queue and those below it, or of all.

    is_open: asked from this machine itself, and rules let everybody see it who does.
    """

    queue: QueuePath | None = None
    is_openmetrics: bool = False
    is_gzip: bool = False
    is_open: bool = False


class DeviceNow(Value):
    """A GPU as it is: what it is, who has it, and how it was at the last look, if it answered."""

    node: Node
    device: Device
    jobs: tuple[JobId, ...] = ()
    sample: DeviceSample | None = None


_PageKey = tuple[PageWanted, bool]


class TelemetryQueries:
    """What is measured, by what people may see."""

    def __init__(self, record: Record, jobs: JobQueries, watching: Watching, clock: Clock) -> None:
        self._record = record
        self._jobs = jobs
        self._watching = watching
        self._clock = clock
        self._pages: dict[_PageKey, tuple[Instant, bytes]] = {}
        self._lock = Lock()

    def page(self, caller: Caller, wanted: PageWanted) -> bytes:
        """The metrics as text. It may take a while: for threads that read."""
        self._demand(caller, wanted)
        key = (wanted, has_role(caller, self._record.site, Role.ADMIN))
        # One makes a page, and whoever comes meanwhile waits for it.
        with self._lock:
            now = self._clock()
            made_at, page = self._pages.get(key, (Instant(0), b""))
            if page and 0 <= now - made_at < KEPT_FOR:
                return page
            page = self._made(wanted, now, sees_names=key[1])
            fresh = {k: v for k, v in self._pages.items() if 0 <= now - v[0] < KEPT_FOR}
            self._pages = dict(list(fresh.items())[-MOST_PAGES:])
            self._pages[key] = (now, page)
            return page

    def export(self, source: Source) -> None:
        """Have metrics of this process shown that somebody else knows."""
        self._watching.metrics.of_every_process.append(source)

    def look(self) -> Look | None:
        """What was measured last, for parts of Muster itself; None where it is too old."""
        return self._watching.fresh_look(self._clock())

    def families(self) -> tuple[Family, ...]:
        """All metrics of this moment, for parts of Muster itself."""
        return self._watching.metrics.families(self._clock())

    def families_of(self, queue: QueuePath | None) -> tuple[Family, ...]:
        """All metrics that may be told of a queue to whoever gathers them, or of all queues."""
        return self._shown(queue, self._clock(), sees_names=False)

    def devices(self, caller: Caller) -> tuple[DeviceNow, ...]:
        """Every GPU, by node and place; what was measured where the caller may see it."""
        demand_viewer(caller, self._record.site)
        look = self._watching.fresh_look(self._clock())
        found = () if look is None else tuple(look.samples.values())
        holdings = () if look is None else look.holdings
        samples = {
            each.device: each for told in found for each in told.devices if each.instance is None
        }
        holders: dict[DeviceId, list[Holding]] = {}
        for each in holdings:
            holders.setdefault(each.device, []).append(each)
        sees_all = has_role(caller, self._record.site, Role.VIEWER)
        with self._record.lock:
            nodes = sorted(self._record.nodes.items())
        return tuple(
            DeviceNow(
                node=node,
                device=device,
                jobs=tuple(dict.fromkeys(each.job for each in holders.get(device.id, ()))),
                sample=samples.get(device.id)
                if sees_all or self._sees(caller, holders.get(device.id, []))
                else None,
            )
            for _, node in nodes
            for device in node.devices
        )

    def series(self, caller: Caller, job: JobId, since: Instant | None) -> tuple[Series, ...]:
        """What was measured of a job in the last hour, for those who may see what it uses."""
        self.demand_use(caller, self._job(caller, job))
        return self._watching.live.of(job, since)

    def demand_use(self, caller: Caller, job: Job) -> None:
        """Raise ForbiddenError unless the caller may see what the job uses."""
        if not self._jobs.may_see(caller, job):
            rule = f"they or a queue_admin of {job.spec.queue} can see what it uses"
            raise ForbiddenError(NotYourJob(job=job.label, owner=job.spec.user, rule=rule))

    def _job(self, caller: Caller, job: JobId) -> Job:
        return self._jobs.detail(caller, job).view.job

    def _demand(self, caller: Caller, wanted: PageWanted) -> None:
        site = self._record.site
        if wanted.queue is not None and wanted.queue not in site.queues:
            raise UnknownError(f"There is no queue {wanted.queue}; see the list of queues.")
        if wanted.is_open and site.telemetry.metrics_open:
            return
        demand(caller, site, Role.VIEWER, wanted.queue, to="see metrics here")

    def _made(self, wanted: PageWanted, now: Instant, *, sees_names: bool) -> bytes:
        families = self._shown(wanted.queue, now, sees_names=sees_names)
        if wanted.queue is None:
            count = sum(len(family.points) for family in families)
            families = (*families, names.SERIES.family([Point((), count + 1)]))
        text = openmetrics(families) if wanted.is_openmetrics else classic(families)
        page = text.encode()
        return gzip.compress(page, LEVEL) if wanted.is_gzip else page

    def _shown(
        self, queue: QueuePath | None, now: Instant, *, sees_names: bool
    ) -> tuple[Family, ...]:
        families = self._watching.metrics.families(now)
        if not sees_names:
            families = tuple(without_names(families, self._private()))
        if queue is None:
            return families
        return tuple(within(families, queue, self._devices_of(queue, now)))

    def _private(self) -> Collection[QueuePath]:
        queues = self._record.site.queues
        return frozenset(path for path in queues if is_private(queues, path))

    def _devices_of(self, queue: QueuePath, now: Instant) -> Collection[DevicePart]:
        """What is held by jobs of this queue and those below it, and by no other."""
        look = self._watching.fresh_look(now)
        theirs: set[DevicePart] = set()
        others: set[DevicePart] = set()
        for each in () if look is None else look.holdings:
            part = (each.device, "" if each.instance is None else str(each.instance))
            (theirs if is_within(each.queue, queue) else others).add(part)
        return theirs - others

    def _sees(self, caller: Caller, holdings: list[Holding]) -> bool:
        """Are all who have it in queues that the caller may look at?"""
        site = self._record.site
        return bool(holdings) and all(
            has_role(caller, site, Role.VIEWER, each.queue) for each in holdings
        )
