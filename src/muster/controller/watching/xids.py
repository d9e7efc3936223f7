"""Which errors drivers reported of devices, counted since this process began."""

from collections import Counter, deque
from collections.abc import Iterator, Mapping, Sequence
from threading import Lock

from muster.controller.world.transaction import Change
from muster.model.cluster import Node
from muster.model.event import DeviceErred
from muster.model.gpu import Device
from muster.model.samples import DeviceSample
from muster.model.value import MINUTE, DeviceId, Duration, Instant, NodeId
from muster.model.xid import Verdict, xid_of
from muster.stores.base import Batch
from muster.telemetry import names
from muster.telemetry.family import Family, Labels, Point

COUNTED_FOR = Duration(5 * MINUTE)

_Place = tuple[NodeId, DeviceId]


class Xids:
    """Notes in the writer's thread what was committed; metrics ask from any thread."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._counts: Counter[tuple[_Place, Verdict]] = Counter()
        self._last: dict[_Place, int] = {}
        self._lately: deque[tuple[Instant, _Place, int]] = deque()

    def note(self, batch: Batch, changes: tuple[Change, ...]) -> None:
        """Something was committed."""
        del changes
        for event in batch.events:
            if isinstance(event, DeviceErred):
                self._count(event)

    def totals(self, devices: Sequence[tuple[Node, Device, Labels]]) -> Family:
        """By verdict; every device has all of them from the start, so that the first is a rise."""
        with self._lock:
            counts = Counter(self._counts)
        return names.XIDS.family(
            Point(
                (*labels, ("verdict", str(verdict))),
                counts[(node.id, device.id), verdict] + counts[(node.id, _NOT_SAID), verdict],
            )
            for node, device, labels in devices
            for verdict in Verdict
        )

    def families(
        self, devices: Sequence[tuple[DeviceSample, Labels]], now: Instant
    ) -> Iterator[Family]:
        """In dcgm-exporter's words: the last of each device, and how many of late."""
        with self._lock:
            last: Mapping[_Place, int] = dict(self._last)
            lately = Counter(
                (place, xid) for at, place, xid in self._lately if now - at < COUNTED_FOR
            )
        whole = [(each, labels) for each, labels in devices if each.instance is None]
        yield names.XID_ERRORS.family(
            Point((*labels, *_named(last.get((each.node, each.device), 0))), xid)
            for each, labels in whole
            for xid in (last.get((each.node, each.device), 0),)
        )
        places = {(each.node, each.device): labels for each, labels in whole}
        yield names.XIDS_COUNT.family(
            Point((*places[place], ("xid", str(xid))), count)
            for (place, xid), count in sorted(lately.items())
            if place in places
        )

    def _count(self, event: DeviceErred) -> None:
        place = (event.node, event.device)
        with self._lock:
            self._counts[place, xid_of(event.xid).verdict] += 1
            self._last[place] = event.xid
            self._lately.append((event.at, place, event.xid))
            while self._lately and event.at - self._lately[0][0] >= COUNTED_FOR:
                self._lately.popleft()


_NOT_SAID = DeviceId("")


def _named(xid: int) -> Labels:
    return (("err_code", str(xid)), ("err_msg", xid_of(xid).text if xid else "No Error"))
