"""The backlog of the last plan, as far as the planner had time to work it out."""

import logging
import time
from collections.abc import Callable
from threading import Event, Lock, Thread

from muster.controller.loop.controller import LastPlan
from muster.controller.planner.client import PlannerClient
from muster.model.errors import MusterError
from muster.model.plan import Backlog

FIRST_PATIENCE_S = 2.0
"""So long a list waits at most while no backlog is known at all."""

QUICK_S = 0.5
PAUSE = 10
"""A long backlog is asked for again only after ten times as long as it took."""

log = logging.getLogger("muster.queries")


class LatestBacklog:
    """Asks the planner once after each plan, when somebody wants to know, and keeps the answer.

    A planner that makes a long plan answers late, so lists do not depend on it: whoever has no
    time to wait gets the backlog of an earlier plan.
    """

    def __init__(
        self,
        last_plan: LastPlan,
        planner: PlannerClient,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._monotonic = monotonic
        self._last_plan = last_plan
        self._planner = planner
        self._lock = Lock()
        self._known: Backlog = {}
        # The number of the plan that the known backlog is of, and what is set when another comes.
        self._number = 0
        self._asking: Event | None = None
        # How long the last answer took, and when it came.
        self._took_s = 0.0
        self._answered_s = 0.0

    def get(self, patience_s: float, quick_s: float = QUICK_S) -> Backlog:
        """That of the last plan if it comes in time, else the latest one that is known.

        quick_s: a planner that takes longer than this is not asked after every plan.
        """
        if not self._last_plan.waits:
            return {}
        with self._lock:
            if self._number == self._last_plan.number or self._is_too_soon(quick_s):
                return self._known
            answered = self._asking or self._ask()
            is_first = not self._number
        answered.wait(max(patience_s, FIRST_PATIENCE_S) if is_first else patience_s)
        return self._known

    def _is_too_soon(self, quick_s: float) -> bool:
        """Was the planner asked a moment ago, and did that take long?"""
        if self._asking is not None or self._took_s < quick_s:
            return False
        return self._monotonic() < self._answered_s + PAUSE * self._took_s

    def _ask(self) -> Event:
        """In another thread, which nobody has to wait for."""
        self._asking = answered = Event()
        number = self._last_plan.number
        Thread(target=self._take, args=(number, answered), name="backlog", daemon=True).start()
        return answered

    def _take(self, number: int, answered: Event) -> None:
        found: Backlog | None = None
        began_s = self._monotonic()
        try:
            found = self._planner.backlog()
        except MusterError as error:
            # The planner's process ended, or planned on meanwhile: whoever asks next asks again.
            log.info("no_backlog", extra={"why": str(error)})
        finally:
            with self._lock:
                self._asking = None
                self._answered_s = self._monotonic()
                self._took_s = self._answered_s - began_s
                if found is not None:
                    self._known, self._number = found, number
            answered.set()
