"""Which refusals are written down: a few of each user, so that a flood of them fills no disk."""

import time
from collections import OrderedDict
from collections.abc import Callable
from threading import Lock

from muster.controller.messages import Caller
from muster.controller.use_cases.audit import shortened
from muster.model.history import AuditEntry
from muster.model.value import Instant, UserName

SAME_S = 1.0
"""The same refusal of the same user within so long is one: doors and commands both notice it."""

AT_ONCE = 20
"""So many refusals of one user are written down one after the other ..."""

EVERY_S = 60.0
"""... and after that one in so long, which says how many there were."""

MOST_USERS = 10_000


class _Allowance:
    """What is left of one user's entries, and how many refusals were not written down."""

    def __init__(self, now_s: float) -> None:
        self.left = float(AT_ONCE)
        self.since_s = now_s
        self.unwritten = 0
        self.last: tuple[str, float] = ("", 0.0)


class Refusals:
    """Counts refusals by user."""

    def __init__(self, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._monotonic = monotonic
        self._lock = Lock()
        self._of: OrderedDict[UserName, _Allowance] = OrderedDict()

    def entry(
        self, caller: Caller, action: str, why: str
    ) -> Callable[[Instant], AuditEntry] | None:
        """What to write down; None if this user's refusals have had enough room."""
        with self._lock:
            unwritten = self._taken(caller.user, why)
        if unwritten is None:
            return None
        more = f" ({unwritten} more since the last entry)" if unwritten else ""

        def made(at: Instant) -> AuditEntry:
            return AuditEntry(
                at=at,
                user=caller.user,
                door=caller.door,
                action="refused",
                subject=action,
                detail=shortened(why + more),
                token=None if caller.token is None else caller.token.id,
            )

        return made

    def _taken(self, user: UserName, why: str) -> int | None:
        """Take one entry; how many refusals were left out before it, or None if there is none."""
        now_s = self._monotonic()
        known = self._of.pop(user, None) or _Allowance(now_s)
        self._of[user] = known
        if len(self._of) > MOST_USERS:
            self._of.popitem(last=False)
        known.left = min(float(AT_ONCE), known.left + (now_s - known.since_s) / EVERY_S)
        known.since_s = now_s
        was, at_s = known.last
        known.last = (why, now_s)
        if was == why and now_s - at_s < SAME_S:
            return None
        if known.left < 1:
            known.unwritten += 1
            return None
        known.left -= 1
        unwritten, known.unwritten = known.unwritten, 0
        return unwritten
