"""Nodes as documents, with what is held on them."""

from collections.abc import Iterable, Sequence

from muster.api.site import DeviceDocument, NodeDocument
from muster.controller.queries.nodes import HeldOn
from muster.model.amounts import WHOLE_GPU_MILLI
from muster.model.cluster import Node
from muster.model.gpu import Device, Mig, MpsShare, Slice, TimeShare
from muster.model.mig import mig_milli
from muster.model.placement import Placement
from muster.model.value import DeviceId, GpuModel, JobId


def node_documents(nodes: Iterable[Node], held: HeldOn) -> tuple[NodeDocument, ...]:
    """These nodes, with what is held on each."""
    return tuple(_node(node, held[node.id]) for node in nodes)


def _node(node: Node, here: Sequence[tuple[JobId, Placement]]) -> NodeDocument:
    amounts = [placement.amount for _, placement in here]
    return NodeDocument(
        id=node.id,
        cluster=node.cluster,
        pool=node.pool,
        state=node.state.value,
        reason=node.reason,
        pretend=node.pretend,
        cpus=node.cpu_milli / 1_000,
        cpus_used=sum(each.cpu_milli for each in amounts) / 1_000,
        memory_mib=node.memory_mib,
        memory_used_mib=sum(each.memory_mib for each in amounts),
        gpus=len(node.devices),
        gpus_used=sum(each.gpu_milli for each in amounts) / 1_000,
        gpu_models=tuple(sorted({device.model for device in node.devices})),
        labels=node.labels,
        jobs=tuple(sorted({job for job, _ in here})),
        where=node.where,
        devices=tuple(_device(device, _shares(here, device.id)) for device in node.devices),
    )


def _shares(
    here: Sequence[tuple[JobId, Placement]], device: DeviceId
) -> list[tuple[JobId, Slice | None]]:
    return [
        (job, share.slice)
        for job, placement in here
        for share in placement.devices
        if share.device == device
    ]


def _device(device: Device, shares: list[tuple[JobId, Slice | None]]) -> DeviceDocument:
    return DeviceDocument(
        id=device.id,
        index=device.index,
        model=device.model,
        memory_mib=device.memory_mib,
        healthy=device.healthy,
        state=device.state.value,
        reason=device.reason,
        mig=None if device.mig is None else tuple(each.profile for each in device.mig),
        used_milli=sum(_milli(part, device.model) for _, part in shares),
        jobs=tuple(sorted({job for job, _ in shares})),
    )


def _milli(part: Slice | None, model: GpuModel) -> int:
    match part:
        case None:
            return WHOLE_GPU_MILLI
        case Mig(profile=profile):
            return mig_milli(model, profile)
        case MpsShare(milli=milli):
            return milli
        case TimeShare(replicas=replicas):
            return WHOLE_GPU_MILLI // replicas
