"""What to look at again after a change, and when: each controller with what concerns it."""

from collections.abc import Callable, Iterable, Mapping
from heapq import heappop, heappush

from muster.doors.kubernetes.controllers import (
    daemon_sets,
    endpoint_mirrors,
    endpoints,
    garbage,
    kueue,
    kueue_workloads,
    nodes,
    pod_groups,
    replica_sets,
    stateful_sets,
)
from muster.doors.kubernetes.controllers.autoscalers.readings import Readings
from muster.doors.kubernetes.controllers.autoscalers.sync import Autoscalers
from muster.doors.kubernetes.controllers.changes import Outcome
from muster.doors.kubernetes.controllers.cluster import Cluster, controller_uid, kind_name
from muster.doors.kubernetes.controllers.cron_jobs import sync as cron_jobs
from muster.doors.kubernetes.controllers.deployments import sync as deployments
from muster.doors.kubernetes.controllers.disruption import sync as sync_budget
from muster.doors.kubernetes.controllers.events import forget
from muster.doors.kubernetes.controllers.finished import expire
from muster.doors.kubernetes.controllers.jobs import sync as jobs
from muster.doors.kubernetes.controllers.kubeflow import sync as training
from muster.doors.kubernetes.controllers.kubeflow.framework import Framework
from muster.doors.kubernetes.controllers.kubeflow.frameworks import TRAINING_JOBS
from muster.doors.kubernetes.controllers.namespaces import empty, furnish
from muster.doors.kubernetes.controllers.quotas import PodUsage, Quotas
from muster.doors.kubernetes.controllers.selecting import selector_of, selects, selects_all
from muster.doors.kubernetes.controllers.volcano import sync as volcano
from muster.doors.kubernetes.foreign.kinds import (
    KUEUE_WORKLOAD,
    LOCAL_QUEUE,
    POD_GROUPS,
    VOLCANO_JOB,
)
from muster.doors.kubernetes.objects.kinds import (
    CONFIG_MAP,
    CONTROLLER_REVISION,
    CRON_JOB,
    DAEMON_SET,
    DEPLOYMENT,
    ENDPOINT_SLICE,
    ENDPOINTS,
    EVENT,
    HORIZONTAL_POD_AUTOSCALER,
    JOB,
    NAMESPACE,
    NODE,
    POD,
    POD_DISRUPTION_BUDGET,
    REPLICA_SET,
    REPLICATION_CONTROLLER,
    RESOURCE_QUOTA,
    SERVICE,
    SERVICE_ACCOUNT,
    STATEFUL_SET,
)
from muster.doors.kubernetes.objects.value import (
    JsonObject,
    Kind,
    items,
    labels_of,
    name_of,
    namespace_of,
    part,
    uid_of,
)
from muster.doors.kubernetes.pods.gang_marks import COSCHEDULING, VOLCANO, group_named_by
from muster.model.value import Instant, Value

Sync = Callable[[JsonObject, Cluster, Instant], Outcome]
Concerned = Callable[[JsonObject, Cluster], Iterable[JsonObject]]

ANY_KIND = ""
QUEUED = (JOB, *(each.kind for each in TRAINING_JOBS))
WITH_WORKLOADS = (*QUEUED, VOLCANO_JOB, POD)
COUNTED_GROUPS = (POD_GROUPS[VOLCANO], POD_GROUPS[COSCHEDULING])
"""Kinds of groups whose status says how many of their pods run."""

"""Kinds that wait in a queue of Kueue when they name one."""


class Controller(Value):
    """Something that looks at objects. watches: by kind of what changed, what to look at then."""

    name: str
    sync: Sync
    watches: Mapping[str, Concerned]


class Item(Value):
    """One object that one controller is to look at."""

    controller: str
    kind: str
    namespace: str
    name: str
    uid: str


class WorkSet:
    """What waits to be looked at, each thing once, and what is to be looked at later."""

    def __init__(self, controllers: Iterable[Controller]) -> None:
        self._controllers = {each.name: each for each in controllers}
        # A dictionary keeps the order in which things came.
        self._waiting: dict[Item, None] = {}
        self._later: list[tuple[Instant, tuple[str, ...], Item]] = []

    def changed(self, obj: JsonObject, cluster: Cluster) -> None:
        """Look at whatever an object concerns: call it with what was, and with what is."""
        for controller in self._controllers.values():
            for kind in (kind_name(obj), ANY_KIND):
                concerned = controller.watches.get(kind)
                for each in concerned(obj, cluster) if concerned else ():
                    self.add(controller.name, each)

    def add(self, controller: str, obj: JsonObject) -> None:
        """Have one controller look at one object."""
        self._waiting.setdefault(_item(controller, obj))

    def look_again(self, controller: str, obj: JsonObject, at: Instant) -> None:
        """Have it look again at an instant."""
        item = _item(controller, obj)
        order = (item.controller, item.kind, item.namespace, item.name, item.uid)
        heappush(self._later, (at, order, item))

    def take(self, now: Instant) -> Item | None:
        """What is to be looked at next; None when nothing is due."""
        while self._later and self._later[0][0] <= now:
            self._waiting.setdefault(heappop(self._later)[2])
        item = next(iter(self._waiting), None)
        if item is not None:
            del self._waiting[item]
        return item

    def next_at(self) -> Instant | None:
        """When the next thing falls due, if nothing waits now."""
        if self._waiting:
            return Instant(0)
        return self._later[0][0] if self._later else None

    def outcome(self, item: Item, cluster: Cluster, now: Instant) -> Outcome | None:
        """What its controller makes of it; None if it is not there any more."""
        obj = cluster.by_uid(item.uid)
        if obj is None:
            return None
        return self._controllers[item.controller].sync(obj, cluster, now)


def itself(obj: JsonObject, cluster: Cluster) -> Iterable[JsonObject]:
    """The object that changed, if it is still there."""
    held = cluster.by_uid(uid_of(obj))
    return () if held is None else (held,)


def managers(kind: Kind) -> Concerned:
    """Whoever manages what changed; where nobody does, all whose selector would have it."""

    def concerned(obj: JsonObject, cluster: Cluster) -> Iterable[JsonObject]:
        manager = controller_uid(obj)
        if manager:
            held = cluster.by_uid(manager)
            return (held,) if held is not None and kind_name(held) == kind.qualified_kind else ()
        return selecting(kind)(obj, cluster)

    return concerned


def selecting(kind: Kind) -> Concerned:
    """Those of a kind whose selector selects what changed."""

    def concerned(obj: JsonObject, cluster: Cluster) -> Iterable[JsonObject]:
        labels = labels_of(obj)
        for each in cluster.list(kind, namespace_of(obj)):
            if selects(selector_of(each), labels):
                yield each

    return concerned


def _grand_managers(obj: JsonObject, cluster: Cluster) -> Iterable[JsonObject]:
    """The Deployment of a pod."""
    for replica_set in managers(REPLICA_SET)(obj, cluster) if controller_uid(obj) else ():
        yield from managers(DEPLOYMENT)(replica_set, cluster)


def _pods_of(obj: JsonObject, cluster: Cluster) -> Iterable[JsonObject]:
    return cluster.controlled(POD, namespace_of(obj), uid_of(obj))


def _collectable(obj: JsonObject, cluster: Cluster) -> Iterable[JsonObject]:
    """The object, what it owns, and its owners, who may wait for it to go."""
    yield from itself(obj, cluster)
    yield from cluster.dependents(uid_of(obj))
    for reference in items(obj, "metadata", "ownerReferences"):
        owner = cluster.by_uid(reference["uid"])
        if owner is not None:
            yield owner


def _namespace_of(obj: JsonObject, cluster: Cluster) -> Iterable[JsonObject]:
    held = cluster.get(NAMESPACE, "", namespace_of(obj)) if namespace_of(obj) else None
    if (
        held is not None
        and items(held, "spec", "finalizers")
        and part(held, "metadata").get("deletionTimestamp")
    ):
        yield held


def _all(kind: Kind) -> Concerned:
    """Every object of a kind, wherever it is."""

    def concerned(_: JsonObject, cluster: Cluster) -> Iterable[JsonObject]:
        return cluster.list(kind)

    return concerned


def _beside(kind: Kind) -> Concerned:
    """Every object of a kind in the same namespace."""

    def concerned(obj: JsonObject, cluster: Cluster) -> Iterable[JsonObject]:
        space = namespace_of(obj)
        return cluster.list(kind, space) if space and kind_name(obj) != "Event" else ()

    return concerned


def _beside_any(kinds: Iterable[Kind]) -> Concerned:
    """Every object of these kinds in the same namespace."""

    def concerned(obj: JsonObject, cluster: Cluster) -> Iterable[JsonObject]:
        return [each for kind in kinds for each in cluster.list(kind, namespace_of(obj))]

    return concerned


def _itself_and_managers(pod: JsonObject, cluster: Cluster) -> Iterable[JsonObject]:
    return [*itself(pod, cluster), *_owner_with_workload(pod, cluster)]


def _owner_with_workload(obj: JsonObject, cluster: Cluster) -> Iterable[JsonObject]:
    found = cluster.by_uid(controller_uid(obj))
    kinds = {each.qualified_kind for each in WITH_WORKLOADS}
    return [found] if found is not None and kind_name(found) in kinds else []


def _group_of(pod: JsonObject, cluster: Cluster) -> Iterable[JsonObject]:
    named = group_named_by(pod)
    kind = None if named is None else POD_GROUPS[named[0]]
    if named is None or kind not in COUNTED_GROUPS:
        return ()
    held = cluster.get(kind, namespace_of(pod), named[1])
    return () if held is None else (held,)


def _services_of(pod: JsonObject, cluster: Cluster) -> Iterable[JsonObject]:
    labels = labels_of(pod)
    for each in cluster.list(SERVICE, namespace_of(pod)):
        selector = part(each, "spec", "selector")
        if selector and selects_all(selector, labels):
            yield each


def _service_called(obj: JsonObject, cluster: Cluster) -> Iterable[JsonObject]:
    """The Service whose endpoints these are: they have its name."""
    held = cluster.get(SERVICE, namespace_of(obj), name_of(obj))
    return () if held is None else (held,)


def _endpoints_called(service: JsonObject, cluster: Cluster) -> Iterable[JsonObject]:
    held = cluster.get(ENDPOINTS, namespace_of(service), name_of(service))
    return () if held is None else (held,)


def _endpoints_mirrored(piece: JsonObject, cluster: Cluster) -> Iterable[JsonObject]:
    """The Endpoints of which this slice was made."""
    held = cluster.by_uid(controller_uid(piece) or "")
    is_one = held is not None and kind_name(held) == ENDPOINTS.qualified_kind
    return (held,) if held is not None and is_one else ()


def _pods_on(node: JsonObject, cluster: Cluster) -> Iterable[JsonObject]:
    return cluster.on_node(name_of(node))


def _own_namespace(obj: JsonObject, cluster: Cluster) -> Iterable[JsonObject]:
    held = cluster.get(NAMESPACE, "", namespace_of(obj))
    return () if held is None else (held,)


class Surroundings(Value):
    """What controllers need to know that is no object: what is measured, charged and trusted."""

    readings: Readings
    pod_usage: PodUsage
    root_ca: str


def controllers(around: Surroundings) -> tuple[Controller, ...]:
    """All of them, each with what it watches."""

    def furnished(namespace: JsonObject, cluster: Cluster, _: Instant) -> Outcome:
        return furnish(namespace, cluster, around.root_ca)

    return (
        *_OF_WORKLOADS,
        *map(_training, TRAINING_JOBS),
        _controller("vcjob", volcano.sync, {VOLCANO_JOB: itself, POD: managers(VOLCANO_JOB)}),
        _controller(
            "podgroup",
            pod_groups.count,
            {**dict.fromkeys(COUNTED_GROUPS, itself), POD: _group_of},
        ),
        _controller(
            "kueue",
            kueue.admit,
            {
                **dict.fromkeys(QUEUED, itself),
                LOCAL_QUEUE: _beside_any(QUEUED),
            },
        ),
        _controller(
            "kueue-workload",
            kueue_workloads.shown,
            {
                **dict.fromkeys(WITH_WORKLOADS, itself),
                POD: _itself_and_managers,
                KUEUE_WORKLOAD: _owner_with_workload,
            },
        ),
        *_OF_THE_CLUSTER,
        _controller(
            "autoscaler",
            Autoscalers(around.readings).sync,
            {HORIZONTAL_POD_AUTOSCALER: itself},
        ),
        Controller(
            name="quota",
            sync=Quotas(around.pod_usage).sync,
            watches={ANY_KIND: _beside(RESOURCE_QUOTA)},
        ),
        _controller(
            "furnish",
            furnished,
            {NAMESPACE: itself, SERVICE_ACCOUNT: _own_namespace, CONFIG_MAP: _own_namespace},
        ),
    )


def _training(framework: Framework) -> Controller:
    """The controller of one kind of training job."""

    def sync(job: JsonObject, cluster: Cluster, now: Instant) -> Outcome:
        return training.sync(framework, job, cluster, now)

    watches = {framework.kind: itself, POD: managers(framework.kind)}
    return _controller(framework.kind.singular, sync, watches)


def _controller(name: str, sync: Sync, watches: Mapping[Kind, Concerned]) -> Controller:
    named = {kind.qualified_kind: concerned for kind, concerned in watches.items()}
    return Controller(name=name, sync=sync, watches=named)


_OF_WORKLOADS: tuple[Controller, ...] = (
    _controller("job", jobs.sync, {JOB: itself, POD: managers(JOB)}),
    _controller("job-pods", jobs.release, {POD: itself, JOB: _pods_of}),
    _controller("ttl-after-finished", expire, {JOB: itself}),
    _controller("cronjob", cron_jobs.sync, {CRON_JOB: itself, JOB: managers(CRON_JOB)}),
    _controller("replicaset", replica_sets.sync, {REPLICA_SET: itself, POD: managers(REPLICA_SET)}),
    _controller(
        "replication",
        replica_sets.sync,
        {REPLICATION_CONTROLLER: itself, POD: managers(REPLICATION_CONTROLLER)},
    ),
    _controller(
        "deployment",
        deployments.sync,
        {DEPLOYMENT: itself, REPLICA_SET: managers(DEPLOYMENT), POD: _grand_managers},
    ),
    _controller(
        "statefulset",
        stateful_sets.sync,
        {
            STATEFUL_SET: itself,
            POD: managers(STATEFUL_SET),
            CONTROLLER_REVISION: managers(STATEFUL_SET),
        },
    ),
    _controller(
        "daemonset",
        daemon_sets.sync,
        {
            DAEMON_SET: itself,
            POD: managers(DAEMON_SET),
            CONTROLLER_REVISION: managers(DAEMON_SET),
            NODE: _all(DAEMON_SET),
        },
    ),
)
_OF_THE_CLUSTER: tuple[Controller, ...] = (
    _controller(
        "disruption",
        sync_budget,
        {POD_DISRUPTION_BUDGET: itself, POD: selecting(POD_DISRUPTION_BUDGET)},
    ),
    _controller(
        "endpoints",
        endpoints.sync,
        {
            SERVICE: itself,
            POD: _services_of,
            ENDPOINT_SLICE: managers(SERVICE),
            ENDPOINTS: _service_called,
        },
    ),
    _controller(
        "endpoint-mirrors",
        endpoint_mirrors.sync,
        {ENDPOINTS: itself, SERVICE: _endpoints_called, ENDPOINT_SLICE: _endpoints_mirrored},
    ),
    _controller("events", forget, {EVENT: itself}),
    _controller("taint", nodes.taint, {NODE: itself}),
    _controller("evict", nodes.evict, {POD: itself, NODE: _pods_on}),
    Controller(name="garbage", sync=garbage.collect, watches={ANY_KIND: _collectable}),
    Controller(
        name="namespace",
        sync=empty,
        watches={NAMESPACE.qualified_kind: itself, ANY_KIND: _namespace_of},
    ),
)


def _item(controller: str, obj: JsonObject) -> Item:
    return Item(
        controller=controller,
        kind=kind_name(obj),
        namespace=namespace_of(obj),
        name=name_of(obj),
        uid=uid_of(obj),
    )
