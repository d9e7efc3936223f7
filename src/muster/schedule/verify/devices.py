"""One use at a time for each device."""

from collections.abc import Callable, Iterator

from muster.model.cluster import Abilities, Node
from muster.model.gpu import Device, Mig, MigInstance, MpsShare, Slice, TimeShare
from muster.model.mig import is_legal
from muster.model.placement import DeviceShare
from muster.model.value import DeviceId, Value
from muster.schedule.verify.additions import Kind
from muster.schedule.verify.case import Case
from muster.schedule.verify.moments import Moment, Seats
from muster.schedule.verify.violation import Violation


class Shared(Value, gc=False):
    """A device, how it is cut once the plan is carried out, and everyone on it.

    What is `coming` belongs to claims: it may still be cut, if `may_cut`, before its job starts.
    """

    device: Device
    layout: tuple[MigInstance, ...] | None
    may_cut: bool
    held: list[DeviceShare]
    new: list[DeviceShare]
    coming: list[DeviceShare]

    @property
    def all(self) -> list[DeviceShare]:
        """Everyone on the device."""
        return self.held + self.new + self.coming


def devices_have_one_use(case: Case) -> Iterator[Violation]:
    """On each device one use at a time: whole to one task; or MIG; or MPS; or time shares."""
    for moment in case.moments:
        for seats in moment.seats.values():
            for shared in _shared(case, seats):
                yield from _faults(shared, seats.node, moment)


def clusters_can_slice(case: Case) -> Iterator[Violation]:
    """The cluster's abilities allow the kind of slice."""
    clusters = case.snapshot.clusters
    for addition in case.placed:
        cluster = clusters.get(addition.cluster)
        if cluster is None:
            continue
        shares = [share for each in addition.placements for share in each.devices if share.slice]
        if not all(_can_slice(cluster.abilities, share.slice) for share in shares):
            text = f"Cluster {cluster.name} does not offer the kind of slice that it is given."
            yield Violation(rule="ability", subject=f"job {addition.job.id}", text=text)


def _shared(case: Case, seats: Seats) -> Iterator[Shared]:
    """The devices of the node on which something is new, if anything could be wrong with them."""
    node = seats.node
    new, coming = _by_device(seats)
    held: dict[DeviceId, list[DeviceShare]] = {}
    for _, placement in seats.held:
        for share in placement.devices:
            held.setdefault(share.device, []).append(share)
    for device in node.devices:
        here = new.get(device.id, [])
        to_come = coming.get(device.id, [])
        if not here and not to_come:
            continue
        # The usual case: one task has the whole device, which no other has and nothing cuts.
        is_alone = len(here) == 1 and not to_come and device.id not in held
        is_plain = _is_uncut(case, node, device) and not device.split
        if is_alone and here[0].slice is None and is_plain:
            continue
        yield Shared(
            device=device,
            layout=_layout(case, node, device),
            may_cut=_may_cut(case, node),
            held=held.get(device.id, []),
            new=here,
            coming=to_come,
        )


def _by_device(
    seats: Seats,
) -> tuple[dict[DeviceId, list[DeviceShare]], dict[DeviceId, list[DeviceShare]]]:
    """What is new on each device, and what is claimed there."""
    new: dict[DeviceId, list[DeviceShare]] = {}
    coming: dict[DeviceId, list[DeviceShare]] = {}
    for task in seats.added:
        found = coming if task.kind is Kind.CLEAR else new
        for share in task.placement.devices:
            found.setdefault(share.device, []).append(share)
    for _, placement in seats.claimed:
        for share in placement.devices:
            coming.setdefault(share.device, []).append(share)
    return new, coming


def _is_uncut(case: Case, node: Node, device: Device) -> bool:
    return device.mig is None and (node.id, device.id) not in case.cuts


def _layout(case: Case, node: Node, device: Device) -> tuple[MigInstance, ...] | None:
    cuts = case.cuts.get((node.id, device.id))
    return cuts[0].instances if cuts else device.mig


def _may_cut(case: Case, node: Node) -> bool:
    cluster = case.snapshot.clusters.get(node.cluster)
    return case.plan.policy.repartition and cluster is not None and cluster.abilities.repartition


def _faults(shared: Shared, node: Node, moment: Moment) -> Iterator[Violation]:
    for check in CHECKS:
        text = check(shared)
        if text is not None:
            subject = f"device {node.id}/{shared.device.id}"
            yield Violation(rule="device", subject=subject, text=f"{text}{moment.words}.")


def _uses_agree(shared: Shared) -> str | None:
    """Whole, MIG, MPS or time shares: one of these at a time."""
    kinds = {_kind(share) for share in shared.all}
    return f"It is used as {' and as '.join(sorted(kinds))}" if len(kinds) > 1 else None


def _whole_is_alone(shared: Shared) -> str | None:
    """A whole device goes to one task; only MIG may be on a device in MIG mode."""
    whole = [share for share in shared.all if share.slice is None]
    if len(whole) > 1:
        return f"{len(whole)} tasks have all of it"
    # Claims may still have MIG mode switched off.
    uncut = shared.new if shared.may_cut else shared.new + shared.coming
    if shared.layout is not None and any(not isinstance(each.slice, Mig) for each in uncut):
        return f"It is cut into {len(shared.layout)} MIG instances, and is given away uncut"
    return None


def _mps_fits(shared: Shared) -> str | None:
    """MPS shares add up to at most 1,000 milli, and to at most the device's memory."""
    shares = [share.slice for share in shared.all if isinstance(share.slice, MpsShare)]
    total_mib = shared.device.memory_mib
    milli = sum(share.milli for share in shares)
    memory_mib = sum(share.memory_mib or total_mib * share.milli // 1_000 for share in shares)
    if not shared.device.mps and any(isinstance(each.slice, MpsShare) for each in shared.new):
        return "It is given away by MPS, which is not done there"
    if milli > 1_000:
        return f"MPS shares of {milli} milli do not fit in 1000"
    if memory_mib > total_mib:
        return f"MPS shares of {memory_mib} MiB do not fit in {total_mib}"
    return None


def _turns_fit(shared: Shared) -> str | None:
    """Time shares have the same `replicas`, and there are at most that many."""
    turns = [share.slice.replicas for share in shared.all if isinstance(share.slice, TimeShare)]
    if len(set(turns)) > 1:
        return f"Its turns are counted in {' and '.join(map(str, sorted(set(turns))))}"
    counted = shared.device.turns
    new = [share.slice.replicas for share in shared.new if isinstance(share.slice, TimeShare)]
    if counted is not None and any(each > counted or counted % each for each in new):
        return f"It is given away in {new[0]} turns, and {counted} are counted there"
    if turns and len(turns) > turns[0]:
        return f"{len(turns)} tasks share {turns[0]} turns"
    return None


def _parts_are_as_split(shared: Shared) -> str | None:
    """Of a device that its engine has split, a task has one of its equal parts."""
    turns, by_mps = shared.device.turns or 1, shared.device.mps
    for each in shared.new + shared.coming if shared.device.split else ():
        match each.slice:
            case TimeShare(replicas=replicas):
                is_part = not by_mps and replicas == turns
            case MpsShare(milli=milli, memory_mib=0):
                # More of them than there are parts would come to more than the device.
                is_part = by_mps and milli * turns <= 1_000 < milli * (turns + 1)
            case MpsShare() | Mig() | None:
                is_part = False
        if not is_part:
            return f"It is split into {turns} parts for good, and is given away otherwise"
    return None


def _instances_exist(shared: Shared) -> str | None:
    """MIG instances exist in the device's layout, at their start."""
    layout = shared.layout or ()
    needed = shared.new if shared.may_cut else shared.new + shared.coming
    for share in needed:
        if isinstance(share.slice, Mig) and _instance(share, share.slice) not in layout:
            return f"There is no instance {share.slice.profile} at {share.start}"
    return None


def _instances_are_used_once(shared: Shared) -> str | None:
    """Each instance goes to one task, and what claims will have cut can stand beside the others."""
    used = [_instance(share, share.slice) for share in shared.all if isinstance(share.slice, Mig)]
    layout = shared.layout or ()
    if len(set(used)) < len(used):
        return f"{len(used)} tasks share {len(set(used))} MIG instances"
    is_recut = any(instance not in layout for instance in used) and shared.coming
    if is_recut and not is_legal(shared.device.model, used):
        return f"No layout has the {len(used)} MIG instances that are in use or claimed"
    return None


CHECKS: tuple[Callable[[Shared], str | None], ...] = (
    _uses_agree,
    _whole_is_alone,
    _mps_fits,
    _turns_fit,
    _parts_are_as_split,
    _instances_exist,
    _instances_are_used_once,
)


def _kind(share: DeviceShare) -> str:
    match share.slice:
        case None:
            return "a whole"
        case Mig():
            return "MIG"
        case MpsShare():
            return "MPS"
        case TimeShare():
            return "time shares"


def _instance(share: DeviceShare, part: Mig) -> MigInstance:
    return MigInstance(profile=part.profile, start=-1 if share.start is None else share.start)


def _can_slice(abilities: Abilities, part: Slice | None) -> bool:
    match part:
        case None:
            return True
        case Mig():
            return abilities.mig
        case MpsShare():
            return abilities.mps
        case TimeShare():
            return abilities.time_share
