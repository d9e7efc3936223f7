"""Two processes never act by one Lease, whatever is late or lost, and however clocks are set."""

from datetime import UTC, datetime
from enum import StrEnum
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from muster.backends.kubernetes.lease import (
    Standing,
    came_to_rest,
    claim,
    heard,
    is_ours,
    is_overdue,
    lease_of,
    may_act,
    may_ask,
    release,
    won,
)
from muster.model.value import Instant

Json = dict[str, Any]

WALL = datetime(2026, 1, 1, tzinfo=UTC)
PROCESSES = st.integers(0, 1)


class Server:
    """One Lease, as an API server keeps it: a change names the version that it is made to."""

    def __init__(self) -> None:
        self.lease: Json | None = None
        self._version = 0

    def takes(self, body: Json) -> bool:
        there = None if self.lease is None else self.lease["metadata"]["resourceVersion"]
        about: Json = body.get("metadata") or {}
        if about.get("resourceVersion") != there:
            return False
        self._version += 1
        before: Json = {} if self.lease is None else self.lease["spec"]
        self.lease = {
            "metadata": {"resourceVersion": str(self._version)},
            "spec": before | body["spec"],
        }
        return True


class Way(StrEnum):
    """What becomes of a question and of its answer."""

    AT_ONCE = "at once"
    LATE_ANSWER = "late answer"
    LOST_ANSWER = "lost answer"
    LATE_QUESTION = "late question"


class Ending(StrEnum):
    """Most of the time it does not end: what takes long must be seen too."""

    KILLED = "killed"
    RESTS = "rests"
    GIVES_BACK = "gives back"
    NOT_YET = "not yet"
    NOT_NOW = "not now"
    NOT_AT_ALL = "not at all"


class Process:
    """One that wants to lead, with a clock of its own and at most one question under way.

    acts: it was told that it leads, and has not come to rest.
    """

    def __init__(self, name: str, offset: int) -> None:
        self.standing = Standing(me=name)
        self.offset = offset
        self.acts = False
        self.asked: Json | None = None
        self.asked_at = Instant(0)
        self.answer: Json | None = None


class Leases(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self._now = 1_000_000
        self._server = Server()
        self._born = 0
        self._processes: list[Process] = []

    @initialize(offsets=st.tuples(*[st.integers(-900_000, 900_000)] * 2))
    def begin(self, offsets: tuple[int, int]) -> None:
        self._processes = [self._newborn(each) for each in offsets]
        self.asks(0, Way.AT_ONCE)
        self.looks(1)

    @rule(
        passed=st.sampled_from((1_000, 3_000, 5_000, 9_000, 12_000, 15_500)),
        then=st.sampled_from(Way),
    )
    def time_passes(self, passed: int, then: Way) -> None:
        """Whoever is overdue is ended before anything else; who does not lead soon asks again."""
        self._now += passed
        for at, each in enumerate(self._processes):
            if each.acts and is_overdue(each.standing, self._clock(each)):
                self._processes[at] = self._newborn(each.offset)
        for at, each in enumerate(self._processes):
            if not each.acts and then is not Way.LATE_QUESTION:
                self.asks(at, then)

    @rule(at=PROCESSES)
    def looks(self, at: int) -> None:
        each, found = self._processes[at], self._server.lease
        lease = None if found is None else lease_of(found)
        each.standing = heard(each.standing, lease, self._clock(each))
        self._is_told(each)

    @rule(at=PROCESSES, way=st.sampled_from(Way))
    def asks(self, at: int, way: Way) -> None:
        each = self._processes[at]
        if not is_ours(each.standing):
            self.looks(at)
        lost = each.acts and not is_ours(each.standing)
        if each.asked or each.answer or lost or not may_ask(each.standing, self._clock(each)):
            return
        each.asked, each.asked_at = claim(each.standing, WALL), self._clock(each)
        if way is not Way.LATE_QUESTION:
            self.is_served(at)
        if way is Way.LOST_ANSWER:
            each.answer = None
        if way is Way.AT_ONCE:
            self.is_answered(at)

    @rule(at=PROCESSES)
    def is_served(self, at: int) -> None:
        each = self._processes[at]
        if each.asked is not None:
            each.answer = self._server.lease if self._server.takes(each.asked) else None
            each.asked = None
            # The sooner it sees that, the sooner it may ask itself.
            self.looks(1 - at)

    @rule(at=PROCESSES)
    def is_answered(self, at: int) -> None:
        each = self._processes[at]
        if each.answer is not None:
            lease, each.answer = lease_of(each.answer), None
            each.standing = won(each.standing, lease, each.asked_at, self._clock(each))
            self._is_told(each)

    @rule(at=PROCESSES, ending=st.sampled_from(Ending))
    def ends(self, at: int, ending: Ending) -> None:
        each = self._processes[at]
        if ending is Ending.KILLED:
            self._processes[at] = self._newborn(each.offset)
        if ending not in {Ending.RESTS, Ending.GIVES_BACK} or each.asked or each.answer:
            return
        body = release(each.standing, WALL) if ending is Ending.GIVES_BACK else None
        each.acts = False
        each.standing = came_to_rest(each.standing)
        if body is not None:
            self._server.takes(body)
            self.looks(at)

    @invariant()
    def at_most_one_acts(self) -> None:
        assert sum(each.acts for each in self._processes) <= 1

    @invariant()
    def whoever_may_act_holds_it(self) -> None:
        holder = (
            None if self._server.lease is None else self._server.lease["spec"]["holderIdentity"]
        )
        able = [each for each in self._processes if may_act(each.standing, self._clock(each))]
        assert {each.standing.me for each in able} <= {holder}

    def _is_told(self, each: Process) -> None:
        each.acts = each.acts or may_act(each.standing, self._clock(each))

    def _newborn(self, offset: int) -> Process:
        self._born += 1
        return Process(f"process-{self._born}", offset)

    def _clock(self, each: Process) -> Instant:
        return Instant(self._now + each.offset)


TestLeases = Leases.TestCase
TestLeases.settings = settings(
    max_examples=max(300, settings().max_examples), stateful_step_count=20
)
