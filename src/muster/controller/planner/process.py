"""The planner in a process of its own, so that everything else stays quick while it plans.

The process keeps its own copy of the world and is sent what changed. If it dies, the next request
starts another one and sends it everything.
"""

import logging
import subprocess
import sys
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from socket import AF_UNIX, SOCK_STREAM, send_fds, socketpair
from threading import Lock
from typing import TypeVar

from muster.controller.planner.client import RehearsedPlans, World
from muster.controller.planner.protocol import (
    NOTHING_GIVEN,
    BacklogReply,
    BacklogRequest,
    ErrorReply,
    ExplanationReply,
    ExplanationRequest,
    PlanReply,
    PlanRequest,
    Question,
    Readable,
    ReadyReply,
    RehearsalReply,
    RehearsalRequest,
    Reply,
    WaitsReply,
    Wire,
    Writable,
    decode_reply,
    encode,
    given_by,
    read_frame,
    snapshot_delta,
    write_frame,
)
from muster.model.errors import BadPlanError, MusterError, OurBugError, UnknownError
from muster.model.explanation import Explanation
from muster.model.plan import Backlog, Plan, Prospect, Wait
from muster.model.policy import Policy
from muster.model.snapshot import Snapshot
from muster.model.value import Instant, JobId
from muster.model.versioned import VersionHistory

R = TypeVar("R", BacklogReply, ExplanationReply, RehearsalReply, PlanReply, ReadyReply)

NOTHING_YET = Snapshot(now=Instant(0))

SERVER = ("-m", "muster.controller.planner.server")

WORLDS_KEPT = 3
"""A copy of the process may know the last plan, the one before, or the one being made."""

log = logging.getLogger("muster.planner")


class ProcessPlanner:
    """Asks the planner's process: for one plan after the other, and anything else beside that.

    server: the arguments of the Python that is the planner's process.
    """

    def __init__(self, server: Sequence[str] = SERVER) -> None:
        self._server = server
        self._planning = Lock()
        self._starting = Lock()
        self._connection: PlannerConnection | None = None

    def plan(self, snapshot: Snapshot, policy: Policy) -> Plan:
        """Plan and verify over there."""
        with self._planning:
            return self._connected().plan(snapshot, policy)

    def backlog(self) -> Backlog:
        """Ask a copy of the process."""
        with self._connected().question() as (_, wire):
            found: dict[JobId, Prospect] = {}
            _send(wire, BacklogRequest())
            while True:
                part = _expect(BacklogReply, wire)
                found.update(part.prospects)
                if part.is_last:
                    return found

    def explain(self, job: JobId) -> Explanation:
        """Ask a copy of the process, which knows the last plan."""
        with self._connected().question() as (_, wire):
            _send(wire, ExplanationRequest(job=job))
            return _expect(ExplanationReply, wire).explanation

    def rehearse(self, usual: World, changed: World, job: JobId | None = None) -> RehearsedPlans:
        """Let a copy of the process plan both worlds."""
        with self._connected().question() as (known, wire):
            _send(
                wire,
                RehearsalRequest(
                    usual=snapshot_delta(known, usual.snapshot),
                    usual_policy=usual.policy,
                    changed=snapshot_delta(usual.snapshot, changed.snapshot),
                    changed_policy=changed.policy,
                    job=job,
                ),
            )
            return _rehearsed(_expect(RehearsalReply, wire), usual.policy, changed.policy)

    @property
    def pid(self) -> int | None:
        """The process, if there is one."""
        return None if self._connection is None else self._connection.pid

    def close(self) -> None:
        """End the process."""
        with self._starting:
            if self._connection is not None:
                self._connection.close()
            self._connection = None

    def _connected(self) -> "PlannerConnection":
        with self._starting:
            known = self._connection
            if known is not None and known.is_alive:
                return known
            if known is not None:
                known.close()
                log.warning("the planner's process ended; starting another")
            self._connection = PlannerConnection(self._server)
            return self._connection


class PlannerConnection:
    """One process: its pipe for plans, its socket for questions, and what it was sent so far."""

    def __init__(self, server: Sequence[str]) -> None:
        self._questions, theirs = socketpair(AF_UNIX, SOCK_STREAM)
        with theirs:
            self._process = subprocess.Popen(  # noqa: S603 our own Python
                [sys.executable, *server, str(theirs.fileno())],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                pass_fds=(theirs.fileno(),),
            )
        self._sent: dict[int, Snapshot] = {0: NOTHING_YET}
        self._number = 0
        self._given = NOTHING_GIVEN
        self._waits: VersionHistory[JobId, Wait] = VersionHistory({})
        # True when it is not known what the process knows of the world.
        self._in_doubt = False

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def is_alive(self) -> bool:
        return not self._in_doubt and self._process.poll() is None

    def close(self) -> None:
        """End the process; copies of it end with their answers."""
        self._questions.close()
        self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                with _broken_pipe_is_the_end():
                    pipe.close()

    def plan(self, snapshot: Snapshot, policy: Policy) -> Plan:
        """Send what changed since the last plan, and read the plan. Not for several threads."""
        number = self._number + 1
        delta = snapshot_delta(self._sent[self._number], snapshot, self._given)
        self._given = NOTHING_GIVEN
        self._sent[number] = snapshot
        self._sent.pop(number - WORLDS_KEPT, None)
        try:
            reply = self._planned(PlanRequest(number=number, delta=delta, policy=policy))
        except BaseException:
            self._in_doubt = True
            raise
        self._number = number
        if not isinstance(reply, PlanReply):
            raise _error(reply)
        self._given = given_by(reply.moves)
        for job in reply.no_longer:
            self._waits.drop(job)
        return Plan(
            snapshot_version=reply.version,
            policy=policy,
            moves=reply.moves,
            waits=self._waits.version(),
            measures=reply.measures,
        )

    @contextmanager
    def question(self) -> Generator[tuple[Snapshot, Wire]]:
        """A copy of the process that can be asked once, and the world that it knows."""
        mine, theirs = socketpair(AF_UNIX, SOCK_STREAM)
        with mine, mine.makefile("rwb") as wire:
            with theirs, _broken_pipe_is_the_end():
                send_fds(self._questions, [b"?"], [theirs.fileno()])
            known = self._sent.get(_expect(ReadyReply, wire).number)
            if known is None:
                raise UnknownError("the world changed while this was asked; ask again")
            yield known, wire

    def _planned(self, request: PlanRequest) -> Reply:
        requests, replies = self._process.stdin, self._process.stdout
        if requests is None or replies is None:
            raise OurBugError("the planner's process has no pipe")
        with _broken_pipe_is_the_end():
            write_frame(requests, encode(request))
        while isinstance(reply := _next(replies), WaitsReply):
            for each in reply.waits:
                self._waits.set(each.job, each)
        return reply


def _rehearsed(reply: RehearsalReply, usual: Policy, changed: Policy) -> RehearsedPlans:
    return RehearsedPlans(
        usual=Plan(
            snapshot_version=reply.version,
            policy=usual,
            moves=reply.usual_moves,
            measures=reply.usual_measures,
        ),
        changed=Plan(
            snapshot_version=reply.version,
            policy=changed,
            moves=reply.changed_moves,
            waits={} if reply.wait is None else {reply.wait.job: reply.wait},
            measures=reply.changed_measures,
        ),
        expected=reply.expected,
        placements=reply.placements,
        alternatives=reply.alternatives,
    )


def _send(wire: Writable, question: Question) -> None:
    with _broken_pipe_is_the_end():
        write_frame(wire, encode(question))


def _expect(kind: type[R], wire: Readable) -> R:
    reply = _next(wire)
    if isinstance(reply, kind):
        return reply
    raise _error(reply)


def _next(wire: Readable) -> Reply:
    with _broken_pipe_is_the_end():
        frame = read_frame(wire)
    if frame is None:
        raise OurBugError("the planner's process ended")
    return decode_reply(frame)


@contextmanager
def _broken_pipe_is_the_end() -> Generator[None]:
    try:
        yield
    except OSError as error:
        raise OurBugError(f"the planner's process ended ({error})") from error


def _error(reply: Reply) -> MusterError:
    match reply:
        case ErrorReply(kind="UnknownError", text=text):
            return UnknownError(text)
        case ErrorReply(kind="BadPlanError", text=text):
            return BadPlanError((text,))
        case ErrorReply(kind=kind, text=text):
            return OurBugError(f"{kind}: {text}")
        case (
            WaitsReply()
            | PlanReply()
            | ReadyReply()
            | RehearsalReply()
            | BacklogReply()
            | ExplanationReply()
        ):
            return OurBugError(f"a reply of the wrong kind: {type(reply).__name__}")
