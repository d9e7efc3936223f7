"""The planner's process: it keeps a copy of the world, plans it, and answers questions about it.

It has one thread, which makes one plan after the other. Every question is answered by a copy of
the process, forked between two plans: it has the world and the planner as they were after the last
plan, may plan other worlds with them, and ends with its answer. So nobody who asks delays a plan,
and nothing that a question makes the planner do can be seen in the next plan.
"""

import gc
import os
import signal
import sys
import time
import traceback
from collections import deque
from collections.abc import Iterator, Mapping
from contextlib import suppress
from selectors import EVENT_READ, DefaultSelector
from socket import AF_UNIX, SOCK_STREAM, recv_fds, socket
from typing import IO

from muster.controller.planner.client import InlinePlanner, World
from muster.controller.planner.copy_of_world import CopyOfWorld
from muster.controller.planner.protocol import (
    NOTHING_GIVEN,
    WAITS_AT_ONCE,
    BacklogReply,
    BacklogRequest,
    ErrorReply,
    ExplanationReply,
    ExplanationRequest,
    PlanReply,
    PlanRequest,
    Question,
    ReadyReply,
    RehearsalReply,
    RehearsalRequest,
    Reply,
    WaitsReply,
    decode_plan_request,
    decode_question,
    encode,
    given_by,
    read_frame,
    write_frame,
)
from muster.model.errors import MusterError
from muster.model.plan import Backlog, Plan, Wait
from muster.model.value import JobId
from muster.model.versioned import changed_keys

MOST_AT_ONCE = 2
"""So many questions are answered at once; later ones wait."""

LONGEST_ANSWER_S = 60
"""A copy that takes longer is ended: nobody waits for it any more."""

BUSY_S = 0.6
"""A copy that has worked for so long begins no further plan for its answer."""

POLITENESS = 5
"""Copies leave the processor to the planner, where both want it."""

FREEZE_EVERY = 256
"""After so many plans, what has stayed since counts as long-lived."""


class PlannerServer:
    """The world as the controller described it, and the planner that plans it."""

    def __init__(self, planner: InlinePlanner) -> None:
        self._planner = planner
        self._world = CopyOfWorld()
        self._waits: Mapping[JobId, Wait] = {}
        self._given = NOTHING_GIVEN
        self.number = 0

    def plan(self, request: PlanRequest) -> Iterator[Reply]:
        """The frames of a plan: the waits that changed, then the rest."""
        self.number = request.number
        given, self._given = self._given, NOTHING_GIVEN
        snapshot = self._world.apply(request.delta, given)
        try:
            made = self._planner.plan(snapshot, request.policy)
        except MusterError as error:
            yield _failed(error)
            return
        self._given = given_by(made.moves)
        new, gone = self._changed_waits(made)
        for at in range(0, len(new), WAITS_AT_ONCE):
            yield WaitsReply(waits=tuple(new[at : at + WAITS_AT_ONCE]))
        yield PlanReply(
            version=made.snapshot_version,
            moves=made.moves,
            measures=made.measures,
            no_longer=gone,
        )

    def answer(self, question: Question) -> Iterator[Reply]:
        """The frames of an answer. Afterwards this planner may have planned other worlds."""
        try:
            yield from self._answer(question)
        except MusterError as error:
            yield _failed(error)

    def _answer(self, question: Question) -> Iterator[Reply]:
        match question:
            case RehearsalRequest():
                yield self._rehearsed(question)
            case BacklogRequest():
                yield from _backlog_frames(self._planner.backlog())
            case ExplanationRequest(job=job):
                yield ExplanationReply(explanation=self._planner.explain(job))

    def _rehearsed(self, asked: RehearsalRequest) -> RehearsalReply:
        usual = World(snapshot=self._world.apply(asked.usual), policy=asked.usual_policy)
        changed = World(snapshot=self._world.apply(asked.changed), policy=asked.changed_policy)
        found = self._planner.rehearse(usual, changed, asked.job)
        return RehearsalReply(
            version=found.changed.snapshot_version,
            usual_moves=found.usual.moves,
            usual_measures=found.usual.measures,
            changed_moves=found.changed.moves,
            changed_measures=found.changed.measures,
            wait=None if asked.job is None else found.changed.waits.get(asked.job),
            expected=found.expected,
            placements=found.placements,
            alternatives=found.alternatives,
        )

    def _changed_waits(self, made: Plan) -> tuple[list[Wait], tuple[JobId, ...]]:
        old, self._waits = self._waits, made.waits
        others = changed_keys(old, made.waits)
        if others is None:
            # Another planner made this plan: what it says stands for everything.
            others = old.keys() | made.waits.keys()
        new = [made.waits[job] for job in others if job in made.waits]
        return new, tuple(job for job in others if job in old and job not in made.waits)


class Loop:
    """Plans when the controller asks for it, and forks for each question that it hands over."""

    def __init__(
        self, server: PlannerServer, plans: tuple[IO[bytes], IO[bytes]], questions: socket
    ) -> None:
        self._server = server
        self._requests, self._replies = plans
        self._questions = questions
        self._waiting: deque[socket] = deque()
        self._copies: dict[int, int] = {}
        self._selector = DefaultSelector()
        self._selector.register(self._requests, EVENT_READ)
        self._selector.register(self._questions, EVENT_READ)

    def run(self) -> None:
        """Until the controller closes the pipe."""
        while True:
            ready = {key.fileobj for key, _ in self._selector.select()}
            if self._questions in ready:
                self._take_question()
            for ended in self._copies.keys() & ready:
                self._forget_copy(ended)
            self._answer_waiting()
            if self._requests in ready and not self._plan():
                return

    def _plan(self) -> bool:
        frame = read_frame(self._requests)
        if frame is None:
            return False
        request = decode_plan_request(frame)
        # The first one is as large as the world.
        del frame
        for reply in self._server.plan(request):
            write_frame(self._replies, encode(reply))
        _tidy(self._server.number)
        return True

    def _take_question(self) -> None:
        received, handles, _, _ = recv_fds(self._questions, 1, 1)
        self._waiting.extend(socket(AF_UNIX, SOCK_STREAM, fileno=each) for each in handles)
        if not received:
            self._selector.unregister(self._questions)

    def _answer_waiting(self) -> None:
        while self._waiting and len(self._copies) < MOST_AT_ONCE:
            asker = self._waiting.popleft()
            copy = os.fork()
            if copy == 0:
                self._be_a_copy(asker)
            asker.close()
            handle = os.pidfd_open(copy)
            self._copies[handle] = copy
            self._selector.register(handle, EVENT_READ)

    def _forget_copy(self, handle: int) -> None:
        self._selector.unregister(handle)
        os.close(handle)
        os.waitpid(self._copies.pop(handle), 0)

    def _be_a_copy(self, asker: socket) -> None:
        """Answer one question; whatever happens, never go on as a second planner."""
        try:
            signal.alarm(LONGEST_ANSWER_S)
            os.nice(POLITENESS)
            # The controller must see it when the planner itself ends, whoever else is alive.
            self._requests.close()
            self._replies.close()
            self._questions.close()
            _answer_one(self._server, asker)
        except Exception:  # noqa: BLE001 - whatever it was, there is nobody to pass it on to
            # Who asked sees that the copy ended; why, only this says.
            traceback.print_exc()
        finally:
            os._exit(0)


def _answer_one(server: PlannerServer, asker: socket) -> None:
    with suppress(BrokenPipeError, ConnectionResetError), asker.makefile("rwb") as wire:
        write_frame(wire, encode(ReadyReply(number=server.number)))
        frame = read_frame(wire)
        if frame is not None:
            for reply in server.answer(decode_question(frame)):
                write_frame(wire, encode(reply))


def _has_time() -> bool:
    """Of the copy's own time, which begins with it: a busy machine makes no answer poorer."""
    return time.process_time() < BUSY_S


def _failed(error: MusterError) -> ErrorReply:
    return ErrorReply(kind=type(error).__name__, text=str(error))


def _backlog_frames(backlog: Backlog) -> Iterator[Reply]:
    jobs = list(backlog)
    parts = [jobs[at : at + WAITS_AT_ONCE] for at in range(0, len(jobs), WAITS_AT_ONCE)] or [[]]
    for part in parts:
        prospects = {job: backlog[job] for job in part}
        yield BacklogReply(prospects=prospects, is_last=part is parts[-1])


def _tidy(number: int) -> None:
    """Look for garbage after a plan, never within one, and only in what was made since.

    The world is large and long-lived: what is there after the first plans is not looked at again.
    """
    gc.collect()
    if number in {1, 2} or number % FREEZE_EVERY == 0:
        gc.freeze()


def serve(planner: InlinePlanner) -> None:
    """Serve the controller that started this process: see `process.PlannerConnection`."""
    gc.disable()
    # Whatever is printed must not get between the frames.
    replies = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    questions = socket(AF_UNIX, SOCK_STREAM, fileno=int(sys.argv[1]))
    with suppress(BrokenPipeError):
        # A controller that died while we planned does not read what is still to be written.
        Loop(PlannerServer(planner), (sys.stdin.buffer, replies), questions).run()
    os._exit(0)


if __name__ == "__main__":
    serve(InlinePlanner(_has_time))
