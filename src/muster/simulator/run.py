"""The same loop with a memory store, simulated backends and a clock that jumps to what comes next.

Nothing here decides anything: `controller.use_cases.submission` takes requests in, plans are made
and committed by `controller.loop.cycle`, and `controller.loop.triggers` says when, as live.
"""

import gc
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from contextlib import contextmanager

from muster.backends.simulated.backend import SimulatedBackend
from muster.controller.loop.cycle import BackendDriver, Parts, decide
from muster.controller.loop.triggers import HEARTBEAT_MS, PlanTriggers
from muster.controller.messages import Caller, Receipt
from muster.controller.planner.client import InlinePlanner, PlannerClient
from muster.controller.use_cases.submission import NodeKinds, Submission
from muster.controller.world.journal import Command, Journal, Listener
from muster.controller.world.record import Record
from muster.controller.world.transaction import Change
from muster.model.errors import RefusedError
from muster.model.event import SiteChanged
from muster.model.history import Finished
from muster.model.job import JobSpec
from muster.model.plan import Plan
from muster.model.site import Site
from muster.model.value import ClusterName, Duration, Instant, JobId, UserName, Value
from muster.stores.base import Batch, LiveState
from muster.stores.memory import MemoryStore

EPOCH = Instant(0)
NEW_BEFORE_COLLECTION = 100_000
"""The garbage collector runs after this many new objects."""

RARELY = (50, 100)
"""After so many such looks what is older is looked at, and after so many of these everything."""

SIMULATOR = Caller(user=UserName("simulator"), door="simulator", root=True)


class Arrival(Value):
    """A request that comes at an instant; an array, if there are indices."""

    at: Instant
    spec: JobSpec
    indices: tuple[int, ...] = ()
    at_once: int | None = None
    held: bool = False


Refused = Callable[[Arrival, RefusedError], None]
"""Called with a request that is refused."""

Pause = Callable[[Instant], Duration]
"""For how long after a plan at this instant no other is made, whatever happens."""


def never() -> bool:
    """It is never enough."""
    return False


def no_pause(_: Instant) -> Duration:
    """Plans are made whenever there is a reason."""
    return Duration(0)


class Beginning(Value):
    """What is there when a simulation begins: nothing but what its backends have, or a live state.

    finished: how jobs came out that others in the state depend on.
    """

    state: LiveState = LiveState()
    finished: Mapping[JobId, Finished] = {}


FROM_NOTHING = Beginning()


class Simulation:
    """One installation in pretend time.

    beginning: jobs that hold something in it must go on in the backends; see their `carry_on`.
    pause: may be set to make fewer plans, where starts need not be exact.
    """

    def __init__(
        self,
        site: Site,
        backends: Mapping[ClusterName, SimulatedBackend],
        *,
        now: Instant = EPOCH,
        planner: PlannerClient | None = None,
        beginning: Beginning = FROM_NOTHING,
    ) -> None:
        self.now = now
        store = MemoryStore(beginning.state)
        record = Record(beginning.state, beginning.finished, site)
        self.journal = Journal(store, record, self._clock)
        self.record = self.journal.record
        self.parts = Parts(
            store=store,
            history=store,
            record=self.record,
            write=self.journal.write,
            planner=planner or InlinePlanner(),
            backends=backends,
        )
        self.plan: Plan | None = None
        self.pause: Pause = no_pause
        self._backends = backends
        self._driver = BackendDriver(self.parts)
        self._triggers = PlanTriggers(self.record)
        self._kinds = NodeKinds()
        self._is_reason = False
        self._planned_at = now
        self._plan_from = now
        self._triggers.look_around(now)
        self.journal.subscribers.add(self._note)
        self.write(
            lambda transaction: transaction.apply(SiteChanged(at=now, site=site, by=SIMULATOR.user))
        )
        self._driver.tend(now)

    def watch(self, listener: Listener) -> None:
        """Tell this one of everything that is committed."""
        self.journal.subscribers.add(listener)

    def write(self, command: Command[object]) -> object:
        """Change something now."""
        return self.journal.write(command).result()

    def submit(self, arrival: Arrival) -> Receipt:
        """A request comes in now; RefusedError if it is refused."""
        entry = Submission(
            caller=SIMULATOR,
            spec=arrival.spec,
            kinds=self._kinds,
            indices=arrival.indices,
            at_once=arrival.at_once,
            held=arrival.held,
        )
        return self.journal.write(entry.enter).result()

    def run(
        self,
        arrivals: "Iterable[Arrival] | Coming" = (),
        until: Instant | None = None,
        refused: Refused | None = None,
        is_enough: Callable[[], bool] = never,
    ) -> None:
        """Let everything happen, up to an instant, until it is enough or until nothing more will.

        refused: called with refused requests; without it, RefusedError ends the run.
        To go on later where it was enough, hand over the same `Coming` again.
        """
        with rare_collections():
            coming = arrivals if isinstance(arrivals, Coming) else Coming(arrivals)
            self.turn()
            while (at := self._next_at(coming)) is not None:
                if is_enough():
                    return
                if until is not None and at > until:
                    break
                self.now = max(self.now, at)
                self._submit_due(coming, refused)
                self.turn()
            if until is not None:
                self.now = max(self.now, until)

    def turn(self) -> None:
        """Hear, plan if there is a reason, act; once."""
        self._driver.tend(self.now)
        if self._has_reason():
            self._is_reason = False
            self._planned_at = self.now
            self._plan_from = Instant(self.now + self.pause(self.now))
            self.plan = decide(self.parts, self.now)
            self._driver.act()

    def _clock(self) -> Instant:
        return self.now

    def _note(self, batch: Batch, changes: tuple[Change, ...]) -> None:
        self._driver.note(batch, changes)
        self._is_reason |= self._triggers.note(batch, changes, self.now)

    def _has_reason(self) -> bool:
        rang = self._triggers.ring(self.now)
        late = self.now - self._planned_at > HEARTBEAT_MS
        self._is_reason |= rang or late
        return self._is_reason and bool(self.record.waiting) and self.now >= self._plan_from

    def _submit_due(self, coming: "Coming", refused: Refused | None) -> None:
        while coming.next_at is not None and coming.next_at <= self.now:
            arrival = coming.take()
            try:
                self.submit(arrival)
            except RefusedError as error:
                if refused is None:
                    raise
                refused(arrival, error)

    def _next_at(self, coming: "Coming") -> Instant | None:
        """When something happens next. A heartbeat alone is no reason to go on for ever."""
        found = [backend.next_at() for backend in self._backends.values()]
        found += [coming.next_at, self._triggers.next_at()]
        if self._is_reason and self.record.waiting and self._plan_from > self.now:
            found.append(self._plan_from)
        return min((each for each in found if each is not None), default=None)


@contextmanager
def rare_collections() -> Generator[None]:
    """What happens is kept, and hardly any of it is garbage: to look for it often is slow."""
    usual = gc.get_threshold()
    gc.set_threshold(NEW_BEFORE_COLLECTION, *RARELY)
    try:
        yield
    finally:
        _make_old()
        gc.set_threshold(*usual)


def _make_old() -> None:
    """All that there is counts as old, or it would be looked through as soon as looks are usual."""
    if not gc.get_freeze_count():
        gc.freeze()
        gc.unfreeze()


class Coming:
    """Requests in the order of their coming, the next one in sight."""

    def __init__(self, arrivals: Iterable[Arrival]) -> None:
        self._rest: Iterator[Arrival] = iter(arrivals)
        self._next = next(self._rest, None)

    @property
    def next_at(self) -> Instant | None:
        return None if self._next is None else self._next.at

    def take(self) -> Arrival:
        taken, self._next = self._next, next(self._rest, None)
        if taken is None:
            raise StopIteration
        return taken
