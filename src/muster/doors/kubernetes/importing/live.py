"""Queues of Kueue, Volcano and KAI as a part of the rules that are in force. Pure.

What `kueue.py` and `volcano.py` make of a file, this makes of the objects that the API has, beside
queues that come from elsewhere.
"""

from collections.abc import Callable, Iterable, Mapping

from muster.doors.kubernetes.importing import volcano
from muster.doors.kubernetes.importing.kueue import imported
from muster.doors.kubernetes.objects.value import JsonObject, name_of, part
from muster.doors.kubernetes.pods.where_of import POOL
from muster.model.queue import NORMAL, Amount, JobClass, Queue, Quota, Scope
from muster.model.site import Site
from muster.model.value import ClassName, ClusterName, PoolName, QueuePath, replace

_TREE = frozenset({"ClusterQueue", "Cohort"})
_HERE = ClusterName("here")


def with_kueue(site: Site, before: Iterable[JsonObject], after: Iterable[JsonObject]) -> Site:
    """The rules, with the queues and classes of these objects in the place of those before."""
    old, new = queues_of(before, site.pools), queues_of(after, site.pools)
    return replace(site, queues=_with_queues(site, old, new), classes=_classes(site, before, after))


def with_volcano(site: Site, before: Iterable[JsonObject], after: Iterable[JsonObject]) -> Site:
    """The rules, with these Queues of Volcano, or of KAI, in the place of those before."""
    return replace(site, queues=_with_queues(site, _of_volcano(before), _of_volcano(after)))


def _of_volcano(objects: Iterable[JsonObject]) -> dict[QueuePath, Queue]:
    found = tuple(objects)
    known = volcano.imported(found, _HERE).site.queues
    paths = frozenset(volcano.queue_paths(found).values())
    return {path: queue for path, queue in known.items() if path in paths}


def _with_queues(
    site: Site, old: Mapping[QueuePath, Queue], new: Mapping[QueuePath, Queue]
) -> dict[QueuePath, Queue]:
    kept = {path: queue for path, queue in site.queues.items() if path not in old or path in new}
    changed = {path: _changed(kept.get(path), queue) for path, queue in new.items()}
    queues = {**kept, **changed}
    return {path: queues[path] for path in sorted(queues)}


def _changed(old: Queue | None, new: Queue) -> Queue:
    """What Kueue has no word for stays as it was."""
    return new if old is None else replace(old, quotas=new.quotas, weight=new.weight)


def _classes(
    site: Site, before: Iterable[JsonObject], after: Iterable[JsonObject]
) -> dict[ClassName, JobClass]:
    old, new = imported(before, _HERE).site.classes, imported(after, _HERE).site.classes
    gone = old.keys() - new.keys()
    kept = {name: each for name, each in site.classes.items() if name not in gone}
    for name, each in new.items():
        known = kept.get(name)
        if name != NORMAL:
            kept[name] = each if known is None else replace(known, priority=each.priority)
    return kept


def queues_of(
    objects: Iterable[JsonObject], pools: Mapping[PoolName, object]
) -> dict[QueuePath, Queue]:
    """The queues that these objects are. A flavor that is no pool stands for all nodes."""
    found = tuple(objects)
    if not any(each.get("kind") in _TREE for each in found):
        return {}
    flavors = {
        PoolName(name_of(each)): part(each, "spec", "nodeLabels").get(POOL)
        for each in found
        if each.get("kind") == "ResourceFlavor"
    }

    def pool_of(flavor: PoolName | None) -> PoolName | None:
        named = None if flavor is None else flavors.get(flavor) or flavor
        return PoolName(str(named)) if named in pools else None

    return {
        path: replace(queue, quotas=_merged(queue.quotas, pool_of))
        for path, queue in imported(found, _HERE).site.queues.items()
    }


def _merged(
    quotas: Iterable[Quota], pool_of: Callable[[PoolName | None], PoolName | None]
) -> tuple[Quota, ...]:
    """One line for each thing that is counted."""
    found: dict[Scope, Quota] = {}
    for line in quotas:
        scope = replace(line.scope, pool=pool_of(line.scope.pool))
        other = found.get(scope)
        own = replace(line, scope=scope)
        found[scope] = own if other is None else _sum(other, own)
    return tuple(found.values())


def _sum(one: Quota, other: Quota) -> Quota:
    return Quota(
        scope=one.scope,
        guaranteed=_added(one.guaranteed, other.guaranteed) or 0,
        limit=_added(one.limit, other.limit),
        borrow_limit=_added(one.borrow_limit, other.borrow_limit),
        lend_limit=_added(one.lend_limit, other.lend_limit),
    )


def _added(one: Amount | None, other: Amount | None) -> int | None:
    """Without a bound on one of them, there is none on both."""
    return one + other if isinstance(one, int) and isinstance(other, int) else None
