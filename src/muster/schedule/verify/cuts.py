"""Devices that are cut again."""

from collections.abc import Iterator

from muster.model.cluster import Node
from muster.model.gpu import Device, Mig, MigInstance
from muster.model.mig import is_legal
from muster.model.placement import DeviceShare
from muster.model.plan import Repartition
from muster.model.value import DeviceId, NodeId
from muster.schedule.verify.case import Case
from muster.schedule.verify.violation import Violation


def repartitions_are_in_order(case: Case) -> Iterator[Violation]:
    """A Repartition is allowed, possible, comes once, and serves a job that starts on the device.

    Instances in use stay where they are, the model's geometry allows the layout,
    and MIG mode is turned on or off only on a device without users.
    """
    for (node_id, device_id), cuts in case.cuts.items():
        faults = [*_who(case, cuts), *_what(case, cuts[0])]
        for text in faults:
            yield Violation(rule="repartition", subject=f"device {node_id}/{device_id}", text=text)


def _who(case: Case, cuts: list[Repartition]) -> Iterator[str]:
    """Is it for somebody, and may it be done?"""
    cut = cuts[0]
    if len(cuts) > 1:
        yield f"It is cut {len(cuts)} times."
    if not case.plan.policy.repartition:
        yield "The policy does not allow a new MIG layout."
    for each in cuts:
        if not _starts_there(case, each):
            yield f"It is cut for job {each.for_job}, which does not start on it."
    node = case.snapshot.nodes.get(cut.node)
    cluster = None if node is None else case.snapshot.clusters.get(node.cluster)
    if cluster is not None and not cluster.abilities.repartition:
        yield f"Cluster {cluster.name} cannot change the MIG layout of devices."


def _what(case: Case, cut: Repartition) -> Iterator[str]:
    """Is the layout possible, with what is in use?"""
    node = case.snapshot.nodes.get(cut.node)
    device = None if node is None else _device(node, cut.device)
    if device is None:
        yield "It does not exist."
        return
    shares = list(_in_use(case, cut.node, cut.device))
    if (device.mig is None) != (cut.instances is None) and shares:
        yield f"Its MIG mode is switched while {len(shares)} tasks use it."
    instances = cut.instances or ()
    if not is_legal(device.model, instances):
        yield f"No {device.model} can be cut into {_words(instances)}."
    for share in shares:
        if isinstance(share.slice, Mig) and not _stays(share, share.slice, instances):
            yield f"Its instance {share.slice.profile} at {share.start} is in use and goes away."


def _starts_there(case: Case, cut: Repartition) -> bool:
    return any(
        share.device == cut.device
        for addition in case.served[cut.for_job]
        for placement in addition.placements
        if placement.node == cut.node
        for share in placement.devices
    )


def _device(node: Node, device_id: DeviceId) -> Device | None:
    for device in node.devices:
        if device.id == device_id:
            return device
    return None


def _in_use(case: Case, node_id: NodeId, device_id: DeviceId) -> Iterator[DeviceShare]:
    """What jobs hold of the device now; nothing is known of nodes where nothing starts."""
    seats = case.moments[0].seats.get(node_id)
    for _, placement in seats.held if seats is not None else ():
        for share in placement.devices:
            if share.device == device_id:
                yield share


def _stays(share: DeviceShare, part: Mig, instances: tuple[MigInstance, ...]) -> bool:
    return any(each.profile == part.profile and each.start == share.start for each in instances)


def _words(instances: tuple[MigInstance, ...]) -> str:
    return ", ".join(f"{each.profile} at {each.start}" for each in instances)
