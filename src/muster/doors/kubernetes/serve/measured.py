"""What is measured of pods and nodes: for `kubectl top`, and for those who scale by it.

CPU and memory are of a whole pod: they are told of its container where it has one, and of `all`
where it has several. Pods of one gang on one node are measured together, and have equal parts.
Metrics of GPUs are the mean over those that the pod has.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping

from muster.controller.queries.queries import Queries
from muster.doors.kubernetes.controllers.autoscalers.readings import NotMeasuredError
from muster.doors.kubernetes.objects.errors import Reason, StatusError, not_found
from muster.doors.kubernetes.objects.kinds import NODE, NODE_METRICS, POD, POD_METRICS
from muster.doors.kubernetes.objects.selectors import LabelSelector, selects
from muster.doors.kubernetes.objects.times import stamp
from muster.doors.kubernetes.objects.value import (
    JsonObject,
    items,
    labels_of,
    name_of,
    namespace_of,
    part,
)
from muster.doors.kubernetes.pods.pod_of import job_of_pod
from muster.doors.kubernetes.serve.call import Target
from muster.doors.kubernetes.serve.pod_jobs import PodJobs
from muster.doors.kubernetes.serve.view import ObjectView
from muster.model.value import SECOND, Duration, Instant, JobId, Value
from muster.telemetry.device_families import ROWS
from muster.telemetry.look import Look

ALL = "all"
"""Stands for all containers of a pod."""

ANY = "*"
"""The name of all objects, where metrics are asked for."""

_READ = {metric.name: read for metric, read in ROWS}

_OnNode = tuple[JobId, str]


class Use(Value):
    """What a pod or a node uses."""

    cpu_milli: int
    memory_bytes: int


class Measured:
    """Answers from the last look. Any thread may ask."""

    def __init__(self, queries: Queries, view: ObjectView, clock: Callable[[], Instant]) -> None:
        self._queries = queries
        self._view = view
        self._clock = clock
        self._jobs = PodJobs(queries)

    def resource(self, name: str, namespace: str, /) -> Mapping[str, int]:
        """By pod, how much CPU or memory it uses, in thousandths."""
        uses = self._uses(self._look(), namespace)
        found = {
            name_of(pod): use.cpu_milli if name == "cpu" else 1_000 * use.memory_bytes
            for pod, use in uses.values()
        }
        if not found or name not in {"cpu", "memory"}:
            raise NotMeasuredError("no metrics returned from resource metrics API")
        return found

    def metric(self, name: str, namespace: str, /) -> Mapping[str, int]:
        """By pod, the mean of a metric over its GPUs, in thousandths."""
        found = dict(self._values(self._look(), name, namespace))
        if not found:
            raise NotMeasuredError(
                f"unable to get metric {name}: no metrics returned from custom metrics API"
            )
        return {name_of(pod): round(1_000 * value) for pod, value in found.values()}

    def answer(self, target: Target, wanted: LabelSelector) -> JsonObject:
        """What is asked for in one of the metrics APIs."""
        look = self._look()
        if target.subresource:
            return self._value_list(look, target, wanted)
        documents = [
            each
            for each in self._documents(look, target)
            if selects(wanted, labels_of(each)) and target.name in {"", name_of(each)}
        ]
        if target.name:
            if not documents:
                raise not_found(target.kind, target.name)
            return documents[0]
        return {
            "kind": f"{target.kind.kind}List",
            "apiVersion": target.kind.api_version,
            "metadata": {},
            "items": documents,
        }

    def _documents(self, look: Look, target: Target) -> Iterator[JsonObject]:
        if target.kind == POD_METRICS:
            for pod, use in self._uses(look, target.namespace).values():
                usage = {"name": _container(pod), "usage": _usage(use)}
                yield {**_head(POD_METRICS.kind, pod, look), "containers": [usage]}
        else:
            uses = self._node_uses(look)
            for node in self._view.objects(NODE):
                if name_of(node) in uses:
                    use = uses[name_of(node)]
                    yield {**_head(NODE_METRICS.kind, node, look), "usage": _usage(use)}

    def _value_list(self, look: Look, target: Target, wanted: LabelSelector) -> JsonObject:
        """As the adapters of Prometheus answer."""
        name, metric = target.name, target.subresource
        found = dict(self._values(look, metric, target.namespace))
        shown: list[JsonObject] = [
            {
                "describedObject": {
                    "kind": "Pod",
                    "namespace": target.namespace,
                    "name": name_of(pod),
                    "apiVersion": "/v1",
                },
                "metric": {"name": metric, "selector": None},
                "timestamp": stamp(look.at),
                "value": f"{round(1_000 * value)}m",
            }
            for pod, value in found.values()
            if name in {ANY, name_of(pod)} and selects(wanted, labels_of(pod))
        ]
        if not shown and name != ANY:
            text = f"the server could not find the metric {metric} for pods {name}"
            raise StatusError(Reason.NOT_FOUND, text, details={})
        return {
            "kind": "MetricValueList",
            "apiVersion": target.kind.api_version,
            "metadata": {},
            "items": shown,
        }

    def _look(self) -> Look:
        """The last one; where there is none, one that saw nothing."""
        return self._queries.telemetry.look() or Look(at=self._clock(), interval=Duration(0))

    def _pods(self, namespace: str) -> Iterator[tuple[JsonObject, _OnNode]]:
        """Those that run somewhere as a job."""
        for pod in self._view.objects(POD, namespace):
            node = part(pod, "spec").get("nodeName")
            known = self._jobs.of(pod) if job_of_pod(pod) is None else None
            job = job_of_pod(pod) if known is None else known.job
            if node and job is not None and part(pod, "status").get("phase") == "Running":
                yield pod, (job, node)

    def _uses(self, look: Look, namespace: str) -> Mapping[tuple[str, str], tuple[JsonObject, Use]]:
        """By namespace and name."""
        used: dict[_OnNode, Use] = {}
        for samples in look.samples.values():
            for each in samples.jobs:
                if each.cpu_used_milli is not None and each.memory_bytes is not None:
                    used[each.job, each.node] = Use(
                        cpu_milli=each.cpu_used_milli, memory_bytes=each.memory_bytes
                    )
        pods = list(self._pods(namespace))
        beside = Counter(place for _, place in pods)
        return {
            (namespace_of(pod), name_of(pod)): (pod, _share(used[place], beside[place]))
            for pod, place in pods
            if place in used
        }

    def _node_uses(self, look: Look) -> Mapping[str, Use]:
        """Of machines as they are; of pretend ones what their jobs use."""
        cpu, memory = Counter[str](), Counter[str]()
        for samples in look.samples.values():
            for device in samples.devices:
                cpu[device.node] += 0
            for job in samples.jobs:
                cpu[job.node] += job.cpu_used_milli or 0
                memory[job.node] += job.memory_bytes or 0
            for host in samples.hosts:
                cpu[host.node] = host.cpu_used_milli or 0
                memory[host.node] = (host.memory_bytes or 0) - (host.memory_free_bytes or 0)
        return {
            node: Use(cpu_milli=milli, memory_bytes=memory[node]) for node, milli in cpu.items()
        }

    def _values(
        self, look: Look, name: str, namespace: str
    ) -> Iterator[tuple[tuple[str, str], tuple[JsonObject, float]]]:
        values = _of_devices(look, name)
        for pod, place in self._pods(namespace):
            if values.get(place):
                mean = sum(values[place]) / len(values[place])
                yield (namespace_of(pod), name_of(pod)), (pod, mean)


def _of_devices(look: Look, name: str) -> Mapping[_OnNode, list[float]]:
    """By job and node, a metric of every GPU or instance that it has there."""
    read = _READ.get(name)
    if read is None:
        return {}
    values = {
        (each.device, each.instance): value
        for samples in look.samples.values()
        for each in samples.devices
        if (value := read(each)) is not None
    }
    found: defaultdict[_OnNode, list[float]] = defaultdict(list)
    for each in look.holdings:
        if (each.device, each.instance) in values:
            found[each.job, each.node].append(values[each.device, each.instance])
    return found


def _share(use: Use, pods: int) -> Use:
    return Use(cpu_milli=use.cpu_milli // pods, memory_bytes=use.memory_bytes // pods)


def _container(pod: JsonObject) -> str:
    names = [each["name"] for each in items(pod, "spec", "containers")]
    return names[0] if len(names) == 1 else ALL


def _head(kind: str, obj: JsonObject, look: Look) -> JsonObject:
    namespace = namespace_of(obj)
    metadata: JsonObject = {"name": name_of(obj)}
    if namespace:
        metadata["namespace"] = namespace
    metadata["creationTimestamp"] = stamp(look.at)
    if labels_of(obj):
        metadata["labels"] = dict(labels_of(obj))
    return {
        "kind": kind,
        "apiVersion": POD_METRICS.api_version,
        "metadata": metadata,
        "timestamp": stamp(look.at),
        "window": f"{look.interval // SECOND}s",
    }


def _usage(use: Use) -> JsonObject:
    return {"cpu": f"{use.cpu_milli}m", "memory": f"{use.memory_bytes // 1_024}Ki"}
