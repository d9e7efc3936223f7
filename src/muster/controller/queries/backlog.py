"""The backlog of the last plan, as far as the planner had time to work it out."""

import logging
from threading import Event, Lock, Thread

from muster.controller.loop.controller import LastPlan
from muster.controller.planner.client import PlannerClient
from muster.model.errors import MusterError
from muster.model.plan import Backlog

FIRST_PATIENCE_S = 2.0
"""So long a list waits at most while no backlog is known at all."""

log = logging.getLogger("muster.queries")


class LatestBacklog:
    """Asks the planner once after each plan, when somebody wants to know, and keeps the answer.

    A planner that makes a long plan answers late, so lists do not depend on it: whoever has no
    time to wait gets the backlog of an earlier plan.
    """

    def __init__(self, last_plan: LastPlan, planner: PlannerClient) -> None:
        self._last_plan = last_plan
        self._planner = planner
        self._lock = Lock()
        self._known: Backlog = {}
        # The number of the plan that the known backlog is of, and what is set when another comes.
        self._number = 0
        self._asking: Event | None = None

    def get(self, patience_s: float) -> Backlog:
        """That of the last plan if it comes in time, else the latest one that is known."""
        if not self._last_plan.waits:
            return {}
        with self._lock:
            if self._number == self._last_plan.number:
                return self._known
            answered = self._asking or self._ask()
            is_first = not self._number
        answered.wait(max(patience_s, FIRST_PATIENCE_S) if is_first else patience_s)
        return self._known

    def _ask(self) -> Event:
        """In another thread, which nobody has to wait for."""
        self._asking = answered = Event()
        number = self._last_plan.number
        Thread(target=self._take, args=(number, answered), name="backlog", daemon=True).start()
        return answered

    def _take(self, number: int, answered: Event) -> None:
        found: Backlog | None = None
        try:
            found = self._planner.backlog()
        except MusterError as error:
            # The planner's process ended, or planned on meanwhile: whoever asks next asks again.
            log.info("no_backlog", extra={"why": str(error)})
        finally:
            with self._lock:
                self._asking = None
                if found is not None:
                    self._known, self._number = found, number
            answered.set()
