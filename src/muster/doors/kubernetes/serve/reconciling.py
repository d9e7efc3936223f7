"""Runs the controllers while this process leads: what changed is looked at, and acted upon."""

import logging
from collections import deque
from collections.abc import Callable
from enum import Enum

from muster.controller.use_cases.objects import ObjectChangedError
from muster.controller.world.transaction import Transaction
from muster.doors.kubernetes.controllers.changes import Change as Wanted
from muster.doors.kubernetes.controllers.changes import (
    Create,
    Delete,
    Emit,
    Outcome,
    Update,
    UpdateStatus,
)
from muster.doors.kubernetes.controllers.cluster import Objects
from muster.doors.kubernetes.controllers.work import Item, Surroundings, WorkSet, controllers
from muster.doors.kubernetes.objects.errors import Reason, StatusError
from muster.doors.kubernetes.objects.kinds import NAMESPACE
from muster.doors.kubernetes.objects.value import (
    JsonObject,
    name_of,
    namespace_of,
    uid_of,
)
from muster.doors.kubernetes.serve.access import ITSELF
from muster.doors.kubernetes.serve.call import Target, Writing
from muster.doors.kubernetes.serve.deleting import Deleter, Deletion
from muster.doors.kubernetes.serve.leading import LeaderThread
from muster.doors.kubernetes.serve.recording import Recorder
from muster.doors.kubernetes.serve.sealing import Sealing
from muster.doors.kubernetes.serve.served import ServedKinds
from muster.doors.kubernetes.serve.together import Together
from muster.doors.kubernetes.serve.view import Change, ObjectView
from muster.doors.kubernetes.serve.writing import (
    Author,
    Commit,
    Entry,
    ObjectWriter,
    Request,
    Say,
)
from muster.model.errors import MusterError
from muster.model.value import Instant, Value, replace

log = logging.getLogger("muster.kubernetes")

AGAIN_MS, LONGEST_AGAIN_MS = 500, 300_000
"""What is refused is tried again after a while, and then after twice as long, up to this."""

LONGEST_WAIT_S = 60.0

CONTROLLERS = Author(caller=ITSELF)


class Carried(Enum):
    """What became of an outcome."""

    OUT = "carried out"
    REFUSED = "refused, in part or as a whole, or not written: to be tried again"
    OVERTAKEN = "somebody else was quicker"


class Wires(Value):
    """What controllers see, and how they write.

    entry: looks at the pods that they create. say: who is asked before anything is written.
    """

    view: ObjectView
    kinds: ServedKinds
    sealing: Sealing
    commit: Commit
    clock: Callable[[], Instant]
    entry: Entry | None = None
    say: Say | None = None


class Reconciler:
    """One thread that works off what waits; those who change things only say that they did."""

    def __init__(
        self,
        wires: Wires,
        around: Surroundings,
    ) -> None:
        self._view = wires.view
        self._hands = Hands(wires)
        self._around = around
        self._clock = wires.clock
        self._failures: dict[Item, int] = {}
        self._thread = LeaderThread("controllers", self._run)
        self._changes: deque[Change] = deque()
        self._objects = Objects()
        self._work = WorkSet(controllers(around))

    def begin(self, transaction: Transaction) -> None:  # noqa: ARG002 - as companions are
        """This process leads from now on."""
        self._thread.begin()

    def rest(self) -> None:
        """Another process leads."""
        self._thread.rest()

    def close(self) -> None:
        """Finish what is under way, and stop."""
        self._thread.close()

    def _run(self) -> None:
        leave = self._look_around()
        try:
            while self._thread.goes_on(self._has_work, self._left_s()):
                try:
                    self._step()
                except MusterError as error:
                    log.warning("a controller was not heard: %s", error)
        finally:
            leave()

    def _has_work(self) -> bool:
        return bool(self._changes) or self._left_s() <= 0

    def _left_s(self) -> float:
        """Until something is due."""
        due = self._work.next_at()
        left_s = LONGEST_WAIT_S if due is None else max(0.0, (due - self._clock()) / 1_000)
        return min(left_s, LONGEST_WAIT_S)

    def _look_around(self) -> Callable[[], None]:
        """Begin with everything that there is; calling the result ends it."""
        self._objects = Objects()
        self._work = WorkSet(controllers(self._around))
        with self._thread.news:
            self._changes.clear()
        leave = self._view.follow_all(self._tell)
        for kept in self._view.every():
            self._objects.put(self._view.read(kept))
        for obj in self._objects.all():
            self._work.changed(obj, self._objects)
        return leave

    def _tell(self, changes: tuple[Change, ...]) -> None:
        """Called from the thread that commits."""
        with self._thread.news:
            self._changes.extend(changes)
            self._thread.news.notify()

    def _step(self) -> None:
        self._take_changes()
        item = self._work.take(self._clock())
        if item is not None:
            self._look_at(item)

    def _take_changes(self) -> None:
        while True:
            with self._thread.news:
                if not self._changes:
                    return
                change = self._changes.popleft()
            before, after = change.before, change.after
            if before is not None:
                self._work.changed(before, self._objects)
            if after is None:
                self._objects.remove(before)
            else:
                self._objects.put(after)
                self._work.changed(after, self._objects)

    def _look_at(self, item: Item) -> None:
        now = self._clock()
        obj = self._objects.by_uid(item.uid)
        if obj is None:
            return
        outcome = self._work.outcome(item, self._objects, now)
        if outcome is None:
            return
        if outcome.again_at is not None:
            self._work.look_again(item.controller, obj, outcome.again_at)
        match self._hands.carry_out(outcome, self._objects):
            case Carried.OUT:
                self._failures.pop(item, None)
            case Carried.OVERTAKEN:
                self._work.add(item.controller, obj)
            case Carried.REFUSED:
                tries = self._failures[item] = self._failures.get(item, 0) + 1
                wait = min(AGAIN_MS * 2 ** min(tries, 20), LONGEST_AGAIN_MS)
                self._work.look_again(item.controller, obj, Instant(now + wait))


class Hands:
    """Carries out what controllers want through the same writer as clients, in one commit."""

    def __init__(self, wires: Wires) -> None:
        self._together = Together(wires.view, wires.commit)
        self._writer = ObjectWriter(
            self._together, self._together.collect, wires.sealing, wires.clock
        )
        if wires.entry is not None:
            self._writer.entry = wires.entry.seeing(self._together)
        self._writer.say = wires.say
        self._deleter = Deleter(self._writer)
        self._recorder = Recorder(self._writer, wires.kinds)
        self._kinds = wires.kinds
        self._clock = wires.clock
        self._refused: dict[str, str] = {}

    def carry_out(self, outcome: Outcome, objects: Objects) -> Carried:
        """Make all changes, or none if somebody else was quicker.

        What is refused only when all is committed is left out the next time, and told about.
        """
        new = {name_of(each.object) for each in outcome.changes if isinstance(each, Create)}
        self._refused = {}
        while True:
            try:
                return self._commit(outcome, objects)
            except ObjectChangedError:
                return Carried.OVERTAKEN
            except StatusError as error:
                name = str((error.details or {}).get("name") or "")
                if name not in new - self._refused.keys():
                    log.warning("what a controller wants is refused: %s", error.message)
                    return Carried.REFUSED
                self._refused[name] = error.message
            except MusterError as error:
                log.warning("a controller was not heard: %s", error)
                return Carried.REFUSED

    def _commit(self, outcome: Outcome, objects: Objects) -> Carried:
        is_refused = False
        with self._together.one_commit(ITSELF):
            for change in outcome.changes:
                if not (is_refused and isinstance(change, Create)):
                    is_refused |= not self._make(change, objects)
        return Carried.REFUSED if is_refused else Carried.OUT

    def _make(self, change: Wanted, objects: Objects) -> bool:
        """Make one change; False if it is a creation that is refused."""
        try:
            match change:
                case Create():
                    return self._create(change, objects)
                case Update():
                    self._update(change.object, "", change.emitted)
                case UpdateStatus():
                    self._update(change.object, "status", None)
                case Delete():
                    self._delete(change)
                case Emit():
                    self._recorder.record(change)
        except StatusError as error:
            # What is gone needs no change any more.
            if error.reason is not Reason.NOT_FOUND:
                raise
        return True

    def _create(self, change: Create, objects: Objects) -> bool:
        owner = "" if change.refusal is None else uid_of(change.refusal.about)
        request = self._request(change.object, name="")
        why = self._refused.get(name_of(change.object))
        try:
            if why is None:
                self._writer.create(request, change.object)
        except StatusError as error:
            if error.reason is Reason.ALREADY_EXISTS:
                return True
            why = error.message
        if why is not None:
            objects.refuse(owner, why)
            if change.refusal is not None:
                text = f"{change.refusal.message}{why}"
                self._recorder.record(replace(change.refusal, message=text))
            return False
        objects.refuse(owner, None)
        self._say(change.emitted)
        return True

    def _update(self, obj: JsonObject, subresource: str, emitted: Emit | None) -> None:
        # What holds a namespace has a path of its own.
        is_finalizing = not subresource and self._kinds.of(obj) == NAMESPACE
        request = self._request(obj, subresource="finalize" if is_finalizing else subresource)
        self._writer.update(request, obj)
        self._say(emitted)

    def _delete(self, change: Delete) -> None:
        obj = change.object
        deletion = Deletion(grace_s=change.grace_s, propagation=change.propagation, uid=uid_of(obj))
        self._deleter.delete(self._request(obj), deletion, self._clock())
        self._say(change.emitted)

    def _say(self, emitted: Emit | None) -> None:
        if emitted is not None:
            self._recorder.record(emitted)

    def _request(
        self, obj: JsonObject, *, name: str | None = None, subresource: str = ""
    ) -> Request:
        kind = self._kinds.of(obj)
        target = Target(
            kind=kind,
            namespace=namespace_of(obj),
            name=name_of(obj) if name is None else name,
            subresource=subresource,
        )
        return Request(
            target=target,
            writing=Writing(manager="muster-controllers", is_whole=True),
            author=CONTROLLERS,
            blueprint=self._kinds.blueprint(kind),
        )
