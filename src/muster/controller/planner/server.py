"""The planner's process: it keeps a copy of the world and answers the controller's requests."""

import gc
import os
import sys
from collections.abc import Mapping

from muster.controller.planner.client import InlinePlanner, RehearsedPlan
from muster.controller.planner.protocol import (
    WAITS_AT_ONCE,
    BacklogReply,
    BacklogRequest,
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
from muster.model.plan import Backlog, Plan, Wait
from muster.model.snapshot import Snapshot
from muster.model.value import Instant, JobId
from muster.model.versioned import changed_keys

NOTHING_YET = Snapshot(now=Instant(0))


class PlannerServer:
    """The world as the controller described it, and the planner that plans it."""

    def __init__(self) -> None:
        self._planner = InlinePlanner()
        self._world = NOTHING_YET
        self._waits: Mapping[JobId, Wait] = {}
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
            case RehearsalRequest(delta=delta, policy=policy, job=job):
                world = snapshot_after(self._world, delta)
                rehearsed = self._planner.rehearse(world, policy, job)
                return _frames(rehearsed, list(rehearsed.plan.waits.values()), ())
            case BacklogRequest():
                return _backlog_frames(self._planner.backlog())
            case ExplanationRequest(job=job):
                return [ExplanationReply(explanation=self._planner.explain(job))]

    def _plan_reply(self, made: Plan) -> list[Reply]:
        old, self._waits = self._waits, made.waits
        others = changed_keys(old, made.waits)
        if others is None:
            # Another planner made this plan: what it says stands for everything.
            others = old.keys() | made.waits.keys()
        new = [made.waits[job] for job in others if job in made.waits]
        gone = tuple(job for job in others if job in old and job not in made.waits)
        return _frames(RehearsedPlan(plan=made), new, gone)

    def _tidy(self) -> None:
        """The world is large and long-lived: looking for garbage in it takes longer than a plan."""
        self._plans += 1
        if self._plans in {1, 2} or self._plans % 256 == 0:
            gc.collect()
            gc.freeze()


def _frames(planned: RehearsedPlan, waits: list[Wait], gone: tuple[JobId, ...]) -> list[Reply]:
    frames: list[Reply] = [
        WaitsReply(waits=tuple(waits[at : at + WAITS_AT_ONCE]))
        for at in range(0, len(waits), WAITS_AT_ONCE)
    ]
    made = planned.plan
    last = PlanReply(
        version=made.snapshot_version,
        moves=made.moves,
        measures=made.measures,
        no_longer=gone,
        expected=planned.expected,
    )
    return [*frames, last]


def _backlog_frames(backlog: Backlog) -> list[Reply]:
    jobs = list(backlog)
    parts = [jobs[at : at + WAITS_AT_ONCE] for at in range(0, len(jobs), WAITS_AT_ONCE)] or [[]]
    return [
        BacklogReply(prospects={job: backlog[job] for job in part}, is_last=part is parts[-1])
        for part in parts
    ]


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
