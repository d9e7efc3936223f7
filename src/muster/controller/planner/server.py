"""The planner's process: it keeps a copy of the world and answers the controller's requests."""

import gc
import os
import sys

from muster.controller.planner.client import InlinePlanner, Thought
from muster.controller.planner.protocol import (
    WAITS_AT_ONCE,
    ErrorReply,
    ExplanationReply,
    ExplanationRequest,
    PlanReply,
    PlanRequest,
    RehearsalRequest,
    Reply,
    Request,
    WaitsReply,
    decode_request,
    encode,
    read_frame,
    snapshot_after,
    write_frame,
)
from muster.model.errors import MusterError
from muster.model.plan import Wait
from muster.model.snapshot import Snapshot
from muster.model.value import Instant, JobId

NOTHING_YET = Snapshot(now=Instant(0))


class PlannerServer:
    """The world as the controller described it, and the planner that plans it."""

    def __init__(self) -> None:
        self._planner = InlinePlanner()
        self._world = NOTHING_YET
        self._waits: dict[JobId, Wait] = {}
        self._plans = 0

    def replies(self, request: Request) -> list[Reply]:
        """The frames of the answer."""
        try:
            return self._replies(request)
        except MusterError as error:
            return [ErrorReply(kind=type(error).__name__, text=str(error))]

    def _replies(self, request: Request) -> list[Reply]:
        match request:
            case PlanRequest(delta=delta, policy=policy):
                self._world = snapshot_after(self._world, delta)
                self._tidy()
                return self._plan_reply(self._planner.plan(self._world, policy))
            case RehearsalRequest(delta=delta, policy=policy):
                thought = self._planner.rehearse(snapshot_after(self._world, delta), policy)
                return _frames(thought, list(thought.waits.values()), ())
            case ExplanationRequest(job=job):
                return [ExplanationReply(explanation=self._planner.explain(job))]

    def _plan_reply(self, thought: Thought) -> list[Reply]:
        known = self._waits
        new = [each for each in thought.waits.values() if known.get(each.job) != each]
        gone = tuple(job for job in known if job not in thought.waits)
        self._waits = dict(thought.waits)
        return _frames(thought, new, gone)

    def _tidy(self) -> None:
        """The world is large and long-lived: looking for garbage in it takes longer than a plan."""
        self._plans += 1
        if self._plans in {1, 2} or self._plans % 256 == 0:
            gc.collect()
            gc.freeze()


def _frames(thought: Thought, waits: list[Wait], gone: tuple[JobId, ...]) -> list[Reply]:
    frames: list[Reply] = [
        WaitsReply(waits=tuple(waits[at : at + WAITS_AT_ONCE]))
        for at in range(0, len(waits), WAITS_AT_ONCE)
    ]
    planned = PlanReply(
        version=thought.version,
        moves=thought.moves,
        measures=thought.measures,
        no_longer=gone,
    )
    return [*frames, planned]


def main() -> None:
    """Answer until the controller closes the pipe."""
    requests, replies = sys.stdin.buffer, os.fdopen(os.dup(1), "wb")
    server = PlannerServer()
    while (frame := read_frame(requests)) is not None:
        try:
            for reply in server.replies(decode_request(frame)):
                write_frame(replies, encode(reply))
        except BrokenPipeError:
            # The controller died while we thought: nobody reads what is still to be written.
            os._exit(0)


if __name__ == "__main__":
    main()
