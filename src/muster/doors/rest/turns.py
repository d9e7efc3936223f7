"""Costly questions share out fairly: each user has a few at a time, and users take turns."""

import asyncio
from collections import Counter, OrderedDict, deque
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from muster.model.errors import BusyError
from muster.model.value import UserName

AT_ONCE = 4
"""So many costly questions are answered at once: more would only wait for each other."""

OF_ONE_USER = 2
MOST_WAITING = 1_000
"""So many questions of one user wait; more are sent away."""


class Turns:
    """Who is answered now, and who waits. Everything is called on the loop."""

    def __init__(self, at_once: int = AT_ONCE, of_one_user: int = OF_ONE_USER) -> None:
        self._free = at_once
        self._of_one_user = of_one_user
        self._answered = Counter[UserName]()
        self._waiting: OrderedDict[UserName, deque[asyncio.Future[None]]] = OrderedDict()

    @asynccontextmanager
    async def of(self, user: UserName) -> AsyncGenerator[None]:
        """While a costly question of this user is answered. BusyError: too many of them wait."""
        if self._free <= 0 or self._answered[user] >= self._of_one_user:
            await self._wait(user)
        else:
            self._begin(user)
        try:
            yield
        finally:
            self._end(user)

    async def _wait(self, user: UserName) -> None:
        queue = self._waiting.setdefault(user, deque())
        if len(queue) >= MOST_WAITING:
            raise BusyError(
                f"{MOST_WAITING} questions of {user} wait to be answered; ask again later"
            )
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        queue.append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self._end(user)
            elif turn in queue:
                queue.remove(turn)
            raise

    def _begin(self, user: UserName) -> None:
        self._free -= 1
        self._answered[user] += 1

    def _end(self, user: UserName) -> None:
        self._free += 1
        self._answered[user] -= 1
        if not self._answered[user]:
            del self._answered[user]
        self._start_next()

    def _start_next(self) -> None:
        """The user whose turn is longest ago comes first, and then goes to the end of the line."""
        for user in tuple(self._waiting):
            if self._free <= 0:
                return
            queue = self._waiting[user]
            while queue and queue[0].cancelled():
                queue.popleft()
            if not queue:
                del self._waiting[user]
            elif self._answered[user] < self._of_one_user:
                self._begin(user)
                queue.popleft().set_result(None)
                self._waiting.move_to_end(user)
