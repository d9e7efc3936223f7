"""Nodes as objects of Kubernetes: labels, taints, capacity and health. Pure."""

import uuid
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

from muster.doors.kubernetes.objects.times import stamp
from muster.doors.kubernetes.objects.value import JsonObject, items
from muster.doors.kubernetes.pods import quantities
from muster.doors.kubernetes.pods.checks import names
from muster.doors.kubernetes.pods.resources import GPU, MIG_PREFIX
from muster.doors.kubernetes.pods.where_of import HOSTNAME, POOL, PRODUCT
from muster.lifecycle.marks import own
from muster.model.cluster import Node, NodeState, Pool
from muster.model.gpu import Device
from muster.model.value import GpuModel, Instant, Value

_MOST_PODS = 110
_Row = tuple[str, bool | None, str, str]
"""A condition: its type, whether it is so (None: nobody knows), the reason, and a text."""

_IDS = uuid.UUID("b0a7d9a4-4d43-5c0e-9c6f-6e6f6465f200")


class Machine(Value):
    """What is to be known of the machine beside its node: for `nodeInfo`.

    version: what it says as its kubelet's, so that clients know which Kubernetes it speaks.
    """

    address: str = "127.0.0.1"
    kernel: str = ""
    os_image: str = ""
    architecture: str = "amd64"
    machine_id: str = ""
    boot_id: str = ""
    runtime: str = ""
    version: str = "v1.36.3"


class GpuAlert(NamedTuple):
    """An alert that fires, and the number of the GPU on its node."""

    gpu: str
    name: str


class SeenNode(Value):
    """A node with what goes with it. since: when it was first seen.

    alerts: what fires of its GPUs, by their number and the alert's name; None: nobody knows.
    """

    node: Node
    pool: Pool | None
    machine: Machine
    since: Instant
    now: Instant
    alerts: tuple[GpuAlert, ...] | None = None


def node_of(seen: SeenNode, before: JsonObject | None = None) -> JsonObject:
    """The node as an object. before: as it was, with the taints that it was given there."""
    node = seen.node
    spec: JsonObject = {}
    taints = _taints(own(node), items(before or {}, "spec", "taints"))
    if taints:
        spec["taints"] = taints
    if node.state is NodeState.DRAINING:
        spec["unschedulable"] = True
    return {
        "kind": "Node",
        "apiVersion": "v1",
        "metadata": {
            "name": str(node.id),
            "uid": str(uuid.uuid5(_IDS, node.id)),
            "creationTimestamp": stamp(seen.since),
            "labels": labels_of_node(node, seen.pool, seen.machine.architecture),
            "annotations": _annotations(node),
        },
        "spec": spec,
        "status": {
            "addresses": [
                {"type": "InternalIP", "address": seen.machine.address},
                {"type": "Hostname", "address": str(node.id)},
            ],
            "capacity": amounts(node),
            "allocatable": amounts(node, healthy_only=True),
            "conditions": _conditions(seen),
            "daemonEndpoints": {"kubeletEndpoint": {"Port": 0}},
            "nodeInfo": _facts(seen.machine),
        },
    }


def labels_of_node(node: Node, pool: Pool | None, architecture: str = "amd64") -> dict[str, str]:
    """Its own labels, and those that clients of Kubernetes look for."""
    found = {
        "beta.kubernetes.io/arch": architecture,
        "beta.kubernetes.io/os": "linux",
        "kubernetes.io/arch": architecture,
        HOSTNAME: str(node.id),
        "kubernetes.io/os": "linux",
        POOL: str(node.pool),
    }
    levels = pool.levels if pool is not None else ()
    found |= {
        f"topology.kubernetes.io/{name}": value
        for name, value in zip(levels, node.where, strict=False)
    }
    whole = [each for each in node.devices if each.mig is None]
    if whole:
        found |= {
            "nvidia.com/gpu.present": "true",
            PRODUCT: product_label(whole[0].model),
            "nvidia.com/gpu.count": str(len(whole)),
            "nvidia.com/gpu.memory": str(whole[0].memory_mib),
        }
    own = {
        key: value
        for key, value in node.labels.items()
        if not names.qualified(key) and not names.label_value(value)
    }
    return {**found, **own}


def product_label(model: GpuModel) -> str:
    """A model as the value of a label."""
    return str(model).replace(" ", "-")


def amounts(node: Node, *, healthy_only: bool = False) -> dict[str, str]:
    """What it has, or what of it works."""
    devices = [each for each in node.devices if each.healthy or not healthy_only]
    return {
        "cpu": quantities.cpu(node.cpu_milli),
        "memory": quantities.memory(node.memory_mib),
        "pods": str(_MOST_PODS),
        **_gpus(devices, node),
    }


def _gpus(devices: list[Device], node: Node) -> dict[str, str]:
    whole = sum(each.mig is None for each in devices)
    parts = Counter(part.profile for each in devices for part in each.mig or ())
    # What is broken is still there: it counts as none, as device plugins report it.
    known = sorted({part.profile for each in node.devices for part in each.mig or ()})
    found = {f"{MIG_PREFIX}{profile}": str(parts[profile]) for profile in known}
    if any(each.mig is None for each in node.devices):
        found[GPU] = str(whole)
    return found


def _taints(bare: Node, held: Sequence[JsonObject]) -> list[JsonObject]:
    """Those of the object, and its own; those that follow from its state have their controller."""
    there = {(each["key"], each["effect"]) for each in held}
    added: list[JsonObject] = [
        {"key": each.key, "value": each.value, "effect": "NoSchedule"}
        if each.value
        else {"key": each.key, "effect": "NoSchedule"}
        for each in bare.taints
        if (each.key, "NoSchedule") not in there
    ]
    return [*held, *added]


def _annotations(node: Node) -> dict[str, str]:
    told: Mapping[str, object | None] = {
        "muster.io/cluster": node.cluster,
        "muster.io/reason": node.reason or None,
        "muster.io/drained-by": node.drained_by,
        "muster.io/pretend": "true" if node.pretend else None,
    }
    return {name: str(value) for name, value in told.items() if value is not None}


def _conditions(seen: SeenNode) -> list[JsonObject]:
    node = seen.node
    sick = [each for each in node.devices if not each.healthy]
    is_up = node.state is not NodeState.DOWN
    rows: list[_Row] = [
        ("MemoryPressure", False, "KubeletHasSufficientMemory", _ENOUGH.format("memory available")),
        ("DiskPressure", False, "KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
        ("PIDPressure", False, "KubeletHasSufficientPID", _ENOUGH.format("PID available")),
        ("Ready", is_up, *_readiness(node)),
    ]
    if node.devices:
        why = "; ".join(f"GPU {each.index}: {each.reason or 'unhealthy'}" for each in sick)
        word = "SomeGpusAreUnhealthy" if sick else "AllGpusAreHealthy"
        rows.append(("GPUsHealthy", not sick, word, why or "every GPU works"))
        # In the words of node-problem-detector, where True is a problem.
        rows.append(("GpuProblem", bool(sick), word, why or "every GPU works"))
        rows.append(_thermal_condition(seen))
        rows.append(_link_condition(seen, sick))
    return [
        {
            "type": kind,
            "status": _STATUS[is_so],
            "lastHeartbeatTime": stamp(seen.now),
            "lastTransitionTime": stamp(seen.since),
            "reason": reason,
            "message": message,
        }
        for kind, is_so, reason, message in rows
    ]


def _thermal_condition(seen: SeenNode) -> _Row:
    if seen.alerts is None:
        text = "nobody has judged how hot GPUs are"
        return "GpuThermalProblem", None, "NotJudged", text
    hot = _fire(seen, HEAT)
    word = "SomeGpusAreTooHot" if hot else "AllGpusAreCoolEnough"
    return "GpuThermalProblem", bool(hot), word, "; ".join(hot) or "every GPU is cool enough"


def _link_condition(seen: SeenNode, sick: list[Device]) -> _Row:
    broken = (each for each in sick if "link" in each.reason.lower())
    bad = [f"GPU {each.index}: {each.reason}" for each in broken] + _fire(seen, LINKS)
    word = "SomeGpuLinksFail" if bad else "AllGpuLinksWork"
    return "GpuLinkProblem", bool(bad), word, "; ".join(bad) or "every link works"


def _fire(seen: SeenNode, names: Collection[str]) -> list[str]:
    """Numbers in their texts change all the time, and would make another object of the node."""
    return [
        f"GPU {each.gpu}: {each.name}" for each in sorted(seen.alerts or ()) if each.name in names
    ]


HEAT = frozenset({"GPUTemperatureTooHigh", "GpuMemoryTemperatureTooHigh", "GpuThermalThrottle"})
LINKS = frozenset({"GpuNvlinkErrors", "GpuPcieReplays", "GpuPcieLinkNarrow"})
"""Alerts that are conditions of the node too."""

_STATUS = {True: "True", False: "False", None: "Unknown"}

_ENOUGH = "kubelet has sufficient {}"


def _readiness(node: Node) -> tuple[str, str]:
    if node.state is NodeState.DOWN:
        return "KubeletNotReady", node.reason or "the node is down"
    return "KubeletReady", "kubelet is posting ready status"


def _facts(machine: Machine) -> JsonObject:
    return {
        "machineID": machine.machine_id,
        "systemUUID": machine.machine_id,
        "bootID": machine.boot_id,
        "kernelVersion": machine.kernel,
        "osImage": machine.os_image,
        "containerRuntimeVersion": machine.runtime,
        "kubeletVersion": machine.version,
        "kubeProxyVersion": "",
        "operatingSystem": "linux",
        "architecture": machine.architecture,
    }
