"""What controllers see of the objects that there are, found by what they ask for."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Protocol

from muster.doors.kubernetes.objects.value import (
    JsonObject,
    Kind,
    items,
    name_of,
    namespace_of,
    part,
    uid_of,
)

NO_OWNER = ""


class Cluster(Protocol):
    """The objects that there are. Lists are in the order of namespaces and names."""

    def get(self, kind: Kind, namespace: str, name: str) -> JsonObject | None:
        """The object of that name."""
        ...

    def by_uid(self, uid: str) -> JsonObject | None:
        """The object with this uid, of whatever kind."""
        ...

    def list(self, kind: Kind, namespace: str | None = None) -> Sequence[JsonObject]:
        """All of a kind, or those of one namespace."""
        ...

    def within(self, namespace: str) -> Sequence[JsonObject]:
        """Everything in a namespace, of whatever kind."""
        ...

    def controlled(self, kind: Kind, namespace: str, uid: str) -> Sequence[JsonObject]:
        """Those of a kind that one controller manages; NO_OWNER finds those that none does."""
        ...

    def dependents(self, uid: str) -> Sequence[JsonObject]:
        """Whatever names this owner, of any kind."""
        ...

    def on_node(self, node: str) -> Sequence[JsonObject]:
        """The pods of one node; those of "" are on none."""
        ...

    def refusal(self, uid: str) -> str | None:
        """Why the last thing that this owner wanted to create was refused, if it was."""
        ...


class Objects:
    """A cluster in memory: each object is indexed when it is put there, and only then."""

    def __init__(self, objects: Iterable[JsonObject] = ()) -> None:
        self._by_name: dict[str, dict[tuple[str, str], JsonObject]] = {}
        self._by_uid: dict[str, JsonObject] = {}
        self._indexes: dict[str, dict[tuple[str, ...], dict[tuple[str, ...], JsonObject]]] = {
            name: {} for name in _INDEXES
        }
        self._refusals: dict[str, str] = {}
        for each in objects:
            self.put(each)

    def put(self, obj: JsonObject) -> None:
        """Keep an object, in the place of the one that had its name."""
        at = (namespace_of(obj), name_of(obj))
        self.remove(self._by_name.get(kind_name(obj), {}).get(at))
        self._by_name.setdefault(kind_name(obj), {})[at] = obj
        self._by_uid[uid_of(obj)] = obj
        for name, key in _entries(obj):
            self._indexes[name].setdefault(key, {})[_order(obj)] = obj

    def remove(self, obj: JsonObject | None) -> None:
        """Forget an object."""
        if obj is None:
            return
        self._by_name.get(kind_name(obj), {}).pop((namespace_of(obj), name_of(obj)), None)
        self._by_uid.pop(uid_of(obj), None)
        for name, key in _entries(obj):
            held = self._indexes[name].get(key, {})
            held.pop(_order(obj), None)
            if not held:
                self._indexes[name].pop(key, None)

    def refuse(self, uid: str, why: str | None) -> None:
        """Keep why the last creation for an owner was refused; None when it was not."""
        if why is None:
            self._refusals.pop(uid, None)
        else:
            self._refusals[uid] = why

    def all(self) -> Iterator[JsonObject]:
        """Every object, of whatever kind."""
        return iter(tuple(self._by_uid.values()))

    def get(self, kind: Kind, namespace: str, name: str) -> JsonObject | None:
        return self._by_name.get(kind.qualified_kind, {}).get((namespace, name))

    def by_uid(self, uid: str) -> JsonObject | None:
        return self._by_uid.get(uid)

    def list(self, kind: Kind, namespace: str | None = None) -> Sequence[JsonObject]:
        if namespace is None:
            found = self._by_name.get(kind.qualified_kind, {})
            return [found[key] for key in sorted(found)]
        return self._indexed("namespace", kind.qualified_kind, namespace)

    def within(self, namespace: str) -> Sequence[JsonObject]:
        return self._indexed("everything", namespace)

    def controlled(self, kind: Kind, namespace: str, uid: str) -> Sequence[JsonObject]:
        return self._indexed("controller", kind.qualified_kind, namespace, uid)

    def dependents(self, uid: str) -> Sequence[JsonObject]:
        return self._indexed("owner", uid)

    def on_node(self, node: str) -> Sequence[JsonObject]:
        return self._indexed("node", node)

    def refusal(self, uid: str) -> str | None:
        return self._refusals.get(uid)

    def _indexed(self, index: str, *key: str) -> Sequence[JsonObject]:
        found = self._indexes[index].get(key, {})
        return [found[order] for order in sorted(found)]


def kind_name(obj: JsonObject) -> str:
    """The kind with its group, `Job.batch`: the same for every version of it."""
    group, slash, _ = str(obj.get("apiVersion", "")).partition("/")
    return f"{obj.get('kind')}.{group}" if slash else str(obj.get("kind"))


def controller_uid(obj: JsonObject) -> str:
    """The uid of the one owner that manages it; NO_OWNER if there is none."""
    for owner in items(obj, "metadata", "ownerReferences"):
        if owner.get("controller"):
            return str(owner["uid"])
    return NO_OWNER


def _order(obj: JsonObject) -> tuple[str, ...]:
    return namespace_of(obj), name_of(obj), kind_name(obj)


def _of_namespace(obj: JsonObject) -> Iterator[tuple[str, ...]]:
    yield kind_name(obj), namespace_of(obj)


def _of_everything(obj: JsonObject) -> Iterator[tuple[str, ...]]:
    if namespace_of(obj):
        yield (namespace_of(obj),)


def _of_controller(obj: JsonObject) -> Iterator[tuple[str, ...]]:
    yield kind_name(obj), namespace_of(obj), controller_uid(obj)


def _of_owner(obj: JsonObject) -> Iterator[tuple[str, ...]]:
    for owner in items(obj, "metadata", "ownerReferences"):
        yield (str(owner["uid"]),)


def _of_node(obj: JsonObject) -> Iterator[tuple[str, ...]]:
    if kind_name(obj) == "Pod":
        yield (str(part(obj, "spec").get("nodeName", "")),)


_INDEXES: dict[str, Callable[[JsonObject], Iterator[tuple[str, ...]]]] = {
    "namespace": _of_namespace,
    "everything": _of_everything,
    "controller": _of_controller,
    "owner": _of_owner,
    "node": _of_node,
}


def _entries(obj: JsonObject) -> Iterator[tuple[str, tuple[str, ...]]]:
    for name, keys in _INDEXES.items():
        for key in keys(obj):
            yield name, key
