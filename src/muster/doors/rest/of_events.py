"""Routes about what happens: pages of the log, and the stream of it."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Iterable

import msgspec

from muster.api.pages import EventPage
from muster.doors.request.bad import MOST_INTEGER, bounded, integer
from muster.doors.rest.hub import TooSlowError
from muster.doors.rest.operation import Asked, Flow, Operation, Parameter
from muster.doors.rest.show_site import event_document, named_in
from muster.model.errors import UnknownError
from muster.model.event import JobSubmitted, JobUpdated
from muster.model.queue import is_within
from muster.model.value import JobId, QueuePath, UserName
from muster.model.words import Labels
from muster.stores.base import EventQuery, Stored

HEARTBEAT_S = 15.0
HEARTBEAT = b": still here\n\n"
MOST_ON_A_PAGE = 1_000
MOST_AT_ONCE = 50

_encode = msgspec.json.Encoder().encode

Wish = Callable[[Stored], bool]


async def _page(asked: Asked) -> EventPage:
    return await _read(asked, None)


async def _of_job(asked: Asked) -> EventPage:
    await asked.read(asked.queries.jobs.detail, asked.caller, asked.job)
    return await _read(asked, asked.job)


async def _read(asked: Asked, job: JobId | None) -> EventPage:
    after = asked.number("after", 0)
    limit = asked.number("limit", MOST_ON_A_PAGE, least=1, most=MOST_ON_A_PAGE)
    query = EventQuery(after=after, job=job, limit=limit)
    return await asked.read(_event_page, asked, query)


def _event_page(asked: Asked, query: EventQuery) -> EventPage:
    found = asked.queries.history.events(asked.caller, query)
    last = found[-1].number if found else query.after
    labels = asked.queries.jobs.labels.found(named_in(found))
    return EventPage(events=tuple(event_document(each, labels) for each in found), next=last)


async def _stream(asked: Asked) -> Flow:
    wish = _EventFilter(asked)
    header = asked.headers.get(b"last-event-id")
    after = asked.text("after") if header is None else header.decode("latin-1")
    last = None if after is None else bounded("after", integer("after", after), 0, MOST_INTEGER)
    # Asked once before anything is sent, so that a caller who may not look is refused.
    await asked.read(asked.queries.history.events, asked.caller, EventQuery(limit=1))
    lost = asyncio.Event()
    parts = _parts(asked, wish, last, lost)
    # When the client sees the first part, everything that happens is already noted for it.
    first = await anext(parts)
    headers = {"x-accel-buffering": "no"}
    return Flow(parts=parts, media="text/event-stream", first=first, hopeless=lost, headers=headers)


async def _parts(
    asked: Asked, wish: "_EventFilter", last: int | None, lost: asyncio.Event
) -> AsyncGenerator[bytes]:
    """First from the log what was missed, then what happens; what is in both only once."""
    with asked.door.hub.listening(lost) as listener:
        yield HEARTBEAT
        sent = last or 0
        if last is not None:
            while page := await asked.read(_logged, asked, wish.job, sent):
                sent = page[-1].number
                yield await asked.read(_encoded, page, wish)
        try:
            while True:
                events = await listener.take(HEARTBEAT_S)
                new = tuple(each for each in events if each.number > sent)
                yield await _encoded_now(asked, new, wish) or HEARTBEAT
        except TooSlowError:
            return


def _logged(asked: Asked, job: JobId | None, after: int) -> tuple[Stored, ...]:
    query = EventQuery(after=after, job=job, limit=MOST_ON_A_PAGE)
    return asked.queries.history.events(asked.caller, query)


async def _encoded_now(asked: Asked, events: tuple[Stored, ...], wish: "_EventFilter") -> bytes:
    """A few are written at once; many, or those to be looked up, while others are answered."""
    if wish.looks_up or len(events) > MOST_AT_ONCE:
        return await asked.read(_encoded, events, wish)
    return _encoded(events, wish)


def _encoded(events: tuple[Stored, ...], wish: "_EventFilter") -> bytes:
    wanted = [(each, shown) for each, shown in wish.seen(events) if wish.is_for(shown)]
    labels = wish.labels(shown for _, shown in wanted)

    def written(stored: Stored) -> bytes:
        return _written(stored, labels)

    # What is not shown to all is written for this client alone.
    return b"".join(
        [
            wish.hub.written(each, written) if shown is each else written(shown)
            for each, shown in wanted
        ]
    )


def _written(stored: Stored, labels: Labels) -> bytes:
    document = event_document(stored, labels)
    return b"id: %d\nevent: %b\ndata: %b\n\n" % (
        stored.number,
        document.kind.encode(),
        _encode(document),
    )


class _EventFilter:
    """Which events a client wants: those of a job, of a user's jobs, of a queue's jobs."""

    def __init__(self, asked: Asked) -> None:
        job = asked.text("job")
        self.job = None if job is None else JobId(integer("job", job))
        self._user = asked.text("user")
        self._queue = asked.text("queue")
        self.hub = asked.door.hub
        self._asked = asked
        self._known: dict[JobId, tuple[UserName, QueuePath]] = {}

    @property
    def looks_up(self) -> bool:
        """Must the database be asked whose job an event is about?"""
        is_clear = self._asked.queries.jobs.sight(self._asked.caller).is_clear
        return self._chooses or not is_clear

    @property
    def _chooses(self) -> bool:
        return self._user is not None or self._queue is not None

    def seen(self, events: tuple[Stored, ...]) -> Iterable[tuple[Stored, Stored]]:
        """Each event, and what the client may see of it."""
        shown = self._asked.queries.history.seen(self._asked.caller, events)
        return zip(events, shown, strict=True)

    def labels(self, events: Iterable[Stored]) -> Labels:
        """What the jobs of these events are called; nothing is looked up for it."""
        return self._asked.queries.jobs.labels.known(named_in(tuple(events)))

    def is_for(self, stored: Stored) -> bool:
        """Whether this one is wanted."""
        job: JobId | None = getattr(stored.event, "job", None)
        if self.job is not None and job != self.job:
            return False
        if not self._chooses:
            return True
        if job is None:
            return False
        if isinstance(stored.event, JobSubmitted | JobUpdated):
            spec = stored.event.spec
            self._remember(job, (spec.user, spec.queue))
        elif job not in self._known:
            self._remember(job, self._looked_up(job))
        user, queue = self._known[job]
        return (self._user is None or user == self._user) and (
            self._queue is None or is_within(queue, QueuePath(self._queue))
        )

    def _remember(self, job: JobId, owner: tuple[UserName, QueuePath]) -> None:
        if len(self._known) > 100_000:
            self._known.clear()
        self._known[job] = owner

    def _looked_up(self, job: JobId) -> tuple[UserName, QueuePath]:
        try:
            spec = self._asked.queries.jobs.detail(self._asked.caller, job).view.job.spec
        except UnknownError:
            return UserName(""), QueuePath("")
        return spec.user, spec.queue


PAGED = (
    Parameter(name="after", text="events after this number", kind="integer"),
    Parameter(name="limit", text="so many on a page", kind="integer"),
)

OPERATIONS = (
    Operation(
        method="GET",
        path="/v1/jobs/{id:int}/events",
        summary="Read what happened to a job",
        costly=True,
        answer=_of_job,
        gives=EventPage,
        parameters=PAGED,
    ),
    Operation(
        method="GET",
        path="/v1/events",
        summary="Read what happened, oldest first",
        costly=True,
        answer=_page,
        gives=EventPage,
        parameters=PAGED,
    ),
    Operation(
        method="GET",
        path="/v1/events/stream",
        summary="Follow events (server-sent events; `Last-Event-ID` continues where it was)",
        answer=_stream,
        parameters=(
            Parameter(name="after", text="begin in the log after this number", kind="integer"),
            Parameter(name="job", text="only this job", kind="integer"),
            Parameter(name="user", text="only jobs of this user"),
            Parameter(name="queue", text="only jobs of this queue and those below it"),
        ),
        media="text/event-stream",
    ),
)
