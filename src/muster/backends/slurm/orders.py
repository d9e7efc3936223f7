"""Carries out what is ordered of attempts on a Slurm cluster."""

import logging
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path

from muster.backends.attempts import Attempt, Kill, Phase, Resume, Send
from muster.backends.base import (
    Action,
    Continue,
    Cut,
    Forget,
    Limit,
    Mend,
    Run,
    Signal,
    Stop,
    Supply,
    Suspend,
)
from muster.backends.notes import Note
from muster.backends.slurm.gone import AttemptId
from muster.backends.slurm.pods import noted
from muster.backends.slurm.register import MUSTER, Register, handled
from muster.backends.slurm.submission import Manner, Submission, prepared_for, submission
from muster.backends.slurm.watch import Seen
from muster.backends.slurm.wire import (
    SlurmDownError,
    SlurmNotYetError,
    SlurmRefusedError,
    Wire,
)
from muster.launch.attempt import in_rank_order
from muster.model.value import Instant, UserName, replace

log = logging.getLogger(__name__)

_MINUTE_MS = 60_000
_SETTLES_MS = 5_000
"""A slurmctld that hung may first answer who asks what is queued, then take in what came before."""
_REGISTERED_MS = 60_000
"""By then the nodes of a slurmctld that was started have registered: its no is one."""


class Orders:
    """What the controller, and time, want of the attempts in the register."""

    def __init__(
        self, register: Register, wire: Wire, manner: Manner, clock: Callable[[], Instant]
    ) -> None:
        self._register, self._wire, self._clock = register, wire, clock
        self._manner = manner
        self._fresh: list[AttemptId] = []
        # When sbatch was asked, or may have been, and nobody knows what came of it.
        self._asked_at: dict[AttemptId, Instant] = {}
        self._refused_since: dict[AttemptId, Instant] = {}

    def heed(self, seen: Seen) -> None:
        """Go by what the cluster's nodes are now."""
        self._manner = replace(self._manner, longest=seen.longest, gres=seen.gres)

    def take(self, action: Action) -> None:
        """Carry it out. What cannot be done at all ends its attempt, and no other."""
        self._ask_or_refuse(action, partial(self._take, action))

    def submit(self) -> None:
        """What was taken and is new. What could not be submitted waits for a listing without it."""
        fresh, self._fresh = self._fresh, []
        self._submit(key for key in fresh if key in self._register.unsubmitted)

    def submit_again(self) -> None:
        """Those that could not be submitted; the queue was just listed, and has none of them."""
        settled = self._clock() - _SETTLES_MS
        asked_at = self._asked_at
        down = self._submit(
            tuple(key for key in self._register.unsubmitted if asked_at.get(key, 0) <= settled)
        )
        if down is not None:
            raise down

    def act(self) -> None:
        """What time has come for."""
        now = self._clock()
        for attempt in tuple(self._register.attempts.values()):
            for deed in attempt.due(now):
                self._register.tried(partial(self._wire.do, attempt.note.handle or "", deed))
                self._register.pace.hurry()

    def _ask_or_refuse(self, action: Action, ask: Callable[[], None]) -> None:
        try:
            ask()
        except (SlurmDownError, OSError):
            raise
        except Exception as error:
            log.exception("a Slurm cluster cannot do %s", type(action).__name__)
            if isinstance(action, Run):
                self._register.fail(action, str(error), self._clock())

    def _take(self, action: Action) -> None:
        match action:
            case Run():
                self._run(in_rank_order(action))
            case Stop():
                self._stop(action)
            case Suspend() | Continue() | Signal() | Limit():
                attempt = self._register.attempts.get((action.job, action.attempt))
                if attempt is not None and not attempt.is_over:
                    self._order(attempt, action)
            case Forget():
                self._forget((action.job, action.attempt))
            case Supply() | Cut() | Mend():
                """Pods read when they begin; its nodes are Slurm's to cut and to mend."""

    def _run(self, run: Run) -> None:
        key, register = (run.job.id, run.allocation.attempt), self._register
        known = register.attempts.get(key)
        if known is not None and (known.is_over or known.note.handle is not None):
            return
        if known is None:
            register.begin(run, _begun(run, self._clock()))
            self._fresh.append(key)
        else:
            self._asked_at.setdefault(key, self._clock())
        register.unsubmitted[key] = run

    def _submit(self, keys: Iterable[AttemptId]) -> SlurmDownError | None:
        """Submit these, and return what kept some of them from being submitted for now."""
        runs = {key: self._register.unsubmitted[key] for key in keys}
        asked: dict[AttemptId, tuple[Submission, UserName]] = {}
        for key, run in runs.items():
            self._ask_or_refuse(run, partial(self._write_down, key, run, asked))
        down: SlurmDownError | None = None
        for key, outcome in zip(asked, self._wire.submit(tuple(asked.values())), strict=True):
            match outcome:
                case SlurmDownError():
                    down = outcome
                    self._asked_at[key] = self._clock()
                case SlurmNotYetError():
                    self._is_refused_for_now(key, runs[key], outcome)
                case SlurmRefusedError():
                    self._is_refused(key, runs[key], outcome)
                case str(handle):
                    self._is_submitted(key, handle)
        return down

    def _write_down(
        self, key: AttemptId, run: Run, asked: dict[AttemptId, tuple[Submission, UserName]]
    ) -> None:
        """What sbatch is to be told of it."""
        mark = self._register.mark(key)
        asked[key] = (submission(run, mark, self._manner), run.job.spec.user)

    def _is_refused_for_now(self, key: AttemptId, run: Run, why: SlurmNotYetError) -> None:
        now = self._asked_at[key] = self._clock()
        if now - self._refused_since.setdefault(key, now) >= _REGISTERED_MS:
            self._is_refused(key, run, why)

    def _is_refused(self, key: AttemptId, run: Run, why: SlurmRefusedError) -> None:
        self._asked_at.pop(key, None)
        self._refused_since.pop(key, None)
        self._register.fail(run, str(why), self._clock())

    def _is_submitted(self, key: AttemptId, handle: str) -> None:
        register = self._register
        attempt = register.attempts[key]
        del register.unsubmitted[key]
        self._asked_at.pop(key, None)
        self._refused_since.pop(key, None)
        handled(attempt, handle)
        register.keep(attempt)
        register.pace.hurry()

    def _stop(self, order: Stop) -> None:
        key, register = (order.job, order.attempt), self._register
        attempt = register.attempts.get(key)
        if attempt is None:
            note = Note(
                job=order.job,
                attempt=order.attempt,
                user=MUSTER,
                nodes=(),
                began_at=self._clock(),
            )
            attempt = register.attempts[key] = Attempt(note=note)
        if attempt.is_over:
            return
        attempt.stop(order, self._clock())
        register.keep(attempt)
        is_there = attempt.note.handle is not None
        if not is_there:
            register.unsubmitted.pop(key, None)
            register.finish(key, attempt.end(order.why, self._clock()))

    def _order(self, attempt: Attempt, action: Suspend | Continue | Signal | Limit) -> None:
        handle, tried = attempt.note.handle, self._register.tried
        match action:
            case Limit():
                attempt.limit(action)
                self._register.keep(attempt)
                if handle is not None:
                    self._tell_limit(attempt, handle)
            case _ if handle is None:
                return
            case Suspend():
                tried(partial(self._wire.suspend, handle))
            case Continue():
                if attempt.seen is not None and attempt.seen.phase is Phase.STANDS:
                    tried(partial(self._wire.do, handle, Resume()))
            case Signal(task=int()):
                # Slurm knows no signal for one task: without this one, the gang is not whole.
                attempt.break_off(self._clock())
            case Signal(step=int(step), signal=number):
                tried(partial(self._wire.signal_step, handle, step, number))
            case Signal(signal=number, shell_only=first_only):
                deed = Send(signal=number, first_only=first_only)
                tried(partial(self._wire.do, handle, deed))
        self._register.pace.hurry()

    def _tell_limit(self, attempt: Attempt, handle: str) -> None:
        """Slurm's own limit stays behind ours."""
        began, ends_at = attempt.timeline, attempt.note.ends_at
        minutes = None
        if began is not None and ends_at is not None:
            minutes = max(1, (ends_at - began.began_ms + attempt.note.grace) // _MINUTE_MS + 5)
        self._register.tried(partial(self._wire.limit, handle, minutes))

    def _forget(self, key: AttemptId) -> None:
        self._asked_at.pop(key, None)
        self._refused_since.pop(key, None)
        attempt = self._register.forget(key)
        if attempt is not None and not attempt.is_over and attempt.note.handle is not None:
            self._register.tried(partial(self._wire.do, attempt.note.handle, Kill()))


def _begun(run: Run, now: Instant) -> Note:
    job, placements = run.job, run.allocation.placements
    checkpoint = prepared_for(run).checkpoint
    if checkpoint is not None:
        path = Path(run.launch.workdir or "/", checkpoint.path)
        checkpoint = replace(checkpoint, path=str(path))
    return Note(
        job=job.id,
        attempt=run.allocation.attempt,
        user=job.spec.user,
        nodes=tuple(each.node for each in placements),
        began_at=now,
        limit=job.spec.time_limit,
        grace=run.grace,
        warn=run.launch.warn,
        checkpoint=checkpoint,
        pods=noted(run.launch),
        leader=None if run.launch.gang is None else run.launch.gang.leader,
    )
