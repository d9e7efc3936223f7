"""kube-scheduler's HTTP extender: which nodes a pod may have, and which suit it best. Pure.

kube-scheduler asks with `ExtenderArgs` about a pod and the nodes that its own filters left; it
decides, and binds. So a cluster can have our packing and keep everything else.
"""

from collections.abc import Iterable, Mapping
from typing import Any, cast

from muster.backends.fleet import Taken, without
from muster.backends.kubernetes.pods import Pod, pod_of
from muster.model.cluster import Node
from muster.model.gpu import GpuAsk, Mig
from muster.model.job import Ask
from muster.model.value import NodeId

MOST = 10
"""The best score that kube-scheduler takes; it multiplies it by the extender's weight."""

Args = Mapping[str, Any]
Numbers = Mapping[NodeId, int]


class BadArgsError(Exception):
    """This is no `ExtenderArgs`; the text says what is missing."""


def asked_by(args: Args) -> Ask | None:
    """What the pod asks for; None where it asks for what we cannot judge, such as two profiles."""
    asked_for: Any = args.get("Pod")
    if not isinstance(asked_for, dict):
        raise BadArgsError("there is no Pod in what was asked")
    document = cast("dict[str, Any]", asked_for)
    metadata: Mapping[str, Any] = document.get("metadata") or {}
    named = {"namespace": "", "name": "", "uid": "", **metadata}
    holds = pod_of({**document, "metadata": named, "spec": document.get("spec") or {}}).holds
    gpus, wanted = holds.amount.gpu_milli // 1_000, [each for each in holds.mig.items() if each[1]]
    if len(wanted) + bool(gpus) > 1:
        return None
    asked = GpuAsk(count=gpus) if gpus else None
    if wanted:
        ((profile, count),) = wanted
        asked = GpuAsk(count=count, slice=Mig(profile=profile))
    amount = holds.amount
    return Ask(cpu_milli=amount.cpu_milli, memory_mib=amount.memory_mib, gpus=asked)


def names_in(args: Args) -> tuple[NodeId, ...]:
    """The nodes that are asked about, whichever way kube-scheduler is told to name them."""
    names = args.get("NodeNames")
    if names is None:
        listed: Mapping[str, Any] = args.get("Nodes") or {}
        names = [each["metadata"]["name"] for each in listed.get("items") or ()]
    return tuple(NodeId(each) for each in names)


def free_of(nodes: Iterable[Node], pods: Iterable[Pod]) -> dict[NodeId, Node]:
    """The nodes with what their pods leave of them."""
    held: dict[NodeId, Taken] = {}
    for pod in pods:
        if pod.node is not None and not pod.is_over:
            held[pod.node] = held.get(pod.node, Taken()) + pod.holds
    return {each.id: without(each, held.get(each.id, Taken()), ()) for each in nodes}


def filtered(args: Args, known: Iterable[NodeId], numbers: Numbers | None) -> dict[str, Any]:
    """An `ExtenderFilterResult`. What we do not know, or cannot judge, is not ours to refuse."""
    names, judged = names_in(args), frozenset(known)
    failed = {
        name: "Muster: no room for what the pod asks for"
        for name in names
        if numbers is not None and name in judged and name not in numbers
    }
    result: dict[str, Any] = {"FailedNodes": failed, "FailedAndUnresolvableNodes": {}, "Error": ""}
    if args.get("NodeNames") is not None:
        return result | {"NodeNames": [name for name in names if name not in failed]}
    listed: Mapping[str, Any] = args.get("Nodes") or {}
    items = [each for each in listed.get("items") or () if each["metadata"]["name"] not in failed]
    return result | {"Nodes": {**listed, "items": items}}


def prioritized(args: Args, numbers: Numbers | None) -> list[dict[str, Any]]:
    """A `HostPriorityList`: nodes that are worth the same have the same score."""
    names = names_in(args)
    mine = {name: numbers[name] for name in names if numbers is not None and name in numbers}
    steps = {number: place for place, number in enumerate(sorted(set(mine.values())))}
    last = max(1, len(steps) - 1)
    scores = {name: MOST - MOST * steps[number] // last for name, number in mine.items()}
    return [{"Host": name, "Score": scores.get(name, 0)} for name in names]
