"""Writes that are worked out one after the other, and committed together or not at all."""

from collections.abc import Callable, Generator, Iterator
from concurrent.futures import Future
from contextlib import contextmanager

from muster.controller.messages import Caller
from muster.controller.use_cases.objects import ObjectsWrite, ObjectWrite, Written
from muster.controller.world.transaction import Transaction
from muster.doors.kubernetes.objects.value import JsonObject, Kind, name_of, namespace_of
from muster.doors.kubernetes.serve.view import Lookup
from muster.doors.kubernetes.serve.writing import Commit
from muster.model.kept_object import KeptObject, ObjectKey, RemovedObject

NOT_YET = 0
"""The version of an object that is not committed yet."""


class Together:
    """A view of what will be, and a commit that only collects; the real one comes at the end.

    Whoever writes through it sees what was written before, at the version that was found.
    """

    def __init__(self, view: Lookup, commit: Commit) -> None:
        self._view = view
        self._commit = commit
        self._found: dict[ObjectKey, int | None] = {}
        self._after: dict[ObjectKey, KeptObject | None] = {}
        self._also: list[Callable[[Transaction], None]] = []

    @contextmanager
    def one_commit(self, caller: Caller) -> Generator[None]:
        """Collect, and commit in the end; what is collected when something goes wrong is left.

        ObjectChangedError: somebody else was quicker, and nothing was written.
        """
        self._found, self._after, self._also = {}, {}, []
        yield
        writes = tuple(self._writes())
        if writes:
            self._commit(ObjectsWrite(caller=caller, writes=writes, also=self._also_all)).result()

    def collect(self, wanted: ObjectsWrite) -> "Future[tuple[Written, ...]]":
        """Take part in the commit that is to come."""
        if wanted.also is not None:
            self._also.append(wanted.also)
        answer: Future[tuple[Written, ...]] = Future()
        answer.set_result(tuple(self._put(each) for each in wanted.writes))
        return answer

    def find(self, kind: Kind, namespace: str, name: str) -> KeptObject | None:
        """The object as it will be."""
        group, resource = kind.shelf
        key = ObjectKey(group=group, resource=resource, namespace=namespace, name=name)
        if key in self._after:
            return self._after[key]
        return self._view.find(kind, namespace, name)

    def get(self, kind: Kind, namespace: str, name: str) -> JsonObject | None:
        """The same, as clients see it."""
        found = self.find(kind, namespace, name)
        return None if found is None else self.read(found)

    def read(self, kept: KeptObject) -> JsonObject:
        return self._view.read(kept)

    def objects(self, kind: Kind, namespace: str = "") -> list[JsonObject]:
        """Those that will be."""
        found = {
            (namespace_of(each), name_of(each)): each
            for each in self._view.objects(kind, namespace)
        }
        for key, after in self._after.items():
            is_meant = not namespace or key.namespace == namespace
            if (key.group, key.resource) == kind.shelf and is_meant:
                found.pop((key.namespace, key.name), None)
                if after is not None:
                    found[key.namespace, key.name] = self.read(after)
        return [found[place] for place in sorted(found)]

    def every(self) -> list[KeptObject]:
        """Those that are committed."""
        return self._view.every()

    def _put(self, write: ObjectWrite) -> Written:
        version = write.seen or NOT_YET
        self._found.setdefault(write.key, write.seen)
        if write.body is None:
            self._after[write.key] = None
            return RemovedObject(key=write.key, version=version)
        kept = KeptObject(key=write.key, version=version, body=write.body)
        self._after[write.key] = kept
        return kept

    def _writes(self) -> Iterator[ObjectWrite]:
        for key, after in self._after.items():
            seen = self._found[key]
            if after is not None or seen is not None:
                yield ObjectWrite(key=key, seen=seen, body=None if after is None else after.body)

    def _also_all(self, transaction: Transaction) -> None:
        for each in self._also:
            each(transaction)
