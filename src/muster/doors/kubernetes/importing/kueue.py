"""Kueue's objects as rules of ours, and back. Pure.

A ClusterQueue is a queue, a Cohort one above it, a LocalQueue one below; a ResourceFlavor is a
pool, and a WorkloadPriorityClass a job class.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping

from muster.doors.kubernetes.importing.amounts import resource_of, scope_of, units, whole, written
from muster.doors.kubernetes.importing.naming import names_of
from muster.doors.kubernetes.objects.value import JsonObject, items, name_of, namespace_of, part
from muster.doors.kubernetes.pods.pod_of import slug
from muster.doors.slurm.conf.found import Imported, Note
from muster.model.cluster import Pool
from muster.model.queue import JobClass, Queue, Quota
from muster.model.site import Site
from muster.model.value import ClassName, ClusterName, PoolName, QueuePath, Value

GROUP = "kueue.x-k8s.io"
VERSION = f"{GROUP}/v1beta1"
NORMAL = ClassName("normal")
DEFAULT = QueuePath("default")
Notes = Callable[[str, str], None]


class Exported(Value):
    """Objects that do what the rules say, and what they cannot be made to do."""

    objects: tuple[JsonObject, ...]
    notes: tuple[Note, ...]


def imported(objects: Iterable[JsonObject], cluster: ClusterName) -> Imported:
    """Everything that could be taken over, and notes on the rest."""
    told: list[Note] = []

    def notes(about: str, text: str) -> None:
        told.append(Note(about=about, text=text))

    by_kind: dict[str, list[JsonObject]] = {}
    for each in objects:
        kind = str(each.get("kind"))
        by_kind.setdefault(kind, []).append(each)
        if kind not in _KINDS:
            notes(f"{kind} {name_of(each)}", "has no counterpart and is left out")
    flavors = by_kind.get("ResourceFlavor", [])
    classes = [_class(each, notes) for each in by_kind.get("WorkloadPriorityClass", [])]
    pools = [_pool(each, cluster, notes) for each in flavors]
    for name in sorted(_flavors_named(by_kind) - {name_of(each) for each in flavors}):
        notes(f"ResourceFlavor {name}", "is not among the objects; its pool has no nodes yet")
        pools.append(Pool(name=PoolName(name), cluster=cluster))
    paths = _cohort_paths(by_kind.get("Cohort", []), by_kind.get("ClusterQueue", []), notes)
    queues = [
        *(_cohort(each, paths, notes) for each in by_kind.get("Cohort", [])),
        *(_cluster_queue(each, paths, notes) for each in by_kind.get("ClusterQueue", [])),
    ]
    known = {queue.path: queue for queue in queues}
    for path in paths.values():
        known.setdefault(path, Queue(path=path))
    for path in _local_paths(by_kind.get("LocalQueue", []), paths, notes).values():
        known.setdefault(path, Queue(path=path))
    if not known:
        known[DEFAULT] = Queue(path=DEFAULT)
    site = Site(
        queues={path: known[path] for path in sorted(known)},
        classes={each.name: each for each in (JobClass(name=NORMAL), *classes)},
        pools={each.name: each for each in pools},
        default_queue=DEFAULT if DEFAULT in known else min(known),
    )
    return Imported(site=site, racks=(), notes=tuple(told))


_KINDS = frozenset("ResourceFlavor ClusterQueue Cohort LocalQueue WorkloadPriorityClass".split())


def _flavors_named(by_kind: Mapping[str, list[JsonObject]]) -> set[str]:
    """Those that quotas are about."""
    return {
        str(flavor.get("name"))
        for kind in ("Cohort", "ClusterQueue")
        for each in by_kind.get(kind, [])
        for group in items(part(each, "spec"), "resourceGroups")
        for flavor in items(group, "flavors")
    }


def _class(obj: JsonObject, notes: Notes) -> JobClass:
    notes(
        f"WorkloadPriorityClass {name_of(obj)}",
        "preempts nobody until `preempts` names the classes that it may stop",
    )
    return JobClass(name=ClassName(name_of(obj)), priority=int(obj.get("value", 0)))


def _pool(obj: JsonObject, cluster: ClusterName, notes: Notes) -> Pool:
    name, spec = name_of(obj), part(obj, "spec")
    labels = part(spec, "nodeLabels")
    if labels:
        listed = ", ".join(f"{key}={value}" for key, value in sorted(labels.items()))
        notes(f"ResourceFlavor {name}", f"put the nodes with {listed} into pool {name}")
    for field in ("nodeTaints", "tolerations", "topologyName"):
        if spec.get(field):
            notes(f"ResourceFlavor {name}", f"{field} is said for nodes and jobs, not for pools")
    return Pool(name=PoolName(name), cluster=cluster)


def _cohort_paths(
    cohorts: Iterable[JsonObject], cluster_queues: Iterable[JsonObject], notes: Notes
) -> dict[str, QueuePath]:
    """Paths of cohorts, `cohort/NAME`, and of cluster queues, `queue/NAME`."""
    above = {name_of(each): _cohort_of(each) for each in cohorts}
    found: dict[str, QueuePath] = {}
    for each in cluster_queues:
        cohort = _cohort_of(each)
        if cohort and cohort not in above:
            above[cohort] = ""
    for name in above:
        found[f"cohort/{name}"] = _path_below(name, above, notes)
    for each in cluster_queues:
        cohort, name = _cohort_of(each), name_of(each)
        start = f"{found[f'cohort/{cohort}']}/" if cohort else ""
        found[f"queue/{name}"] = QueuePath(f"{start}{name}")
    return found


def _cohort_of(obj: JsonObject) -> str:
    """The names that its versions have for it."""
    spec = part(obj, "spec")
    names = ("cohort", "cohortName", "parent", "parentName")
    return next((str(spec[name]) for name in names if spec.get(name)), "")


def _path_below(name: str, above: Mapping[str, str], notes: Notes) -> QueuePath:
    parts, seen = [name], {name}
    while parent := above.get(parts[0]):
        if parent in seen:
            notes(f"Cohort {name}", "is above itself; it is put at the top")
            return QueuePath(name)
        seen.add(parent)
        parts.insert(0, parent)
    return QueuePath("/".join(parts))


def _cohort(obj: JsonObject, paths: Mapping[str, QueuePath], notes: Notes) -> Queue:
    name = name_of(obj)
    return _queue(obj, paths[f"cohort/{name}"], f"Cohort {name}", notes)


def _cluster_queue(obj: JsonObject, paths: Mapping[str, QueuePath], notes: Notes) -> Queue:
    name, spec = name_of(obj), part(obj, "spec")
    about = f"ClusterQueue {name}"
    if part(spec, "namespaceSelector"):
        notes(about, "namespaceSelector: write who may submit with may_submit")
    for field in ("admissionChecks", "admissionChecksStrategy", "admissionScope"):
        if spec.get(field):
            notes(about, f"{field} has no counterpart")
    if spec.get("queueingStrategy") == "StrictFIFO":
        notes(about, "StrictFIFO: Muster lets later jobs start that do not delay earlier ones")
    if spec.get("stopPolicy") not in (None, "None"):
        notes(about, f"stopPolicy {spec['stopPolicy']}: hold its jobs, or close its pools")
    if part(spec, "preemption"):
        notes(about, "preemption: what is lent comes back by itself; classes say who preempts whom")
    if part(spec, "flavorFungibility"):
        notes(about, "flavorFungibility: jobs name pools in the order that they prefer")
    return _queue(obj, paths[f"queue/{name}"], about, notes)


def _queue(obj: JsonObject, path: QueuePath, about: str, notes: Notes) -> Queue:
    spec = part(obj, "spec")
    lines = tuple(_lines(spec, about, notes))
    weight = part(spec, "fairSharing").get("weight", 1)
    if not str(weight).isdecimal() or not int(weight):
        notes(about, f"weight {weight}: weights are whole numbers from 1 on")
        weight = 1
    return Queue(path=path, quotas=lines, weight=int(weight))


def _lines(spec: JsonObject, about: str, notes: Notes) -> Iterator[Quota]:
    alone = not _cohort_of({"spec": spec})
    for group in items(spec, "resourceGroups"):
        for flavor in items(group, "flavors"):
            for line in items(flavor, "resources"):
                resource = str(line.get("name"))
                scope = scope_of(resource, PoolName(str(flavor.get("name"))))
                if scope is None:
                    notes(about, f"{resource} is not counted by Muster")
                    continue
                nominal = units(resource, line.get("nominalQuota", 0))
                yield Quota(
                    scope=scope,
                    guaranteed=nominal,
                    # Without a cohort there is nobody to borrow from.
                    limit=nominal if alone else None,
                    borrow_limit=_limit(resource, line.get("borrowingLimit")),
                    lend_limit=_limit(resource, line.get("lendingLimit")),
                )


def _limit(resource: str, text: object | None) -> int | None:
    return None if text is None else units(resource, text)


def local_queue_paths(objects: Iterable[JsonObject]) -> dict[tuple[str, str], QueuePath]:
    """The queues that LocalQueues are, by their namespaces and names."""
    by_kind: dict[str, list[JsonObject]] = {}
    for each in objects:
        by_kind.setdefault(str(each.get("kind")), []).append(each)
    paths = cluster_queue_paths(objects)
    return _local_paths(by_kind.get("LocalQueue", []), paths, _say_nothing)


def cluster_queue_paths(objects: Iterable[JsonObject]) -> dict[str, QueuePath]:
    """The queues that cohorts are, by `cohort/NAME`, and ClusterQueues, by `queue/NAME`."""
    found = tuple(objects)
    cohorts = [each for each in found if each.get("kind") == "Cohort"]
    cluster_queues = [each for each in found if each.get("kind") == "ClusterQueue"]
    return _cohort_paths(cohorts, cluster_queues, _say_nothing)


def _say_nothing(_about: str, _text: str) -> None:
    """Who asks for paths has heard it before."""


def _local_paths(
    local_queues: Iterable[JsonObject], paths: Mapping[str, QueuePath], notes: Notes
) -> dict[tuple[str, str], QueuePath]:
    taken: dict[QueuePath, str] = {}
    found: dict[tuple[str, str], QueuePath] = {}
    for each in local_queues:
        name, namespace = name_of(each), namespace_of(each) or "default"
        cluster_queue = str(part(each, "spec").get("clusterQueue"))
        above, about = paths.get(f"queue/{cluster_queue}"), f"LocalQueue {namespace}/{name}"
        if above is None:
            notes(about, f"its ClusterQueue {cluster_queue} is not among the objects")
            continue
        path = QueuePath(f"{above}/{name}")
        if path in taken:
            notes(about, f"another of {taken[path]} has its name; it is called {namespace}-{name}")
            path = QueuePath(f"{above}/{namespace}-{name}")
        taken[path] = namespace
        notes(about, f"is queue {path}; its namespace is no part of it")
        found[namespace, name] = path
    return found


def exported(site: Site) -> Exported:
    """The rules as objects of Kueue."""
    told: list[Note] = []

    def notes(about: str, text: str) -> None:
        told.append(Note(about=about, text=text))

    above = {path.rpartition("/")[0] for path in site.queues}
    names = names_of(site.queues)
    objects = [
        *(_flavor(pool) for _, pool in sorted(site.pools.items())),
        *(_priority(each) for _, each in sorted(site.classes.items())),
    ]
    for path, queue in sorted(site.queues.items()):
        about = f"queue {path}"
        _note_rest(queue, about, notes)
        parent = names.get(QueuePath(path.rpartition("/")[0]))
        place = (names[path], parent)
        made = _as_cohort(queue, place, notes) if path in above else _as_queue(queue, place, notes)
        objects += made
    for _, each in sorted(site.classes.items()):
        if each.preempts or not each.preemptible:
            notes(f"class {each.name}", "who preempts whom follows from priority in Kueue")
    return Exported(objects=tuple(objects), notes=tuple(told))


def _note_rest(queue: Queue, about: str, notes: Notes) -> None:
    for field, text in (
        ("max_jobs", "has no counterpart"),
        ("max_submitted", "has no counterpart; a ResourceQuota counts pods"),
        ("may_submit", "is a matter of RoleBindings"),
        ("default_class", "has no counterpart"),
        ("priority", "has no counterpart"),
    ):
        if getattr(queue, field):
            notes(about, f"{field} {text}")


def _flavor(pool: Pool) -> JsonObject:
    return _object("ResourceFlavor", slug(pool.name), {"nodeLabels": {"muster.io/pool": pool.name}})


def _priority(job_class: JobClass) -> JsonObject:
    found = _object("WorkloadPriorityClass", slug(job_class.name))
    return {**found, "value": job_class.priority, "description": f"class {job_class.name}"}


Named = tuple[str, str | None]
"""What a queue is called, and the one above it."""


def _as_cohort(queue: Queue, place: Named, notes: Notes) -> list[JsonObject]:
    spec: JsonObject = {"resourceGroups": _groups(queue, notes)}
    return [_object("Cohort", place[0], _placed(queue, place, spec, "parentName"))]


def _as_queue(queue: Queue, place: Named, notes: Notes) -> list[JsonObject]:
    name = place[0]
    spec: JsonObject = {"namespaceSelector": {}, "resourceGroups": _groups(queue, notes)}
    local = _object("LocalQueue", name, {"clusterQueue": name})
    local["metadata"]["namespace"] = name
    return [_object("ClusterQueue", name, _placed(queue, place, spec, "cohort")), local]


def _placed(queue: Queue, place: Named, spec: JsonObject, above: str) -> JsonObject:
    if place[1] is not None:
        spec = {above: place[1], **spec}
    if queue.weight != 1:
        spec["fairSharing"] = {"weight": str(queue.weight)}
    return spec


def _groups(queue: Queue, notes: Notes) -> list[JsonObject]:
    """One group of resources; lines that name no pool are put on a flavor of that name."""
    flavors: dict[str, list[JsonObject]] = {}
    for line in queue.quotas:
        about, scope = f"queue {queue.path}", line.scope
        guaranteed = whole(line.guaranteed)
        if scope.model is not None or guaranteed is None:
            notes(about, f"a line about {resource_of(scope)} names a model or a percentage")
            continue
        flavor = slug(scope.pool) if scope.pool is not None else "default-flavor"
        found: JsonObject = {
            "name": resource_of(scope),
            "nominalQuota": written(scope, guaranteed),
        }
        borrow, limit = whole(line.borrow_limit), whole(line.limit)
        if borrow is None and limit is not None:
            borrow = max(0, limit - guaranteed)
        for field, amount in (("borrowingLimit", borrow), ("lendingLimit", whole(line.lend_limit))):
            if amount is not None:
                found[field] = written(scope, amount)
        flavors.setdefault(flavor, []).append(found)
    if not flavors:
        return []
    covered = sorted({line["name"] for lines in flavors.values() for line in lines})
    listed = [{"name": name, "resources": lines} for name, lines in sorted(flavors.items())]
    return [{"coveredResources": covered, "flavors": listed}]


def _object(kind: str, name: str, spec: JsonObject | None = None) -> JsonObject:
    found: JsonObject = {"apiVersion": VERSION, "kind": kind, "metadata": {"name": name}}
    if spec is not None:
        found["spec"] = spec
    return found
