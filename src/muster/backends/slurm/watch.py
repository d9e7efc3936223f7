"""Looks at a Slurm cluster: what its queue says of our attempts, and what its nodes are."""

from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from functools import partial

from muster.backends.attempts import Attempt, Kill, Phase
from muster.backends.base import Stop
from muster.backends.fleet import NodeWatch
from muster.backends.looking import CheckpointLook
from muster.backends.slurm.attempt import SLURM, look_of
from muster.backends.slurm.gone import AttemptId
from muster.backends.slurm.gres import Gres
from muster.backends.slurm.listing import QueuedJob, held_by_others
from muster.backends.slurm.nodes import Fleet
from muster.backends.slurm.register import (
    MUSTER,
    Register,
    attempt_id,
    handled,
)
from muster.backends.slurm.submission import Manner
from muster.backends.slurm.wire import SlurmDownError, SlurmRefusedError, Wire
from muster.model.event import Event, JobCheckpointed, JobEnded
from muster.model.job import Requeued
from muster.model.value import Duration, Instant, NodeId, Value, replace

_LOST_MS = 10_000
"""How long an attempt that is listed no more may come back. A slurmctld that was killed forgets its
last seconds, while nodes still run what it forgot, until they have told it so and ended that."""
_PATIENCE_MS = 60_000
"""How long Slurm may let a job wait whose nodes we named; then somebody else was faster."""

_MOST_TOLD = 20
"""So many jobs that carry our mark and are not known are named."""


class Seen(Value):
    """What of a cluster's nodes matters to orders, and to the cluster itself.

    longest: what a job may take in each pool; None: without end. gres: what each node has, by the
    names that Slurm gives it. levels: those of its topology, coarsest first.
    """

    longest: Mapping[str, Duration | None]
    gres: Mapping[NodeId, tuple[Gres, ...]]
    levels: tuple[str, ...]


class Watch:
    """What is seen goes into the register.

    Where the nodes are ours to choose, a job that waits is one that somebody outran.
    """

    def __init__(
        self, register: Register, wire: Wire, manner: Manner, clock: Callable[[], Instant]
    ) -> None:
        self._register, self._wire, self._clock = register, wire, clock
        self._manner = manner
        self._nodes = NodeWatch()
        self._missing: dict[AttemptId, Instant] = {}

    def from_the_start(self) -> None:
        """Tell all of it again."""
        self._nodes.forget()
        self._missing.clear()

    def see_nodes(self, fleet: Fleet, now: Instant) -> Seen:
        """Look at the nodes, and tell what is new of them."""
        partitions, topology = self._wire.partitions(), self._wire.topology()
        wanted = replace(fleet, partitions=partitions, places=topology.places)
        found = self._wire.nodes(wanted)
        self._nodes.are(each.node for each in found)
        self._register.pace.nodes_at = now
        self._report_nodes(now)
        return Seen(
            longest={each.name: each.max_time for each in partitions},
            gres={each.name: each.gres for each in found},
            levels=topology.levels,
        )

    def look(self, now: Instant) -> None:
        """Look at the queue."""
        register = self._register
        # Not from `now` on: what was submitted in the same turn has nothing to do with it.
        began = self._clock()
        jobs = sorted(self._wire.jobs(), key=lambda job: int(job.id))
        register.pace.looked(now, took_ms=self._clock() - began, is_busy=register.is_busy())
        # Components of one job carry one mark: the first of them stands for all.
        marked = [job for job in reversed(jobs) if register.is_ours(job)]
        known = [job for job in marked if register.is_handle(job)]
        ours = {attempt_id(job.key): job for job in (*marked, *known)}
        others = held_by_others(job for job in jobs if not register.is_ours(job))
        self._nodes.others_hold(
            {NodeId(self._manner.prefix + node): taken for node, taken in others.items()}
        )
        for key, job in ours.items():
            self._look_at(key, job, now)
        self._end_doubles(jobs, ours)
        self._end_ghosts(jobs)
        self._find_lost(ours, {job.id for job in jobs}, now)
        self._look_for_checkpoints(now)
        self._report_nodes(now)

    def _look_at(self, key: AttemptId, job: QueuedJob, now: Instant) -> None:
        register = self._register
        attempt = register.attempts.get(key)
        if attempt is None:
            return
        runs_again = attempt.timeline is not None and job.phase is Phase.WAITS
        if attempt.is_over or runs_again:
            self._end_again(key, attempt, job, now)
            return
        if attempt.note.handle != job.id:
            # It was submitted, and the answer did not come.
            handled(attempt, job.id)
            register.keep(attempt)
        register.unsubmitted.pop(key, None)
        if job.phase is Phase.OVER and attempt.timeline is not None:
            killed_at = None if job.ended_by_itself else Instant(1_000 * (job.ended_s or 0))
            saved = self._checkpoints_of(key).last(attempt.note, now, killed_at=killed_at)
            self._saved(attempt, saved)
        register.finish(key, self._seen(key, attempt, job, now))
        waited = now - attempt.note.began_at
        is_stuck = job.phase is Phase.WAITS and waited > _PATIENCE_MS
        if is_stuck and not self._manner.delegates and attempt.note.stop is None:
            why = Requeued(by=MUSTER)
            attempt.stop(Stop(job=key[0], attempt=key[1], why=why, grace=attempt.note.grace), now)
            register.keep(attempt)

    def _seen(
        self, key: AttemptId, attempt: Attempt, job: QueuedJob, now: Instant
    ) -> Sequence[Event]:
        """What is new of it; how its pods are is told before it ends."""
        look = look_of(job, attempt.note)
        if not attempt.note.pods or attempt.is_over:
            return tuple(attempt.look(look, now))
        pods = self._register.pods_of(key)
        look = pods.end_of_leader(attempt.note, look)
        events = tuple(attempt.look(look, now))
        if look.phase is Phase.RUNS and pods.is_led_out(attempt.note):
            attempt.break_off(now)
        ends = [each for each in events if isinstance(each, JobEnded)]
        others = [each for each in events if not isinstance(each, JobEnded)]
        return (*others, *pods.news(attempt.note, look, now), *ends)

    def _end_again(self, key: AttemptId, attempt: Attempt, job: QueuedJob, now: Instant) -> None:
        """It ended, or began, and Slurm is about to run it once more: it forgot, or somebody asked.

        An attempt runs once; whether there is another one is not Slurm's to say.
        """
        if job.phase in {Phase.OVER, Phase.LEAVES}:
            return
        self._register.tried(partial(self._wire.do, job.id, Kill()))
        self._register.finish(key, attempt.end(Requeued(by=SLURM), now))

    def _end_doubles(self, jobs: Iterable[QueuedJob], ours: Mapping[AttemptId, QueuedJob]) -> None:
        """An attempt that was submitted twice: the one that Slurm took in first is it."""
        for job in jobs:
            first = ours.get(attempt_id(job.key))
            is_double = first is not None and first.whole not in {job.whole, job.id}
            if is_double and job.phase is not Phase.OVER and self._register.is_ours(job):
                self._register.tried(partial(self._wire.do, job.id, Kill()))

    def _end_ghosts(self, jobs: Iterable[QueuedJob]) -> None:
        """Attempts that ended, were forgotten here, and that a slurmctld runs that forgot that.

        What else carries our mark, and is not known, is told: it may be somebody's who copied the
        mark, or of a Muster with a copy of our state folder. To end it is not for us.
        """
        register, orphans = self._register, list[str]()
        for job in jobs:
            is_known = attempt_id(job.key) in register.attempts
            if job.phase is Phase.OVER or is_known or not register.is_marked(job):
                continue
            if register.gone.has(job):
                register.tried(partial(self._wire.do, job.id, Kill()))
            else:
                orphans.append(job.id)
        register.orphans = tuple(orphans[:_MOST_TOLD])

    def _find_lost(self, ours: dict[AttemptId, QueuedJob], listed: Set[str], now: Instant) -> None:
        """Those that Slurm no longer lists: its accounting may still know how they ended.

        listed: the numbers of all its jobs. A number that it gave twice tells of another job.
        """
        register = self._register
        for key, attempt in tuple(register.attempts.items()):
            if attempt.is_over or key in ours or key in register.unsubmitted:
                self._missing.pop(key, None)
                continue
            if attempt.note.handle is None and attempt.note.started_at is None:
                # It is sent again, and then submitted unless it was.
                continue
            job = None if attempt.note.handle in listed else self._remembered(attempt)
            if job is not None:
                register.finish(key, self._seen(key, attempt, job, now))
            elif now - self._missing.setdefault(key, now) >= _LOST_MS:
                del self._missing[key]
                register.finish(key, attempt.lost(now))

    def _remembered(self, attempt: Attempt) -> QueuedJob | None:
        handle = attempt.note.handle
        if handle is None:
            return None
        try:
            job = self._wire.finished(handle)
        except (SlurmDownError, SlurmRefusedError):
            return None
        if job is None or job.phase is not Phase.OVER:
            return None
        # Accounting keeps what slurmctld forgot, and numbers are given again.
        is_older = (job.ended_s or 0) * 1_000 < attempt.note.began_at - 1_000
        return None if is_older else job

    def _look_for_checkpoints(self, now: Instant) -> None:
        register = self._register
        for key, attempt in register.attempts.items():
            if attempt.note.checkpoint is None or attempt.is_over or attempt.timeline is None:
                continue
            saved = self._checkpoints_of(key).news(attempt.note, now)
            if self._saved(attempt, saved):
                attempt.checkpointed(now)

    def _checkpoints_of(self, key: AttemptId) -> CheckpointLook:
        return self._register.looks.setdefault(key, CheckpointLook())

    def _saved(self, attempt: Attempt, saved: JobCheckpointed | None) -> bool:
        """Was a checkpoint found that is to be told?"""
        if saved is None:
            return False
        attempt.note = replace(attempt.note, saved=saved)
        self._register.keep(attempt)
        self._register.news.append(saved)
        return True

    def _report_nodes(self, now: Instant) -> None:
        ours = [share for shares in self._register.devices.values() for share in shares]
        self._register.news.extend(self._nodes.news(ours, now))
