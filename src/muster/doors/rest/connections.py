"""How much of the server one peer may have: a user of this machine, or an address elsewhere.

A connection costs next to nothing until it asks for something. What is asked for at the same time
by one peer is bounded: what is more waits unread, and costs others nothing. So a thousand commands
of one user are all answered, eight at a time, and fewer while others ask as well.
"""

import resource
import time
from collections import deque
from collections.abc import Callable, Hashable

RESERVED = 512
"""Descriptors that connections never take: the store, the planner and the backends need theirs."""

MOST_OF_ONE_PEER = 1_000
REFUSED_AFTER_S = 2.0
"""So much later is told who has too many: who connects again at once does so seldom then."""

MOST_REFUSED_LATER = 1_000
"""So many wait for that; of more, each is told at once."""

ASKED_AT_ONCE = 8
"""So many requests of one user are worked on at once; of an address, from which several users may
come, four times as many."""

AMONG_OTHERS = 3
"""So many, while others ask as well: they would wait for all that is worked on."""

OTHERS_S = 1.0
"""So long ago others asked as well."""

STREAMS_OF_ONE_PEER = 256
"""So many answers that go on, and terminals."""

UID = "uid"


class Crowd:
    """Who asked last, and who did before them."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._last: Hashable = None
        self._last_s = self._others_s = -OTHERS_S

    def asks(self, who: Hashable) -> None:
        if who != self._last:
            self._last, self._others_s = who, self._last_s
        self._last_s = self._clock()

    def is_around(self, who: Hashable) -> bool:
        """Did somebody else ask lately?"""
        asked_s = self._others_s if who == self._last else self._last_s
        return self._clock() - asked_s < OTHERS_S


class Peer:
    """What one peer has of the server now."""

    def __init__(self, who: Hashable, at_once: int, crowd: Crowd) -> None:
        self.connections = 0
        self.streams = 0
        self._who = who
        self._alone = at_once
        self._crowd = crowd
        self._asked = 0
        self._waiting: deque[Callable[[], None]] = deque()

    def ask(self, begin: Callable[[], None]) -> bool:
        """Begin to work on a request now, or call `begin` when it may; whether it is now."""
        self._crowd.asks(self._who)
        if self._asked < self.at_once:
            self._asked += 1
            return True
        self._waiting.append(begin)
        return False

    @property
    def at_once(self) -> int:
        """So many of its requests may be worked on now."""
        among = self._alone * AMONG_OTHERS // ASKED_AT_ONCE
        return max(1, among) if self._crowd.is_around(self._who) else self._alone

    def give_up(self, begin: Callable[[], None]) -> None:
        """Who waited has left."""
        if begin in self._waiting:
            self._waiting.remove(begin)

    def done(self) -> None:
        """A request is answered: those that waited longest begin."""
        self._asked -= 1
        while self._waiting and self._asked < self.at_once:
            self._asked += 1
            self._waiting.popleft()()

    @property
    def is_idle(self) -> bool:
        """Has it nothing here, so that it can be forgotten?"""
        return not (self.connections or self.streams or self._asked or self._waiting)


class Connections:
    """All connections of one server process, by peer."""

    def __init__(
        self, most: int | None = None, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._most = room_for_connections() if most is None else most
        self._crowd = Crowd(clock)
        self._of: dict[Hashable, Peer] = {}
        self._count = 0
        self._refused = 0

    def enter(self, key: tuple[str, object]) -> Peer | None:
        """One more connection of this peer; None if it, or the server, has enough of them."""
        peer = self._of.get(key)
        if peer is None:
            at_once = ASKED_AT_ONCE if key[0] == UID else 4 * ASKED_AT_ONCE
            peer = Peer(key, at_once, self._crowd)
        # However few descriptors there are, one peer never has more than a quarter of them.
        most = min(MOST_OF_ONE_PEER, self._most // 4)
        if self._count + self._refused >= self._most or peer.connections >= most:
            return None
        self._of[key] = peer
        peer.connections += 1
        self._count += 1
        return peer

    def refuse_later(self) -> bool:
        """Keep one that may not enter for a while; False if there is no room for it either."""
        if self._refused >= min(MOST_REFUSED_LATER, (self._most - self._count) // 4):
            return False
        self._refused += 1
        return True

    def refused(self) -> None:
        """One that was kept is told, or has left."""
        self._refused -= 1

    def leave(self, key: tuple[str, object]) -> None:
        """A connection has ended."""
        peer = self._of.get(key)
        if peer is None:
            return
        peer.connections -= 1
        self._count -= 1
        if peer.is_idle:
            del self._of[key]


def room_for_connections() -> int:
    """As many as the system lets this process have, less what is reserved."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < hard:
        # What jobs inherit is not changed by this: the spawner was given its own.
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return max(64, hard - RESERVED)
