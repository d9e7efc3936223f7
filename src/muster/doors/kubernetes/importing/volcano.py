"""Queues of Volcano and of KAI as rules of ours, and back. Pure."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from muster.doors.kubernetes.importing.amounts import (
    by_resource,
    scope_of,
    units,
    whole,
    written,
)
from muster.doors.kubernetes.importing.kueue import Exported
from muster.doors.kubernetes.importing.naming import names_of
from muster.doors.kubernetes.objects.value import JsonObject, name_of, part
from muster.doors.slurm.conf.found import Imported, Note
from muster.model.queue import JobClass, Queue, Quota
from muster.model.site import Site
from muster.model.value import ClassName, ClusterName, QueuePath

VERSION = "scheduling.volcano.sh/v1beta1"
KAI_GROUP = "scheduling.run.ai/"
KAI_NAMES = {"cpu": "cpu", "memory": "memory", "gpu": "nvidia.com/gpu"}
KAI_NO_LIMIT = -1
ROOT = "root"
DEFAULT = QueuePath("default")
Notes = Callable[[str, str], None]


def imported(objects: Iterable[JsonObject], _cluster: ClusterName) -> Imported:
    """Everything that could be taken over, and notes on the rest."""
    told: list[Note] = []

    def notes(about: str, text: str) -> None:
        told.append(Note(about=about, text=text))

    found = tuple(objects)
    queues = {name_of(each): each for each in found if each.get("kind") == "Queue"}
    for each in found:
        if each.get("kind") != "Queue":
            _note_other(each, notes)
    made = [_queue(each, queues, notes) for name, each in sorted(queues.items()) if name != ROOT]
    known = {queue.path: queue for queue in made}
    if not known:
        known[DEFAULT] = Queue(path=DEFAULT)
    normal = JobClass(name=ClassName("normal"))
    site = Site(
        queues={path: known[path] for path in sorted(known)},
        classes={normal.name: normal},
        default_queue=DEFAULT if DEFAULT in known else min(known),
    )
    return Imported(site=site, racks=(), notes=tuple(told))


def _note_other(obj: JsonObject, notes: Notes) -> None:
    kind = str(obj.get("kind"))
    about = f"{kind} {name_of(obj)}"
    if kind == "PodGroup":
        least = part(obj, "spec").get("minMember", 1)
        notes(about, f"is a gang of {least}, which the jobs themselves ask for, not the rules")
    elif kind == "Job":
        notes(about, "is a job: create it through the Kubernetes door")
    else:
        notes(about, "has no counterpart and is left out")


def _queue(obj: JsonObject, queues: Mapping[str, JsonObject], notes: Notes) -> Queue:
    path = _path(name_of(obj), queues)
    about, spec = f"Queue {name_of(obj)}", part(obj, "spec")
    if str(obj.get("apiVersion")).startswith(KAI_GROUP):
        lines, weight = _kai_lines(spec, about, notes)
    else:
        lines, weight = _volcano_lines(spec, about, notes), int(spec.get("weight") or 1)
    priority = int(spec.get("priority") or 0)
    return Queue(path=path, quotas=lines, weight=max(1, weight), priority=priority)


def _path(name: str, queues: Mapping[str, JsonObject]) -> QueuePath:
    parts = [name]
    while True:
        spec = part(queues.get(parts[0], {}), "spec")
        above = str(spec.get("parent") or spec.get("parentQueue") or "")
        if not above or above == ROOT or above in parts or above not in queues:
            return QueuePath("/".join(parts))
        parts.insert(0, above)


def queue_paths(objects: Iterable[JsonObject]) -> dict[str, QueuePath]:
    """Which queues of ours these are, by their names."""
    queues = {name_of(each): each for each in objects if each.get("kind") == "Queue"}
    return {name: _path(name, queues) for name in queues if name != ROOT}


def _volcano_lines(spec: JsonObject, about: str, notes: Notes) -> tuple[Quota, ...]:
    guarantee, deserved = part(spec, "guarantee", "resource"), part(spec, "deserved")
    capability = part(spec, "capability")
    if guarantee and deserved:
        notes(about, "deserved is taken for what is guaranteed; guarantee, which is kept, is not")
    ours = {**guarantee, **deserved}
    keeps = spec.get("reclaimable") is False
    if spec.get("extendClusters") or spec.get("affinity"):
        notes(about, "affinity and extendClusters: jobs name pools and clusters")
    lines: list[Quota] = []
    for resource in sorted({*ours, *capability}):
        scope = scope_of(resource)
        if scope is None:
            notes(about, f"{resource} is not counted by Muster")
            continue
        limit = capability.get(resource)
        lines.append(
            Quota(
                scope=scope,
                guaranteed=units(resource, ours.get(resource, 0)),
                limit=None if limit is None else units(resource, limit),
                lend_limit=0 if keeps else None,
            )
        )
    return tuple(lines)


def _kai_lines(spec: JsonObject, about: str, notes: Notes) -> tuple[tuple[Quota, ...], int]:
    """KAI counts CPUs in thousandths, memory in megabytes and GPUs in parts of one."""
    lines: list[Quota] = []
    weights: list[int] = []
    for name, resource in KAI_NAMES.items():
        given = part(spec, "resources", name)
        scope = scope_of(resource)
        if not given or scope is None:
            continue
        quota, limit = given.get("quota", 0), given.get("limit", KAI_NO_LIMIT)
        if quota == KAI_NO_LIMIT:
            notes(about, f"{name}: a quota without bound is taken for none")
            quota = 0
        lines.append(
            Quota(
                scope=scope,
                guaranteed=_kai_units(name, quota),
                limit=None if limit == KAI_NO_LIMIT else _kai_units(name, limit),
            )
        )
        weights.append(int(given.get("overQuotaWeight", 1)))
    if len(set(weights)) > 1:
        notes(about, "has a weight for each resource; that of GPUs counts")
    return tuple(lines), weights[-1] if weights else 1


def _kai_units(name: str, amount: Any) -> int:
    if name == "cpu":
        return int(amount)
    return int(float(amount) * 1_000) if name == "gpu" else int(float(amount) * 1e6 / 1_024**2)


def exported(site: Site) -> Exported:
    """The queues as those of Volcano."""
    told: list[Note] = []
    objects: list[JsonObject] = []
    names = names_of(site.queues)
    for path, queue in sorted(site.queues.items()):
        about = f"queue {path}"
        lines = by_resource(queue.quotas)
        if len(lines) < len(queue.quotas):
            told.append(Note(about=about, text="lines about pools or models have no counterpart"))
        told += [
            Note(about=about, text=f"{field} has no counterpart")
            for field in ("max_jobs", "max_submitted", "may_submit", "default_class")
            if getattr(queue, field)
        ]
        parent = names.get(QueuePath(path.rpartition("/")[0]), ROOT)
        objects.append(_exported_queue(queue, (names[path], parent), lines))
    told += [
        Note(about=f"pool {name}", text="has no counterpart; nodes have labels")
        for name in sorted(site.pools)
    ]
    told += [
        Note(about=f"class {name}", text=f"is a PriorityClass of value {each.priority}")
        for name, each in sorted(site.classes.items())
    ]
    return Exported(objects=tuple(objects), notes=tuple(told))


def _exported_queue(queue: Queue, place: tuple[str, str], lines: Mapping[str, Quota]) -> JsonObject:
    name, parent = place
    deserved: dict[str, str] = {}
    capability: dict[str, str] = {}
    keeps = bool(lines)
    for resource, line in sorted(lines.items()):
        guaranteed, limit = whole(line.guaranteed), whole(line.limit)
        if guaranteed:
            deserved[resource] = written(line.scope, guaranteed)
        if limit is not None:
            capability[resource] = written(line.scope, limit)
        keeps = keeps and line.lend_limit == 0
    spec: JsonObject = {"weight": queue.weight, "parent": parent}
    if queue.priority:
        spec["priority"] = queue.priority
    for field, amounts in (("deserved", deserved), ("capability", capability)):
        if amounts:
            spec[field] = amounts
    spec["reclaimable"] = not keeps
    return {
        "apiVersion": VERSION,
        "kind": "Queue",
        "metadata": {"name": name},
        "spec": spec,
    }
