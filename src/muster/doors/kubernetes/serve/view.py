"""All objects as this process knows them, what happened to them lately, and who follows that."""

from bisect import bisect_right
from collections import deque
from collections.abc import Callable, Iterable
from functools import cached_property
from threading import Condition
from typing import Protocol

from muster.controller.queries.objects import ObjectQueries
from muster.controller.world.transaction import Change as JobChange
from muster.doors.kubernetes.objects.errors import (
    Cause,
    CauseReason,
    Reason,
    StatusError,
    cause_json,
)
from muster.doors.kubernetes.objects.value import JsonObject, Kind, metadata, uid_of
from muster.model.kept_object import KeptObject, ObjectKey, RemovedObject, object_version
from muster.stores.base import Batch

CHANGES_KEPT = 20_000
"""So many changes can be watched from the past; who is further behind lists again."""

FUTURE_PATIENCE_S = 3.0
"""So long a version that is not there yet is waited for."""

Open = Callable[[KeptObject], JsonObject]
"""Reads the body of an object, which may be sealed."""

Resource = tuple[str, str]
"""Group and plural."""


class Change:
    """What became of one object, read when somebody asks; None: it was not, or is not there."""

    def __init__(
        self, version: int, before: KeptObject | None, after: KeptObject | None, read: Open
    ) -> None:
        self.version = version
        self.key = _present(before, after).key
        self.resource: Resource = (self.key.group, self.key.resource)
        self._before = before
        self._after = after
        self._read = read
        # Written once for all who want the same: see `watching.py`.
        self.written: dict[str, bytes] = {}

    @cached_property
    def before(self) -> JsonObject | None:
        """As it was; where it is gone, with the version of its removal."""
        if self._before is None:
            return None
        obj = self._read(self._before)
        if self._after is None:
            metadata(obj)["resourceVersion"] = str(self.version)
        return obj

    @cached_property
    def after(self) -> JsonObject | None:
        """As it is."""
        return None if self._after is None else self._read(self._after)


Listener = Callable[[tuple[Change, ...]], None]


class Lookup(Protocol):
    """Where those who write look at what there is."""

    def find(self, kind: Kind, namespace: str, name: str) -> KeptObject | None:
        """The object as it is kept."""
        ...

    def get(self, kind: Kind, namespace: str, name: str) -> JsonObject | None:
        """The object of that name."""
        ...

    def read(self, kept: KeptObject) -> JsonObject:
        """A kept object as clients see it."""
        ...

    def objects(self, kind: Kind, namespace: str = "") -> list[JsonObject]:
        """All of a kind, or those of a namespace."""
        ...

    def every(self) -> list[KeptObject]:
        """Everything that is kept, of whatever kind."""
        ...


class ObjectView:
    """Follows the journal. Any thread may ask; changes come from the thread that commits."""

    def __init__(self, queries: ObjectQueries, read: Open) -> None:
        self._read = read
        self._moved = Condition()
        self._kept: dict[Resource, dict[tuple[str, str], KeptObject]] = {}
        self._changes: deque[Change] = deque()
        self._listeners: list[Listener] = []
        self._version = 0
        self._floor = 0
        with self._moved:
            self._leave = queries.follow(self._apply)
            now = queries.now()
            self._version = now.version
            self._floor = self.version
            for each in now.objects.values():
                self._of(each.key)[_place(each.key)] = each

    @property
    def version(self) -> int:
        """Everything up to here is known, and nothing after it."""
        with self._moved:
            return object_version(self._version + 1, 0) - 1

    def close(self) -> None:
        """Follow no longer."""
        self._leave()

    def find(self, kind: Kind, namespace: str, name: str) -> KeptObject | None:
        """The object as it is kept."""
        with self._moved:
            return self._kept.get(kind.shelf, {}).get((namespace, name))

    def get(self, kind: Kind, namespace: str, name: str) -> JsonObject | None:
        """The object of that name."""
        found = self.find(kind, namespace, name)
        return None if found is None else self._read(found)

    def read(self, kept: KeptObject) -> JsonObject:
        """A kept object as clients see it."""
        return self._read(kept)

    def kept(self, kind: Kind, namespace: str = "") -> tuple[int, list[KeptObject]]:
        """All of a kind, or those of a namespace, by namespace and name; and as of when."""
        with self._moved:
            found = self._kept.get(kind.shelf, {})
            places = sorted(place for place in found if not namespace or place[0] == namespace)
            return self.version, [found[place] for place in places]

    def objects(self, kind: Kind, namespace: str = "") -> list[JsonObject]:
        """The same, as clients see them."""
        return [self._read(each) for each in self.kept(kind, namespace)[1]]

    def every(self) -> list[KeptObject]:
        """Everything that is kept, of whatever kind."""
        with self._moved:
            return [each for found in self._kept.values() for each in found.values()]

    def wait_for(self, version: int) -> None:
        """Until this version is known; StatusError if it does not come soon."""
        with self._moved:
            if self._moved.wait_for(lambda: self.version >= version, FUTURE_PATIENCE_S):
                return
        raise too_large(version, self.version)

    def follow(
        self, resource: Resource, version: int | None, listener: Listener
    ) -> tuple[int, list[Change], Callable[[], None]]:
        """Changes of a resource after a version, and all that come; None begins with now.

        Gives the version up to which the first ones go, and what ends it.
        StatusError: that version is too long ago.
        """
        with self._moved:
            missed = [] if version is None else self._since(resource, version)
            self._listeners.append(listener)
            return self.version, missed, lambda: self._end(listener)

    def follow_all(self, listener: Listener) -> Callable[[], None]:
        """All changes of all resources from now on; calling the result ends it."""
        with self._moved:
            self._listeners.append(listener)
        return lambda: self._end(listener)

    def demand_recent(self, version: int) -> None:
        """StatusError: that version is too long ago."""
        with self._moved:
            if version < self._floor:
                raise too_old(version, self._floor)

    def _since(self, resource: Resource, version: int) -> list[Change]:
        if version < self._floor:
            raise too_old(version, self._floor)
        first = bisect_right(self._changes, version, key=lambda each: each.version)
        recent = (self._changes[place] for place in range(first, len(self._changes)))
        return [each for each in recent if each.resource == resource]

    def _end(self, listener: Listener) -> None:
        with self._moved:
            if listener in self._listeners:
                self._listeners.remove(listener)

    def _of(self, key: ObjectKey) -> dict[tuple[str, str], KeptObject]:
        return self._kept.setdefault((key.group, key.resource), {})

    def _apply(self, batch: Batch, _: tuple[JobChange, ...]) -> None:
        with self._moved:
            if batch.version <= self._version:
                return
            changes = tuple(self._changed((*batch.objects, *batch.removed)))
            self._version = batch.version
            self._changes.extend(changes)
            while len(self._changes) > CHANGES_KEPT:
                self._floor = self._changes.popleft().version
            self._moved.notify_all()
            # Whoever knows a version afterwards knows that its changes were passed on.
            for each in tuple(self._listeners) if changes else ():
                each(changes)

    def _changed(self, news: Iterable[KeptObject | RemovedObject]) -> Iterable[Change]:
        """In the order of their versions; what is known already is no news."""
        for each in sorted(news, key=lambda one: one.version):
            found, place = self._of(each.key), _place(each.key)
            before = found.get(place)
            if isinstance(each, RemovedObject):
                if before is not None:
                    del found[place]
                    yield Change(each.version, before, None, self._read)
            elif before is None or before.version != each.version:
                found[place] = each
                yield from self._replaced(before, each)

    def _replaced(self, before: KeptObject | None, after: KeptObject) -> Iterable[Change]:
        """Who followed in one step may have missed that it went and came again."""
        if before is not None and uid_of(self._read(before)) != uid_of(self._read(after)):
            yield Change(after.version, before, None, self._read)
            before = None
        yield Change(after.version, before, after, self._read)


def _place(key: ObjectKey) -> tuple[str, str]:
    return key.namespace, key.name


def _present(before: KeptObject | None, after: KeptObject | None) -> KeptObject:
    found = after or before
    if found is None:
        raise ValueError("a change is of something")
    return found


def too_old(version: int, floor: int) -> StatusError:
    """What happened since then is not known any more."""
    return StatusError(Reason.EXPIRED, f"too old resource version: {version} ({floor})")


def too_large(version: int, current: int) -> StatusError:
    """That version is not there yet."""
    cause = Cause(
        reason=CauseReason.RESOURCE_VERSION_TOO_LARGE, message="Too large resource version"
    )
    return StatusError(
        Reason.TIMEOUT,
        f"Timeout: Too large resource version: {version}, current: {current}",
        details={"causes": [cause_json(cause)], "retryAfterSeconds": 1},
    )
