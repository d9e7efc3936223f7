"""Watches: what happens to objects, one line for each, until the time is up."""

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Callable, Iterator
from typing import TypeVar

from muster.doors.kubernetes.objects.errors import StatusError
from muster.doors.kubernetes.objects.hidden import shown
from muster.doors.kubernetes.objects.value import JsonObject
from muster.doors.kubernetes.serve.call import Listing, Target
from muster.doors.kubernetes.serve.form import Form, Shape, written
from muster.doors.kubernetes.serve.reading import Reader, Selection
from muster.doors.kubernetes.serve.rows import partial
from muster.doors.kubernetes.serve.view import Change, ObjectView
from muster.model.value import Value

T = TypeVar("T")

LONGEST_S = 3_600
BOOKMARK_S = 60.0
MOST_WAITING = 20_000
"""So many changes may wait for one client; one that is further behind must list again."""

END_OF_INITIAL = "k8s.io/initial-events-end"


class Wanted(Value):
    """What one watch is about."""

    target: Target
    listing: Listing
    form: Form
    include: str = ""

    @property
    def resource(self) -> tuple[str, str]:
        return self.target.kind.shelf


class _Inbox:
    """Changes for one client, put there from the loop."""

    def __init__(self) -> None:
        self.changes: deque[Change] = deque()
        self.more = asyncio.Event()
        self.is_lost = False

    def put(self, changes: tuple[Change, ...]) -> None:
        if len(self.changes) + len(changes) > MOST_WAITING:
            self.is_lost = True
        else:
            self.changes.extend(changes)
        self.more.set()


class Watch:
    """One watch, from its first line to its last."""

    def __init__(self, wanted: Wanted, view: ObjectView, reader: Reader) -> None:
        self._wanted = wanted
        self._view = view
        self._reader = reader
        self._selection: Selection = reader.selection(wanted.target.kind, wanted.listing)
        self._takes_time = reader.takes_time(wanted.target.kind)
        self._is_first_table = True
        self._version = 0

    async def lines(self, ending: asyncio.Event) -> AsyncGenerator[bytes]:
        """Each event as a line of JSON. ending: set when the server ends."""
        loop = asyncio.get_running_loop()
        inbox = _Inbox()

        def tell(changes: tuple[Change, ...]) -> None:
            # Called from the thread that commits: it must not wait for anybody here.
            ours = tuple(each for each in changes if each.resource == self._wanted.resource)
            if ours and not loop.is_closed():
                loop.call_soon_threadsafe(inbox.put, ours)

        try:
            start, missed, leave = await self._apart(lambda: self._begin(tell))
        except StatusError as error:
            yield _line("ERROR", error.status())
            return
        # One task for the whole watch: to wait for two events each time costs more than a line.
        ended = asyncio.ensure_future(ending.wait())
        ended.add_done_callback(lambda _: inbox.more.set())
        try:
            async for line in self._follow(start, missed, inbox, ending):
                yield line
        finally:
            ended.cancel()
            leave()

    def _begin(
        self, tell: Callable[[tuple[Change, ...]], None]
    ) -> tuple[list[JsonObject], list[Change], Callable[[], None]]:
        """Objects to begin with, changes that came meanwhile, and how it ends."""
        listing, given = self._wanted.listing, self._wanted.listing.version
        begins_with_state = listing.initial or given in {"", "0"}
        if begins_with_state:
            self._version, missed, leave = self._view.follow(self._wanted.resource, None, tell)
            version, kept = self._view.kept(self._wanted.target.kind, self._wanted.target.namespace)
            # What was committed between the two is in both; the later look has it.
            self._version = max(self._version, version)
            name = self._wanted.target.name
            kind = self._wanted.target.kind
            named = [each for each in kept if name in {"", each.key.name}]
            objects = [self._reader.filled(each, kind) for each in named]
            return [each for each in objects if self._selection.holds(each)], missed, leave
        self._version = int(given)
        _, missed, leave = self._view.follow(self._wanted.resource, int(given), tell)
        return [], missed, leave

    async def _follow(
        self,
        start: list[JsonObject],
        missed: list[Change],
        inbox: _Inbox,
        ending: asyncio.Event,
    ) -> AsyncGenerator[bytes]:
        listing = self._wanted.listing
        for line in await self._apart(lambda: list(self._first_lines(start, missed))):
            yield line
        loop = asyncio.get_running_loop()
        ends_at = loop.time() + min(listing.timeout_s or LONGEST_S, LONGEST_S)
        marks_at = loop.time() + BOOKMARK_S
        while not ending.is_set() and not inbox.is_lost:
            for line in await self._apart(lambda: self._taken(inbox)):
                yield line
            left = ends_at - loop.time()
            if left <= 0:
                break
            inbox.more.clear()
            if not ending.is_set():
                await _waited(inbox.more, min(left, max(0.0, marks_at - loop.time())))
            if loop.time() >= marks_at:
                marks_at = loop.time() + BOOKMARK_S
                async for line in self._marked(inbox):
                    yield line
        if not inbox.is_lost:
            async for line in self._marked(inbox):
                yield line

    async def _apart(self, make: Callable[[], T]) -> T:
        """What it makes, in a thread of its own where a webhook is asked for that."""
        return await asyncio.to_thread(make) if self._takes_time else make()

    def _first_lines(self, start: list[JsonObject], missed: list[Change]) -> Iterator[bytes]:
        listing = self._wanted.listing
        for obj in start:
            yield self._event("ADDED", obj)
        if listing.initial and listing.bookmarks:
            yield self._bookmark(is_initial=True)
        for change in missed:
            yield from self._lines_of(change)

    def _taken(self, inbox: _Inbox) -> list[bytes]:
        lines: list[bytes] = []
        while inbox.changes:
            lines += self._lines_of(inbox.changes.popleft())
        return lines

    async def _marked(self, inbox: _Inbox) -> AsyncGenerator[bytes]:
        """A bookmark, after all that happened before it."""
        if not self._wanted.listing.bookmarks:
            return
        version = self._view.version
        # All that this version includes is on its way to the inbox: let it arrive.
        await asyncio.sleep(0)
        for line in await self._apart(lambda: self._taken(inbox)):
            yield line
        self._version = max(self._version, version)
        yield self._bookmark()

    def _lines_of(self, change: Change) -> list[bytes]:
        namespace = self._wanted.target.namespace
        if change.version <= self._version:
            return []
        self._version = change.version
        if namespace and change.key.namespace != namespace:
            return []
        name = self._wanted.target.name
        if name and change.key.name != name:
            return []
        kind = self._wanted.target.kind
        is_plain = kind.kept_as is None and not kind.is_custom
        shape = self._wanted.form.shape
        if is_plain and self._selection.is_everything and shape is Shape.OBJECT:
            return [_shared(change)]
        event, obj = self._seen(change)
        return [] if obj is None else [self._event(event, obj)]

    def _seen(self, change: Change) -> tuple[str, JsonObject | None]:
        """What happened, for somebody who only sees what is selected."""
        before, after = self._in_version(change.before), self._in_version(change.after)
        was = before is not None and self._selection.holds(before)
        now = after is not None and self._selection.holds(after)
        if now:
            return ("MODIFIED" if was else "ADDED"), after
        if not was:
            return "", None
        return "DELETED", after or before

    def _in_version(self, obj: JsonObject | None) -> JsonObject | None:
        return None if obj is None else self._reader.seen(obj, self._wanted.target.kind)

    def _event(self, event: str, obj: JsonObject) -> bytes:
        wanted = self._wanted
        match wanted.form.shape:
            case Shape.TABLE:
                table = self._reader.table([obj], wanted.target.kind, wanted.form, wanted.include)
                if not self._is_first_table:
                    table["columnDefinitions"] = None
                self._is_first_table = False
                return _line(event, table)
            case Shape.METADATA:
                return _line(event, partial(obj, wanted.form))
            case Shape.OBJECT | Shape.DISCOVERY:
                return _line(event, shown(obj))

    def _bookmark(self, *, is_initial: bool = False) -> bytes:
        """How far the client has come, without an object."""
        kind = self._wanted.target.kind
        marks: JsonObject = {"resourceVersion": str(self._version)}
        if is_initial:
            marks["annotations"] = {END_OF_INITIAL: "true"}
        obj: JsonObject = {"kind": kind.kind, "apiVersion": kind.api_version, "metadata": marks}
        if self._wanted.form.shape is Shape.TABLE:
            obj = {
                "kind": "Table",
                "apiVersion": "meta.k8s.io/v1",
                "metadata": marks,
                "columnDefinitions": None,
                "rows": [],
            }
        return _line("BOOKMARK", obj)


async def _waited(more: asyncio.Event, patience_s: float) -> None:
    """Until there is more, or patience ends."""
    try:
        async with asyncio.timeout(patience_s):
            await more.wait()
    except TimeoutError:
        return


def _shared(change: Change) -> bytes:
    """Written once, however many watch."""
    line = change.written.get("")
    if line is None:
        if change.after is None:
            event, obj = "DELETED", change.before
        else:
            event, obj = ("ADDED" if change.before is None else "MODIFIED"), change.after
        line = change.written[""] = _line(event, shown(obj or {}))
    return line


def _line(event: str, obj: JsonObject) -> bytes:
    return written({"type": event, "object": obj})
