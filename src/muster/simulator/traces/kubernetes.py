"""Dumps of Kubernetes objects, one JSON document a line: Pods, Kueue Workloads, or watch events.

    kubectl get pods,workloads -A -o json | jq -c '.items[]'
    kubectl get workloads -A --watch --output-watch-events -o json | jq -c .

Of several states of one object the last counts. Pods that belong to a Workload in the dump are left
out: the Workload says it all. A Workload with several pod sets has as many tasks as all of them,
each as large as the largest.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import cast

from muster.model.value import Duration, GpuModel, Instant
from muster.simulator.traces.moments import cpu_milli, instant, kubernetes_mib
from muster.simulator.traces.traced import Outcome, TracedJob

GPU = "nvidia.com/gpu"
PRODUCT = "nvidia.com/gpu.product"
QUEUE = "kueue.x-k8s.io/queue-name"
_MARKS_OF_KUEUE = (QUEUE, "kueue.x-k8s.io/managed", "kueue.x-k8s.io/podset")

Document = Mapping[str, object]


def jobs(text: Iterable[str]) -> Iterator[TracedJob]:
    """The Workloads and the Pods that stand alone, in the order they are first named."""
    found: dict[tuple[str, str], Document] = {}
    for line in filter(str.strip, text):
        document = _object(cast("Document", json.loads(line)))
        if document.get("kind") in ("Pod", "Workload"):
            found[str(document["kind"]), _name(document)] = document
    has_workloads = any(kind == "Workload" for kind, _ in found)
    for (kind, _), document in found.items():
        if kind == "Workload":
            yield _workload(document)
        elif not (has_workloads and _is_of_kueue(document)):
            yield _pod(document)


def _object(document: Document) -> Document:
    """What a watch event is about, or the document itself."""
    return _map(document, "object") if "type" in document and "object" in document else document


def _workload(document: Document) -> TracedJob:
    spec, pod_sets = _map(document, "spec"), _maps(_map(document, "spec"), "podSets")
    templates = [_map(_map(pods, "template"), "spec") for pods in pod_sets]
    admitted = _since(document, "Admitted") or _since(document, "QuotaReserved")
    finished = _since(document, "Finished")
    return TracedJob(
        name=_name(document),
        submitted_at=_created(document),
        duration=_between(admitted, finished),
        tasks=sum(int(str(pods.get("count", 1))) for pods in pod_sets),
        cpu_milli=max((_cpu(each) for each in templates), default=0),
        memory_mib=max((_memory(each) for each in templates), default=0),
        gpus=max((_gpus(each) for each in templates), default=0),
        models=_models(templates),
        user=str(_map(document, "metadata").get("namespace", "")),
        queue=str(spec.get("queueName", "")),
        outcome=_outcome_of_workload(document),
        started_at=admitted,
    )


def _pod(document: Document) -> TracedJob:
    spec, status, metadata = (_map(document, part) for part in ("spec", "status", "metadata"))
    started_at = _at(status.get("startTime"))
    return TracedJob(
        name=_name(document),
        submitted_at=_created(document),
        duration=_between(started_at, _ended(status)),
        cpu_milli=_cpu(spec),
        memory_mib=_memory(spec),
        gpus=_gpus(spec),
        models=_models([spec]),
        user=str(metadata.get("namespace", "")),
        queue=str(_map(metadata, "labels").get(QUEUE, "")),
        outcome=Outcome.FAILED if status.get("phase") == "Failed" else Outcome.COMPLETED,
        started_at=started_at,
    )


def _is_of_kueue(document: Document) -> bool:
    labels = _map(_map(document, "metadata"), "labels")
    return any(mark in labels for mark in _MARKS_OF_KUEUE)


def _name(document: Document) -> str:
    metadata = _map(document, "metadata")
    return f"{metadata.get('namespace', 'default')}/{metadata['name']}"


def _created(document: Document) -> Instant:
    return _at(_map(document, "metadata").get("creationTimestamp")) or Instant(0)


def _since(document: Document, condition: str) -> Instant | None:
    """When a condition came to be true."""
    for each in _maps(_map(document, "status"), "conditions"):
        if each.get("type") == condition and each.get("status") == "True":
            return _at(each.get("lastTransitionTime"))
    return None


def _outcome_of_workload(document: Document) -> Outcome:
    conditions = _maps(_map(document, "status"), "conditions")
    reasons = [str(each.get("reason")) for each in conditions if each.get("type") == "Finished"]
    return Outcome.FAILED if "Failed" in "".join(reasons) else Outcome.COMPLETED


def _ended(status: Document) -> Instant | None:
    """When the last container ended, if all have."""
    states = [_map(each, "state") for each in _maps(status, "containerStatuses")]
    ends = [_at(_map(state, "terminated").get("finishedAt")) for state in states]
    known = [end for end in ends if end is not None]
    return max(known) if known and len(known) == len(ends) else None


def _between(start: Instant | None, end: Instant | None) -> Duration | None:
    return None if start is None or end is None else Duration(max(0, end - start))


def _cpu(spec: Document) -> int:
    return sum(cpu_milli(asked) for asked in _requests(spec, "cpu"))


def _memory(spec: Document) -> int:
    return sum(kubernetes_mib(asked) for asked in _requests(spec, "memory"))


def _gpus(spec: Document) -> int:
    return sum(int(asked) for asked in _requests(spec, GPU))


def _requests(spec: Document, name: str) -> Iterator[str]:
    for container in _maps(spec, "containers"):
        resources = _map(container, "resources")
        asked = _map(resources, "requests").get(name) or _map(resources, "limits").get(name)
        if asked is not None:
            yield str(asked)


def _models(specs: Iterable[Document]) -> tuple[GpuModel, ...]:
    named = {str(_map(spec, "nodeSelector").get(PRODUCT, "")) for spec in specs}
    return tuple(GpuModel(model) for model in sorted(named) if model)


def _at(text: object) -> Instant | None:
    return None if text is None else instant(str(text))


def _map(document: Document, key: str) -> Document:
    return cast("Document", document.get(key) or {})


def _maps(document: Document, key: str) -> list[Document]:
    return cast("list[Document]", document.get(key) or [])
