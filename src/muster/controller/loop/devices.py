"""What is told of devices beside what nodes report: how far they are trusted, whose jobs they hit.

Pure: events in, events out.
"""

from collections.abc import Iterable, Iterator, Mapping

from muster.model.cluster import Node
from muster.model.event import DeviceErred, DeviceJudged, Event, JobStruck, NodeSeen
from muster.model.gpu import Device, DeviceState
from muster.model.placement import Allocation
from muster.model.value import DeviceId, Instant, JobId


def with_devices(
    event: Event, known: Node | None, allocations: Mapping[JobId, Allocation]
) -> Iterator[Event]:
    """The event, and what is told with it. known: the node that it is about, as it was so far."""
    yield event
    if isinstance(event, NodeSeen):
        yield from _judged(event.at, event.node, known)
    if isinstance(event, DeviceErred):
        yield from _struck(event, allocations.values())


def _judged(at: Instant, node: Node, known: Node | None) -> Iterator[Event]:
    before = {} if known is None else {each.id: each for each in known.devices}
    for device in node.devices:
        if _standing(device) != _standing(before.get(device.id)):
            yield DeviceJudged(
                at=at, node=node.id, device=device.id, state=device.state, why=device.reason
            )


def _standing(device: Device | None) -> tuple[DeviceState, str]:
    return (DeviceState.WELL, "") if device is None else (device.state, device.reason)


def _struck(event: DeviceErred, allocations: Iterable[Allocation]) -> Iterator[Event]:
    """Everybody who holds it is told. An error without a device may be anybody's."""
    for held in allocations:
        if _holds(held, event):
            yield JobStruck(
                at=event.at,
                job=held.job,
                attempt=held.attempt,
                node=event.node,
                device=event.device,
                xid=event.xid,
            )


def _holds(held: Allocation, event: DeviceErred) -> bool:
    return any(
        placed.node == event.node and event.device in {NOT_SAID, share.device}
        for placed in held.placements
        for share in placed.devices
    )


NOT_SAID = DeviceId("")
"""The device of an error of which the driver could not say whose it is."""
