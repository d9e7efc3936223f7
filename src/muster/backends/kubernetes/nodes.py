"""A node of Kubernetes as a node of ours. Pure."""

from collections.abc import Mapping
from typing import Any

from muster.backends.instances import packed
from muster.backends.kubernetes.amounts import GPU, GPU_PART, MIG, counted, plain, quantity
from muster.model.cluster import Node, NodeState, Taint
from muster.model.gpu import Device, MigInstance
from muster.model.gpu_products import memory_of, model_of
from muster.model.value import ClusterName, DeviceId, GpuModel, NodeId, PoolName, Value, replace

POOL_LABEL = "muster.io/pool"
PRODUCT_LABEL, MEMORY_LABEL = "nvidia.com/gpu.product", "nvidia.com/gpu.memory"
REPLICAS_LABEL = "nvidia.com/gpu.replicas"
STRATEGY_LABEL = "nvidia.com/gpu.sharing-strategy"
SHARED = "-SHARED"
"""How the product ends where parts are called as whole GPUs are."""
_LONGEST_COUNT = 5
_OF_STATE = (
    "node.kubernetes.io/not-ready",
    "node.kubernetes.io/unreachable",
    "node.kubernetes.io/unschedulable",
)
_TOLERATED = (*_OF_STATE, GPU)
"""Taints that say what the state says, and one that keeps others off GPUs."""
_MIB = 2**20


class Fleet(Value):
    """Whose nodes they are. models: which GPU a product is, where its label does not say.

    levels: labels that say where a node is, the widest first.
    """

    cluster: ClusterName
    models: Mapping[str, GpuModel] = {}
    levels: tuple[str, ...] = ()


def node_of(document: Mapping[str, Any], fleet: Fleet) -> Node:
    """The node with all that it can give to pods."""
    name = document["metadata"]["name"]
    labels: dict[str, str] = document["metadata"].get("labels") or {}
    amounts: dict[str, str] = document.get("status", {}).get("allocatable") or {}
    state, why = _state(document)
    return Node(
        id=NodeId(name),
        cluster=fleet.cluster,
        pool=PoolName(labels.get(POOL_LABEL) or fleet.cluster),
        cpu_milli=int(1_000 * quantity(amounts.get("cpu", 0))),
        memory_mib=int(quantity(amounts.get("memory", 0)) / _MIB),
        devices=_devices(name, labels, amounts, fleet),
        state=state,
        where=_where(name, labels, fleet.levels),
        labels=labels,
        taints=tuple(_taints(document)),
        reason=why,
    )


def _where(name: str, labels: Mapping[str, str], levels: tuple[str, ...]) -> tuple[str, ...]:
    """One that does not say it at some level is there by itself."""
    return tuple(labels.get(each) or name for each in levels)


def _state(document: Mapping[str, Any]) -> tuple[NodeState, str]:
    conditions = document.get("status", {}).get("conditions") or ()
    ready = next((each for each in conditions if each.get("type") == "Ready"), None)
    if ready is None or ready.get("status") != "True":
        said = "" if ready is None else ready.get("message") or ready.get("reason") or ""
        return NodeState.DOWN, plain(said) or "its kubelet does not say that it is ready"
    if document.get("spec", {}).get("unschedulable"):
        return NodeState.DRAINING, "cordoned"
    return NodeState.UP, ""


def _taints(document: Mapping[str, Any]) -> list[Taint]:
    found = document.get("spec", {}).get("taints") or ()
    return [
        Taint(key=each["key"], value=each.get("value") or "")
        for each in found
        if each.get("effect") != "PreferNoSchedule" and each["key"] not in _TOLERATED
    ]


def _devices(
    name: str, labels: Mapping[str, str], amounts: Mapping[str, str], fleet: Fleet
) -> tuple[Device, ...]:
    model = _model(labels, fleet)
    memory_mib = memory_of(model) or int(quantity(labels.get(MEMORY_LABEL, 0)))
    split = _split(labels, amounts)
    whole = counted(amounts.get(GPU, 0)) if split is None else split.gpus
    cut = _cut(model, amounts)

    def device(index: int, mig: tuple[MigInstance, ...] | None) -> Device:
        id = DeviceId(f"{name}/gpu{index}")
        one = Device(
            id=id, index=index, model=model, memory_mib=memory_mib, mig=mig, turns=0, mps=False
        )
        if split is None or mig is not None:
            return one
        return replace(one, turns=split.parts, mps=split.by_mps, split=True)

    found = [device(index, None) for index in range(whole)]
    found += [device(whole + index, each) for index, each in enumerate(cut)]
    return tuple(found)


class _Split(Value):
    """So many GPUs of a node are given to several pods at a time, in so many parts each."""

    gpus: int
    parts: int
    by_mps: bool


def _split(labels: Mapping[str, str], amounts: Mapping[str, str]) -> _Split | None:
    """None where each GPU is one pod's alone.

    Which of them a part is of nobody says, only how many there are. Where it is not said how they
    are kept apart, nothing keeps them apart.
    """
    if not _is_shared(labels):
        return None
    said = labels.get(REPLICAS_LABEL, "")
    parts = int(said) if said.isdecimal() and len(said) < _LONGEST_COUNT else 0
    offered = counted(amounts.get(GPU_PART, 0)) or counted(amounts.get(GPU, 0))
    gpus = offered // parts if parts > 1 else 0
    return _Split(gpus=gpus, parts=parts, by_mps=labels.get(STRATEGY_LABEL) == "mps")


def _is_shared(labels: Mapping[str, str]) -> bool:
    """Does the device plugin give each of its GPUs to several pods at a time?"""
    product, replicas = labels.get(PRODUCT_LABEL, ""), labels.get(REPLICAS_LABEL, "")
    return product.endswith(SHARED) or (replicas.isdecimal() and int(replicas[:9]) > 1)


def _model(labels: Mapping[str, str], fleet: Fleet) -> GpuModel:
    product = labels.get(PRODUCT_LABEL, "")
    if product in fleet.models:
        return fleet.models[product]
    # A GPU that is cut is labelled with `-MIG-` and a profile, or that it is mixed.
    plain = product.partition("-MIG")[0].removesuffix(SHARED)
    if not plain:
        return GpuModel("GPU")
    return model_of(plain.replace("-", " "), int(quantity(labels.get(MEMORY_LABEL, 0))))


def _cut(model: GpuModel, amounts: Mapping[str, str]) -> list[tuple[MigInstance, ...]]:
    counts = {
        name.removeprefix(MIG): counted(count)
        for name, count in amounts.items()
        if name.startswith(MIG)
    }
    return packed(model, counts)
