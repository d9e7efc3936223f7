"""Sends what happens to everybody who listens; a listener that is too slow is dropped."""

import asyncio
from collections import deque
from collections.abc import Callable, Generator
from contextlib import contextmanager

from muster.stores.base import Stored

MOST_WAITING = 10_000
"""So many events may wait for one listener; the log has them, so that one can come back later."""

MOST_WRITTEN = 1_000

Follow = Callable[[Callable[[tuple[Stored, ...]], None]], Callable[[], None]]


class TooSlowError(Exception):
    """The listener did not keep up; it must begin again from the log."""


class Listener:
    """Events for one client, in order, until it falls too far behind: then `lost` is set."""

    def __init__(self, lost: asyncio.Event) -> None:
        self._waiting: deque[Stored] = deque()
        self._more = asyncio.Event()
        self._lost = lost

    def tell(self, events: tuple[Stored, ...]) -> None:
        """Some more; called on the loop."""
        if len(self._waiting) + len(events) > MOST_WAITING:
            self._lost.set()
            self._waiting.clear()
        if not self._lost.is_set():
            self._waiting.extend(events)
        self._more.set()

    async def take(self, patience_s: float) -> tuple[Stored, ...]:
        """What came since the last call; nothing if nothing comes for so long."""
        if not self._waiting and not self._lost.is_set():
            self._more.clear()
            try:
                async with asyncio.timeout(patience_s):
                    await self._more.wait()
            except TimeoutError:
                return ()
        if self._lost.is_set():
            raise TooSlowError
        taken = tuple(self._waiting)
        self._waiting.clear()
        return taken


class Hub:
    """One subscription to the service, however many listen here.

    ending: set when the server ends, so that streams without an end do not delay it.
    """

    def __init__(self, follow: Follow) -> None:
        self.ending = asyncio.Event()
        self._follow = follow
        self._listeners: set[Listener] = set()
        self._leave: Callable[[], None] | None = None
        self._texts: dict[int, bytes] = {}

    def written(self, stored: Stored, write: Callable[[Stored], bytes]) -> bytes:
        """An event as it is sent; written once for all who get it at about the same time."""
        text = self._texts.get(stored.number)
        if text is None:
            if len(self._texts) >= MOST_WRITTEN:
                self._texts.clear()
            text = self._texts[stored.number] = write(stored)
        return text

    @contextmanager
    def listening(self, lost: asyncio.Event) -> Generator[Listener]:
        """Everything that happens from now on; `lost` is set when it is too much."""
        listener = Listener(lost)
        self._listeners.add(listener)
        if self._leave is None:
            loop = asyncio.get_running_loop()
            self._leave = self._follow(lambda events: self._deliver(loop, events))
        try:
            yield listener
        finally:
            self._listeners.discard(listener)
            if not self._listeners and self._leave is not None:
                self._leave()
                self._leave = None

    def end(self) -> None:
        """Let everybody go who listens; called on the loop."""
        self.ending.set()

    def _deliver(self, loop: asyncio.AbstractEventLoop, events: tuple[Stored, ...]) -> None:
        """Called from the thread that commits: it must not wait for anybody here."""
        if not loop.is_closed():
            loop.call_soon_threadsafe(self._tell, events)

    def _tell(self, events: tuple[Stored, ...]) -> None:
        for listener in self._listeners:
            listener.tell(events)
