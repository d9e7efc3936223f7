"""The planner in a process of its own, so that everything else stays quick while it thinks.

The process keeps its own copy of the world and is told what changed. If it dies, the next question
starts another one and tells it everything.
"""

import gc
import logging
import os
import subprocess
import sys
from threading import Lock
from typing import IO

from muster.controller.asides import (
    WAITS_AT_ONCE,
    Answer,
    AskExplanation,
    AskPlan,
    AskRehearsal,
    Explained,
    Failed,
    Planned,
    Question,
    Waits,
    after,
    decode_answer,
    decode_question,
    delta,
    encode,
)
from muster.controller.thinking import HereThinker, Thought
from muster.model.errors import BadPlanError, MusterError, OurBugError, UnknownError
from muster.model.explanation import Explanation
from muster.model.plan import Wait
from muster.model.policy import Policy
from muster.model.snapshot import Snapshot
from muster.model.value import Instant, JobId

NOTHING_YET = Snapshot(now=Instant(0))

log = logging.getLogger("muster.thinker")


class ProcessThinker:
    """Asks the planner's process. Questions are answered one after the other."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._told = NOTHING_YET
        self._waits: dict[JobId, Wait] = {}
        # True while nobody can say what the process knows of the world.
        self._in_doubt = False

    def think(self, snapshot: Snapshot, policy: Policy) -> Thought:
        """Plan and verify over there."""
        with self._lock:
            pipe = self._alive()
            difference = delta(self._told, snapshot)
            self._in_doubt = True
            waits, planned = self._planned(pipe, AskPlan(delta=difference, policy=policy))
            self._told, self._in_doubt = snapshot, False
            merged = dict(self._waits)
            merged.update((each.job, each) for each in waits)
            for job in planned.no_longer:
                merged.pop(job, None)
            self._waits = merged
            return Thought(
                version=planned.version,
                moves=planned.moves,
                measures=planned.measures,
                waits=merged,
            )

    def explain(self, job: JobId) -> Explanation:
        """Explain by the last plan, when it is made."""
        with self._lock:
            match self._ask(self._alive(), AskExplanation(job=job)):
                case Explained(explanation=explanation):
                    return explanation
                case other:
                    raise _error(other)

    def rehearse(self, snapshot: Snapshot, policy: Policy) -> Thought:
        """Plan another world over there."""
        with self._lock:
            pipe = self._alive()
            question = AskRehearsal(delta=delta(self._told, snapshot), policy=policy)
            waits, planned = self._planned(pipe, question)
            return Thought(
                version=planned.version,
                moves=planned.moves,
                measures=planned.measures,
                waits={each.job: each for each in waits},
            )

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
        self._process = subprocess.Popen(
            [sys.executable, "-m", "muster.controller.thinker_process"],
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
        self, process: "subprocess.Popen[bytes]", question: Question
    ) -> tuple[list[Wait], Planned]:
        waits: list[Wait] = []
        answer = self._ask(process, question)
        while isinstance(answer, Waits):
            waits.extend(answer.waits)
            answer = self._next(process)
        if isinstance(answer, Planned):
            return waits, answer
        raise _error(answer)

    def _ask(self, process: "subprocess.Popen[bytes]", question: Question) -> Answer:
        if process.stdin is None:
            raise OurBugError("the planner's process has no pipe")
        try:
            _write(process.stdin, encode(question))
        except OSError as error:
            raise OurBugError(f"the planner's process ended ({error})") from error
        return self._next(process)

    def _next(self, process: "subprocess.Popen[bytes]") -> Answer:
        frame = _read(process.stdout) if process.stdout is not None else None
        if frame is None:
            process.wait()
            raise OurBugError("the planner's process ended")
        return decode_answer(frame)


def _error(answer: Answer) -> MusterError:
    match answer:
        case Failed(kind="UnknownError", text=text):
            return UnknownError(text)
        case Failed(kind="BadPlanError", text=text):
            return BadPlanError((text,))
        case Failed(kind=kind, text=text):
            return OurBugError(f"{kind}: {text}")
        case Waits() | Planned() | Explained():
            return OurBugError(f"an answer of the wrong kind: {type(answer).__name__}")


def _write(pipe: IO[bytes], frame: bytes) -> None:
    pipe.write(len(frame).to_bytes(8, "big"))
    pipe.write(frame)
    pipe.flush()


def _read(pipe: IO[bytes]) -> bytes | None:
    size = pipe.read(8)
    if len(size) < 8:
        return None
    return pipe.read(int.from_bytes(size, "big"))


class Mind:
    """The other side: the world as it was told, and the thinker that thinks about it."""

    def __init__(self) -> None:
        self._thinker = HereThinker()
        self._world = NOTHING_YET
        self._waits: dict[JobId, Wait] = {}
        self._plans = 0

    def answers(self, question: Question) -> list[Answer]:
        """The frames of the answer."""
        try:
            return self._answers(question)
        except MusterError as error:
            return [Failed(kind=type(error).__name__, text=str(error))]

    def _answers(self, question: Question) -> list[Answer]:
        match question:
            case AskPlan(delta=told, policy=policy):
                self._world = after(self._world, told)
                self._tidy()
                return self._told(self._thinker.think(self._world, policy))
            case AskRehearsal(delta=told, policy=policy):
                thought = self._thinker.rehearse(after(self._world, told), policy)
                return _frames(thought, list(thought.waits.values()), ())
            case AskExplanation(job=job):
                return [Explained(explanation=self._thinker.explain(job))]

    def _told(self, thought: Thought) -> list[Answer]:
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


def _frames(thought: Thought, waits: list[Wait], gone: tuple[JobId, ...]) -> list[Answer]:
    frames: list[Answer] = [
        Waits(waits=tuple(waits[at : at + WAITS_AT_ONCE]))
        for at in range(0, len(waits), WAITS_AT_ONCE)
    ]
    planned = Planned(
        version=thought.version,
        moves=thought.moves,
        measures=thought.measures,
        no_longer=gone,
    )
    return [*frames, planned]


def main() -> None:
    """Answer until the controller closes the pipe."""
    questions, answers = sys.stdin.buffer, os.fdopen(os.dup(1), "wb")
    mind = Mind()
    while (frame := _read(questions)) is not None:
        try:
            for answer in mind.answers(decode_question(frame)):
                _write(answers, encode(answer))
        except BrokenPipeError:
            # The controller died while we thought: nobody reads what is still to be written.
            os._exit(0)


if __name__ == "__main__":
    main()
