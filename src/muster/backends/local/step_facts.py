"""What the files of one attempt say of its steps, as events, each told once."""

from pathlib import Path

import msgspec

from muster.backends.local import spool
from muster.model.event import Event, StepBegan, StepEnded
from muster.model.history import Used
from muster.model.resources import Resources
from muster.model.steps import Step, StepPart
from muster.model.value import Instant, JobId, NodeId, Value, replace


class _Begun(Value):
    at: Instant
    name: str
    command: str
    tasks: int
    nodes: tuple[NodeId, ...]
    amount: Resources
    parts: tuple[StepPart, ...] = ()


class _OverPart(Value):
    code: int
    signal: int
    used: Used


class _Over(Value):
    at: Instant
    code: int
    signal: int
    used: Used
    parts: tuple[_OverPart, ...] = ()


class StepFacts:
    """Remembers what was told of the steps. They begin in the order of their numbers."""

    def __init__(self, folder: Path, job: JobId, attempt: int) -> None:
        self._folder = folder
        self._job = job
        self._attempt = attempt
        self._count = 0
        self._going: dict[int, Step] = {}

    def news(self) -> list[Event]:
        """What was not told yet; a step begins before it ends."""
        events: list[Event] = []
        while written := self._read(spool.step_name(self._count)):
            step = self._begun(msgspec.json.decode(written, type=_Begun))
            self._going[step.number] = step
            self._count += 1
            events.append(StepBegan(at=step.began_at, step=step))
        for number in sorted(self._going):
            if written := self._read(spool.step_end_name(number)):
                over = msgspec.json.decode(written, type=_Over)
                step = _ended(self._going.pop(number), over)
                events.append(StepEnded(at=over.at, step=step))
        return events

    def _begun(self, found: _Begun) -> Step:
        return Step(
            job=self._job,
            attempt=self._attempt,
            number=self._count,
            name=found.name,
            command=found.command,
            tasks=found.tasks,
            nodes=found.nodes,
            amount=found.amount,
            began_at=found.at,
            parts=found.parts,
        )

    def _read(self, name: str) -> bytes:
        try:
            return (self._folder / name).read_bytes()
        except FileNotFoundError:
            return b""


def _ended(step: Step, over: _Over) -> Step:
    parts = tuple(
        replace(part, code=end.code, signal=end.signal, used=end.used)
        for part, end in zip(step.parts, over.parts, strict=False)
    )
    whole = replace(step, ended_at=over.at, code=over.code, signal=over.signal, used=over.used)
    return replace(whole, parts=parts)
