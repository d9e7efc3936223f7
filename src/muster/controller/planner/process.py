"""The planner in a process of its own, so that everything else stays quick while it plans.

The process keeps its own copy of the world and is sent what changed. If it dies, the next request
starts another one and sends it everything.
"""

import logging
import subprocess
import sys
from threading import Lock

from muster.controller.planner.client import RehearsedPlan
from muster.controller.planner.protocol import (
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
    decode_reply,
    encode,
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

NOTHING_YET = Snapshot(now=Instant(0))

log = logging.getLogger("muster.planner")


class ProcessPlanner:
    """Asks the planner's process. Questions are answered one after the other."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._told = NOTHING_YET
        self._waits: dict[JobId, Wait] = {}
        self._history: VersionHistory[JobId, Wait] = VersionHistory(self._waits)
        # True while nobody can say what the process knows of the world.
        self._in_doubt = False

    def plan(self, snapshot: Snapshot, policy: Policy) -> Plan:
        """Plan and verify over there."""
        with self._lock:
            pipe = self._alive()
            difference = snapshot_delta(self._told, snapshot)
            self._in_doubt = True
            waits, planned = self._planned(pipe, PlanRequest(delta=difference, policy=policy))
            self._told, self._in_doubt = snapshot, False
            for each in waits:
                self._waits[each.job] = each
                self._history.note(each.job)
            for job in planned.no_longer:
                self._waits.pop(job, None)
                self._history.note(job)
            return Plan(
                snapshot_version=planned.version,
                policy=policy,
                moves=planned.moves,
                waits=self._history.version(),
                measures=planned.measures,
            )

    def backlog(self) -> Backlog:
        """Ask for it over there."""
        with self._lock:
            found: dict[JobId, Prospect] = {}
            process = self._alive()
            answer = self._ask(process, BacklogRequest())
            while isinstance(answer, BacklogReply):
                found.update(answer.prospects)
                if answer.is_last:
                    return found
                answer = self._next(process)
            raise _error(answer)

    def explain(self, job: JobId) -> Explanation:
        """Explain by the last plan, when it is made."""
        with self._lock:
            match self._ask(self._alive(), ExplanationRequest(job=job)):
                case ExplanationReply(explanation=explanation):
                    return explanation
                case other:
                    raise _error(other)

    def rehearse(
        self, snapshot: Snapshot, policy: Policy, job: JobId | None = None
    ) -> RehearsedPlan:
        """Plan another world over there."""
        with self._lock:
            pipe = self._alive()
            difference = snapshot_delta(self._told, snapshot)
            question = RehearsalRequest(delta=difference, policy=policy, job=job)
            waits, planned = self._planned(pipe, question)
            made = Plan(
                snapshot_version=planned.version,
                policy=policy,
                moves=planned.moves,
                waits={each.job: each for each in waits},
                measures=planned.measures,
            )
            return RehearsedPlan(plan=made, expected=planned.expected)

    @property
    def pid(self) -> int | None:
        """The process, if there is one."""
        return None if self._process is None else self._process.pid

    def close(self) -> None:
        """End the process."""
        with self._lock:
            if self._process is not None:
                self._end(self._process)
            self._process = None

    def _alive(self) -> "subprocess.Popen[bytes]":
        is_alive = self._process is not None and self._process.poll() is None
        if self._process is not None and is_alive and not self._in_doubt:
            return self._process
        if self._process is not None:
            self._end(self._process)
            log.warning("the planner's process ended; starting another")
        self._told, self._waits, self._in_doubt = NOTHING_YET, {}, False
        self._history = VersionHistory(self._waits)
        self._process = subprocess.Popen(
            [sys.executable, "-m", "muster.controller.planner.server"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        return self._process

    def _end(self, process: "subprocess.Popen[bytes]") -> None:
        if process.stdin is not None:
            process.stdin.close()
        process.kill()
        process.wait()
        if process.stdout is not None:
            process.stdout.close()

    def _planned(
        self, process: "subprocess.Popen[bytes]", question: Request
    ) -> tuple[list[Wait], PlanReply]:
        waits: list[Wait] = []
        answer = self._ask(process, question)
        while isinstance(answer, WaitsReply):
            waits.extend(answer.waits)
            answer = self._next(process)
        if isinstance(answer, PlanReply):
            return waits, answer
        raise _error(answer)

    def _ask(self, process: "subprocess.Popen[bytes]", question: Request) -> Reply:
        if process.stdin is None:
            raise OurBugError("the planner's process has no pipe")
        try:
            write_frame(process.stdin, encode(question))
        except OSError as error:
            raise OurBugError(f"the planner's process ended ({error})") from error
        return self._next(process)

    def _next(self, process: "subprocess.Popen[bytes]") -> Reply:
        frame = read_frame(process.stdout) if process.stdout is not None else None
        if frame is None:
            process.wait()
            raise OurBugError("the planner's process ended")
        return decode_reply(frame)


def _error(answer: Reply) -> MusterError:
    match answer:
        case ErrorReply(kind="UnknownError", text=text):
            return UnknownError(text)
        case ErrorReply(kind="BadPlanError", text=text):
            return BadPlanError((text,))
        case ErrorReply(kind=kind, text=text):
            return OurBugError(f"{kind}: {text}")
        case WaitsReply() | PlanReply() | BacklogReply() | ExplanationReply():
            return OurBugError(f"an answer of the wrong kind: {type(answer).__name__}")
