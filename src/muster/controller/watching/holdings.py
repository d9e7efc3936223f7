"""Who holds which device now, from what was committed (pure)."""

from collections.abc import Iterable, Iterator, Mapping

from muster.model.gpu import Mig, Slice
from muster.model.holding import Holding
from muster.model.job import Job
from muster.model.placement import Allocation, DeviceShare, Placement
from muster.model.samples import DeviceSample
from muster.model.value import DeviceId, JobId, NodeId, replace

_Part = tuple[NodeId, DeviceId, str, int]


def holdings_of(
    allocations: Iterable[Allocation], jobs: Mapping[JobId, Job]
) -> tuple[Holding, ...]:
    """One for each device, or MIG instance, of each attempt: by job, node, device and instance."""
    found = (
        holding
        for allocation in sorted(allocations, key=lambda each: each.job)
        if allocation.job in jobs
        for holding in _of_attempt(allocation, jobs[allocation.job])
    )
    return tuple(found)


def with_instances(
    holdings: Iterable[Holding], devices: Iterable[DeviceSample]
) -> tuple[Holding, ...]:
    """The same, with the number of each MIG instance, as far as looks at devices tell it."""
    known: dict[tuple[DeviceId, str, int | None], int | None] = {}
    for each in devices:
        if each.instance is not None:
            key = (each.device, each.profile, each.start)
            # Where nobody may ask at which slices instances begin, two that are alike are one too
            # many: whose each is cannot be told.
            known[key] = None if key in known else each.instance
    return tuple(_numbered(each, known) if each.profile else each for each in holdings)


def _numbered(
    holding: Holding, known: Mapping[tuple[DeviceId, str, int | None], int | None]
) -> Holding:
    for start in (holding.start, None):
        instance = known.get((holding.device, holding.profile, start))
        if instance is not None:
            return replace(holding, instance=instance)
    return holding


def _of_attempt(allocation: Allocation, job: Job) -> Iterator[Holding]:
    """Tasks that share a device have their parts of it together."""
    held: dict[_Part, Holding] = {}
    for placement in allocation.placements:
        for share in placement.devices:
            part = _part(placement.node, share)
            before = held.get(part)
            milli = placement.amount.gpu_milli // len(placement.devices)
            held[part] = (
                _holding(allocation, job, placement, share)
                if before is None
                else replace(before, gpu_milli=before.gpu_milli + milli)
            )
    for _, holding in sorted(held.items()):
        yield holding


def _part(node: NodeId, share: DeviceShare) -> _Part:
    if isinstance(share.slice, Mig):
        return node, share.device, share.slice.profile, share.start or 0
    return node, share.device, "", 0


def _holding(allocation: Allocation, job: Job, placement: Placement, share: DeviceShare) -> Holding:
    return Holding(
        job=job.id,
        attempt=allocation.attempt,
        user=job.spec.user,
        queue=job.spec.queue,
        job_class=job.spec.job_class,
        cluster=allocation.cluster,
        pool=placement.pool,
        node=placement.node,
        device=share.device,
        gpu_milli=placement.amount.gpu_milli // len(placement.devices),
        since=allocation.placed_at,
        profile=_profile(share.slice),
        start=share.start,
    )


def _profile(part: Slice | None) -> str:
    return part.profile if isinstance(part, Mig) else ""
