"""The loop in real time: what wakes it, how often it plans, and which process leads."""

import logging
import time
from collections.abc import Callable, Mapping
from threading import Condition, Event, Thread
from typing import Protocol

from muster.controller.dates.dated import Dates, NoDates
from muster.controller.loop.counters import Counters
from muster.controller.loop.cycle import BackendDriver, Parts, decide
from muster.controller.loop.plan_times import PlanOutcome, PlanTimes
from muster.controller.loop.triggers import HEARTBEAT_MS, PlanTriggers
from muster.controller.messages import Caller
from muster.controller.use_cases.audit import audit
from muster.controller.world.journal import Clock, Journal
from muster.controller.world.transaction import Change, Transaction
from muster.model.errors import BadPlanError, MusterError, StaleSnapshotError
from muster.model.plan import Plan, Wait
from muster.model.value import Duration, Instant, JobId, UserName
from muster.stores.base import Batch, Leadership

log = logging.getLogger("muster.controller")

SLOW_LOOK_S = 5.0
"""Backends are looked at so often even if they say nothing."""

LEAD_LOOK_S = 1.0
"""So often a standby tries to lead, and a leader makes sure that it still does."""

LONGEST_PAUSE_S = 0.5
"""After a long plan others get their turn at the processor for so long at most."""

ITSELF = Caller(user=UserName("muster"), door="controller")

FORGET_EVERY_MS = Duration(600_000)
FORGET_AT_ONCE = 500


class LastPlan:
    """The last plan, as far as doors show it; written by the planning thread."""

    def __init__(self) -> None:
        self.waits: Mapping[JobId, Wait] = {}
        self.version = -1
        # How many plans there were.
        self.number = 0
        self.planned_at: Instant | None = None
        self.plan_ms = 0
        self.problem: str | None = None
        self._changed = Condition()

    def settle(self, plan: Plan, now: Instant, plan_ms: int) -> None:
        with self._changed:
            self.waits = plan.waits
            self.version = plan.snapshot_version
            self.number += 1
            self.planned_at = now
            self.plan_ms = plan_ms
            self.problem = None
            self._changed.notify_all()

    def wait_until(self, is_so: Callable[[], bool], timeout_s: float) -> bool:
        """Look again after every plan until it is so, or the time is over."""
        with self._changed:
            return self._changed.wait_for(is_so, timeout_s)


class Companion(Protocol):
    """Does something besides while this process leads, and only then."""

    def begin(self, transaction: Transaction) -> None:
        """A command: what is committed from here on is this process's to look after."""
        ...

    def rest(self) -> None:
        """This process leads no longer."""
        ...


class Controller:
    """Leads: two threads, one that listens and acts and one that plans.

    dates: may be set to where the dates of waiting jobs are.
    """

    def __init__(
        self, parts: Parts, journal: Journal, clock: Clock, leadership: Leadership
    ) -> None:
        self.parts = parts
        self.companions: list[Companion] = []
        self.last_plan = LastPlan()
        self.plan_times = PlanTimes()
        self.dates: Dates = NoDates()
        self.is_leading = False
        self._is_listening = False
        self._clock = clock
        self._leadership = leadership
        self._driver = BackendDriver(parts)
        self._triggers = PlanTriggers(parts.record)
        self._stopping = Event()
        self._to_tend = Event()
        self._to_plan = Event()
        self._threads = (
            Thread(target=self._tending, name="tending", daemon=True),
            Thread(target=self._planning, name="planning", daemon=True),
        )
        self.counters = Counters(clock())
        journal.subscribers.add(self.counters.note)
        journal.subscribers.add(self._note)

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """Stop leading; jobs run on."""
        self._stopping.set()
        self.wake()
        self._to_plan.set()
        for thread in self._threads:
            if thread.ident is not None:
                thread.join()
        self._rest()
        self._leadership.step_down()

    def wake(self) -> None:
        """A backend has something to report."""
        self._to_tend.set()

    def look(self) -> None:
        """Plan without committing: so a process that does not lead can say why jobs wait."""
        now, record = self._clock(), self.parts.record
        plan = self.parts.planner.plan(record.snapshot(now), record.site.policy)
        self.last_plan.settle(plan, now, 0)

    def _note(self, batch: Batch, changes: tuple[Change, ...]) -> None:
        if not self._is_listening:
            return
        if self._driver.note(batch, changes):
            self._to_tend.set()
        if self._triggers.note(batch, changes, self._clock()):
            self._to_plan.set()

    def _tending(self) -> None:
        while not self._stopping.is_set():
            self._guarded(self._lead)
            if not self.is_leading:
                self._stopping.wait(LEAD_LOOK_S)
                continue
            self._to_tend.clear()
            if self._guarded(lambda: self._driver.tend(self._clock())):
                self._to_tend.wait(SLOW_LOOK_S)

    def _lead(self) -> None:
        """Lead if nobody else does; taking over begins with finding out what runs."""
        may_lead = self._leadership.lead()
        if may_lead and not self.is_leading:
            # What is committed from here on is heard; nothing is planned before we know what runs.
            self._is_listening = True
            try:
                self._take_over()
            except BaseException:
                # Somebody else may be able to.
                self._rest()
                self._leadership.step_down()
                raise
            self.is_leading = True
            log.info("leading")
        elif self._is_listening and not may_lead:
            log.warning("another process leads now")
            self.is_leading = self._is_listening = False
            self._rest()
            self._leadership.step_down()

    def accompany(self, companion: Companion) -> None:
        """Begun at once if this process leads, or takes over: others were begun before."""
        self.companions.append(companion)
        if self._is_listening:
            self.parts.write(companion.begin).result()

    def _take_over(self) -> None:
        # A store takes this only from who knows all that was written, so that we do afterwards.
        self.parts.write(lambda transaction: audit(transaction, ITSELF, "lead", "site")).result()
        for each in self.companions:
            self.parts.write(each.begin).result()
        self._triggers.look_around(self._clock())
        self._driver.take_over(self._clock())
        self._to_plan.set()

    def _rest(self) -> None:
        for each in self.companions:
            each.rest()

    def _planning(self) -> None:
        forgotten_at = Instant(0)
        while not self._stopping.is_set():
            self._to_plan.wait(self._patience_s())
            now = self._clock()
            if self._stopping.is_set() or not self.is_leading:
                self._stopping.wait(0.05)
                continue
            if self._to_plan.is_set() or self._triggers.ring(now) or self._is_time(now):
                self._to_plan.clear()
                if not self._guarded(lambda: self._plan(self._clock())):
                    # Nothing else would set it again, and jobs would wait for ever.
                    self._to_plan.set()
            if now - forgotten_at > FORGET_EVERY_MS:
                forgotten_at = now
                self._guarded(self._forget)

    def _patience_s(self) -> float:
        next_at = self._triggers.next_at()
        if next_at is None:
            return LEAD_LOOK_S
        return min(LEAD_LOOK_S, max(0.0, (next_at - self._clock()) / 1_000))

    def _is_time(self, now: Instant) -> bool:
        planned_at = self.last_plan.planned_at
        return planned_at is None or (
            bool(self.last_plan.waits) and now - planned_at > HEARTBEAT_MS
        )

    def _plan(self, now: Instant) -> None:
        began = time.monotonic()
        if not self.parts.record.waiting:
            record = self.parts.record
            empty = Plan(snapshot_version=record.version, policy=record.site.policy)
            self.last_plan.settle(empty, now, 0)
            return
        try:
            plan = decide(self.parts, now)
        except BadPlanError as error:
            self.plan_times.made(PlanOutcome.REFUSED, time.monotonic() - began)
            self.last_plan.problem = f"the planner broke a rule and was stopped: {error}"
            raise
        except StaleSnapshotError:
            self.plan_times.made(PlanOutcome.STALE, time.monotonic() - began)
            raise
        took_s = time.monotonic() - began
        self.plan_times.made(PlanOutcome.COMMITTED, took_s)
        self.last_plan.settle(plan, now, int(took_s * 1_000))
        self.counters.planned(int(took_s * 1_000_000), len(plan.waits) + len(plan.moves))
        self._stopping.wait(min(LONGEST_PAUSE_S, took_s / 4))

    def _forget(self) -> None:
        keep = self.parts.record.site.keep_history
        if keep is None:
            return
        before = Instant(self._clock() - keep)
        while self.parts.history.forget(before, limit=FORGET_AT_ONCE):
            self._stopping.wait(0.01)

    def _guarded(self, act: Callable[[], object]) -> bool:
        """Whatever goes wrong is logged and tried again: the loop itself never ends by it."""
        try:
            act()
        except MusterError as error:
            log.warning("%s", error)
        except Exception:
            log.exception("a mistake in the controller")
        else:
            return True
        self._stopping.wait(LEAD_LOOK_S)
        return False
