"""A Slurm cluster as a backend: one thread asks, orders and keeps time, and nobody waits for it."""

import contextlib
import logging
import pwd
import queue
import threading
from collections import deque
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
    OutputQuery,
    Run,
    Signal,
    Stop,
    Supply,
    Suspend,
    Wake,
)
from muster.backends.fleet import NodeWatch
from muster.backends.local.attempt.output import read_output
from muster.backends.looking import CheckpointLook
from muster.backends.notes import Note, Notes
from muster.backends.slurm.attempt import look_of
from muster.backends.slurm.commands import Commands, SlurmDownError, SlurmRefusedError
from muster.backends.slurm.listing import Key, QueuedJob, accounted, held_by_others, listed
from muster.backends.slurm.nodes import Fleet, nodes, partitions
from muster.backends.slurm.submission import Containers, Manner, prepared_for, submission
from muster.launch.attempt import in_rank_order
from muster.model.cluster import Abilities, BackendKind, Cluster
from muster.model.event import (
    ClusterSeen,
    Event,
    JobEnded,
    JobStarted,
)
from muster.model.job import LaunchFailed, NodeFailed, Requeued
from muster.model.placement import Allocation, DeviceShare
from muster.model.running import Output
from muster.model.value import (
    ClusterName,
    GpuModel,
    Instant,
    JobId,
    UserName,
    Value,
    replace,
)

Clock = Callable[[], Instant]

log = logging.getLogger(__name__)

_LOOK_MS = 500
"""How often the queue is listed while attempts of ours are there."""
_IDLE_LOOK_MS = 5_000
_NODES_MS = 10_000
_SHARE = 5
"""A listing that takes long is made so much less often, so that Slurm has time for others."""
_PATIENCE_MS = 60_000
"""How long Slurm may let a job wait whose nodes we named; then somebody else was faster."""
_AT_ONCE = 20
"""So many submissions in a row; then it is looked at what became of the others."""
_MINUTE_MS = 60_000
MUSTER = UserName("muster")

AttemptId = tuple[JobId, int]


class SlurmLink(Value):
    """A cluster as the administrator named it.

    site: which Muster this is, in the marks on our jobs.
    """

    name: ClusterName
    site: str
    manner: Manner = Manner()
    only: tuple[str, ...] = ()
    models: dict[str, GpuModel] = {}  # noqa: RUF012 -- copied by the value
    order: int = 0


class SlurmBackend:
    """What is sent is queued for the thread; what it finds out is kept until it is observed."""

    def __init__(
        self, link: SlurmLink, commands: Commands, folder: Path, wake: Wake, clock: Clock
    ) -> None:
        self._link, self._commands, self._wake, self._clock = link, commands, wake, clock
        self._notes = Notes(folder)
        self._fleet = Fleet(cluster=link.name, only=link.only, models=link.models)
        self._abilities = Abilities(
            mig=False,
            mps=False,
            time_share=False,
            repartition=False,
            device_wall=False,
            images=link.manner.containers is not Containers.NONE,
            image_files=link.manner.containers is not Containers.NONE,
        )
        self._reachable = False
        self._actions: queue.SimpleQueue[Action | None] = queue.SimpleQueue()
        self._backlog: deque[Action] = deque()
        self._news: list[Event] = []
        self._told: tuple[Event, ...] = ()
        self._lock = threading.Lock()
        self._adopting = False
        self._attempts: dict[AttemptId, Attempt] = {}
        self._unsubmitted: dict[AttemptId, Run] = {}
        self._looks: dict[AttemptId, CheckpointLook] = {}
        self._devices: dict[AttemptId, tuple[DeviceShare, ...]] = {}
        self._uids: dict[UserName, int] = {}
        self._nodes = NodeWatch()
        self._looked_at = self._nodes_at = Instant(0)
        self._pause_ms = _LOOK_MS
        self._thread: threading.Thread | None = None

    @property
    def cluster(self) -> Cluster:
        return Cluster(
            name=self._link.name,
            backend=BackendKind.SLURM,
            abilities=self._abilities,
            order=self._link.order,
            reachable=self._reachable,
            place=f"slurm:{self._link.site}",
        )

    def adopt(self, allocations: tuple[Allocation, ...]) -> None:
        """What Slurm still knows goes on; whatever else is marked as ours ends."""
        self._stop_thread()
        self._report_from_the_start()
        known = {(note.job, note.attempt): note for note in self._notes.kept()}
        for each in allocations:
            key = (each.job, each.attempt)
            note = known.pop(key, None) or _note_of(each)
            if note is None:
                continue
            self._attempts[key] = Attempt(note=note)
            self._devices[key] = _devices_of(each)
            if note.ended is not None:
                self._news.extend(_told_again(note))
        for job, attempt in known:
            self._notes.drop(job, attempt)
        self._adopting = True
        self._nodes_at = Instant(0)
        self._turn(())
        if not self._reachable:
            self._report_cluster(self._clock())
            self._publish()
        self._thread = threading.Thread(target=self._work, name=f"slurm-{self._link.name}")
        self._thread.start()

    def do(self, action: Action) -> None:
        self._actions.put(action)

    def observe(self, now: Instant) -> tuple[Event, ...]:  # noqa: ARG002 -- the port's
        with self._lock:
            found, self._told = self._told, ()
        return found

    def output(self, query: OutputQuery) -> Output:
        """Where this machine sees the cluster's files."""
        return read_output(query)

    def close(self) -> None:
        self._stop_thread()

    def _stop_thread(self) -> None:
        if self._thread is not None:
            self._actions.put(None)
            self._thread.join()
            self._thread = None

    def _report_from_the_start(self) -> None:
        self._news.clear()
        self._told = ()
        self._attempts.clear()
        self._unsubmitted.clear()
        self._looks.clear()
        self._devices.clear()
        self._backlog.clear()
        self._nodes.forget()
        self._reachable = False

    # The thread: take what was sent, look, do what is due, wait.

    def _work(self) -> None:
        while True:
            try:
                action = self._actions.get(timeout=self._wait_ms() / 1_000)
            except queue.Empty:
                self._turn(())
                continue
            taken = [action]
            while len(taken) < _AT_ONCE and not self._actions.empty():
                taken.append(self._actions.get())
            self._turn([each for each in taken if each is not None])
            if None in taken:
                return

    def _turn(self, actions: Iterable[Action]) -> None:
        now = self._clock()
        try:
            self._backlog.extend(actions)
            while self._backlog:
                self._take_or_refuse(self._backlog[0])
                self._backlog.popleft()
            if now - self._nodes_at >= _NODES_MS:
                self._see_nodes(now)
            if now - self._looked_at >= self._pause_ms or self._unsubmitted:
                self._look(now)
            if now - self._nodes_at >= _NODES_MS:
                # A node failed under a job: that is told with its end, so that none goes there.
                self._see_nodes(now)
            self._submit_again()
            self._act()
            self._set_reachable(reachable=True)
        except (SlurmDownError, SlurmRefusedError, OSError) as error:
            log.warning("cluster %s does not answer: %s", self._link.name, error)
            self._looked_at = now
            self._pause_ms = _IDLE_LOOK_MS
            self._set_reachable(reachable=False)
        self._publish()

    def _publish(self) -> None:
        """What one turn found is observed together: a cluster that answers, and all its nodes."""
        if not self._news:
            return
        with self._lock:
            self._told = (*self._told, *self._news)
        self._news.clear()
        self._wake()

    def _wait_ms(self) -> int:
        now = self._clock()
        dues = [each.next_due() for each in self._attempts.values()]
        soonest = min((due for due in dues if due is not None), default=now + _IDLE_LOOK_MS)
        return max(20, min(soonest, self._looked_at + self._pause_ms) - now)

    def _set_reachable(self, *, reachable: bool) -> None:
        if reachable != self._reachable:
            self._reachable = reachable
            self._report_cluster(self._clock())

    def _report_cluster(self, now: Instant) -> None:
        self._news.append(ClusterSeen(at=now, cluster=self.cluster))

    def _take_or_refuse(self, action: Action) -> None:
        self._ask_or_refuse(action, partial(self._take, action))

    def _ask_or_refuse(self, action: Action, ask: Callable[[], None]) -> None:
        """What cannot be done at all ends its attempt, and no other."""
        try:
            ask()
        except (SlurmDownError, OSError):
            raise
        except Exception as error:
            log.exception("cluster %s cannot do %s", self._link.name, type(action).__name__)
            if not isinstance(action, Run):
                return
            key = (action.job.id, action.allocation.attempt)
            self._unsubmitted.pop(key, None)
            note = Note(
                job=key[0],
                attempt=key[1],
                user=action.job.spec.user,
                nodes=tuple(each.node for each in action.allocation.placements),
                began_at=self._clock(),
            )
            attempt = self._attempts.setdefault(key, Attempt(note=note))
            self._finish(key, attempt.end(LaunchFailed(text=str(error)), self._clock()))

    def _take(self, action: Action) -> None:
        match action:
            case Run():
                self._run(in_rank_order(action))
            case Stop():
                self._stop(action)
            case Suspend() | Continue() | Signal() | Limit():
                attempt = self._attempts.get((action.job, action.attempt))
                if attempt is not None and not attempt.is_over:
                    self._order(attempt, action)
            case Forget():
                self._forget((action.job, action.attempt))
            case Supply() | Cut() | Mend():
                """Pods and MIG are not among its abilities, and its nodes are Slurm's to mend."""

    def _run(self, run: Run) -> None:
        key = (run.job.id, run.allocation.attempt)
        known = self._attempts.get(key)
        if known is not None and (known.is_over or known.note.handle is not None):
            return
        if known is None:
            self._attempts[key] = Attempt(note=_begun(run, self._clock()))
            self._devices[key] = _devices_of(run.allocation)
            self._keep(self._attempts[key])
        self._unsubmitted[key] = run
        if known is None:
            with contextlib.suppress(SlurmDownError):
                self._submit(key)

    def _submit_again(self) -> None:
        """Those that could not be submitted; the queue was just listed, and has none of them."""
        for key, run in tuple(self._unsubmitted.items()):
            self._ask_or_refuse(run, partial(self._submit, key))

    def _submit(self, key: AttemptId) -> None:
        run, attempt = self._unsubmitted[key], self._attempts[key]
        asked = submission(run, self._mark(key), self._link.manner)
        try:
            handle = self._commands.submit(asked, run.job.spec.user)
        except SlurmRefusedError as error:
            del self._unsubmitted[key]
            self._finish(key, attempt.end(LaunchFailed(text=str(error)), self._clock()))
            return
        del self._unsubmitted[key]
        attempt.note = replace(attempt.note, handle=handle)
        self._keep(attempt)
        self._pause_ms = _LOOK_MS

    def _stop(self, order: Stop) -> None:
        key = (order.job, order.attempt)
        attempt = self._attempts.get(key)
        if attempt is None:
            note = Note(
                job=order.job,
                attempt=order.attempt,
                user=MUSTER,
                nodes=(),
                began_at=self._clock(),
            )
            attempt = self._attempts[key] = Attempt(note=note)
        if attempt.is_over:
            return
        attempt.stop(order, self._clock())
        self._keep(attempt)
        is_there = attempt.note.handle is not None
        if not is_there:
            self._unsubmitted.pop(key, None)
            self._finish(key, attempt.end(order.why, self._clock()))

    def _order(self, attempt: Attempt, action: Suspend | Continue | Signal | Limit) -> None:
        handle = attempt.note.handle
        match action:
            case Limit():
                attempt.limit(action)
                self._keep(attempt)
                if handle is not None:
                    self._tell_limit(attempt, handle)
            case _ if handle is None:
                return
            case Suspend():
                self._tried(partial(self._commands.suspend, handle))
            case Continue():
                if attempt.seen is not None and attempt.seen.phase is Phase.STANDS:
                    self._tried(partial(self._commands.do, handle, Resume()))
            case Signal(step=int(step), signal=number):
                self._tried(partial(self._commands.signal_step, handle, step, number))
            case Signal(signal=number, shell_only=first_only):
                deed = Send(signal=number, first_only=first_only)
                self._tried(partial(self._commands.do, handle, deed))
        self._pause_ms = _LOOK_MS

    def _tell_limit(self, attempt: Attempt, handle: str) -> None:
        """Slurm's own limit stays behind ours."""
        began, ends_at = attempt.timeline, attempt.note.ends_at
        minutes = None
        if began is not None and ends_at is not None:
            minutes = max(1, (ends_at - began.began_ms + attempt.note.grace) // _MINUTE_MS + 5)
        self._tried(partial(self._commands.limit, handle, minutes))

    def _forget(self, key: AttemptId) -> None:
        attempt = self._attempts.pop(key, None)
        self._unsubmitted.pop(key, None)
        self._looks.pop(key, None)
        self._devices.pop(key, None)
        if attempt is not None and not attempt.is_over and attempt.note.handle is not None:
            handle = attempt.note.handle
            self._tried(partial(self._commands.do, handle, Kill()))
        self._notes.drop(*key)

    def _tried(self, ask: Callable[[], None]) -> None:
        """What Slurm refuses of a job that is leaving, or already is as it should be."""
        try:
            ask()
        except SlurmRefusedError as error:
            log.info("cluster %s refused: %s", self._link.name, error)

    # Looking

    def _see_nodes(self, now: Instant) -> None:
        found = partitions(self._commands.partitions())
        self._fleet = replace(self._fleet, partitions=found)
        longest = {each.name: each.max_time for each in found}
        manner = replace(self._link.manner, longest=longest)
        self._link = replace(self._link, manner=manner)
        self._nodes.are(nodes(self._commands.nodes(), self._fleet))
        self._nodes_at = now
        self._report_nodes(now)

    def _look(self, now: Instant) -> None:
        jobs = sorted(listed(self._commands.jobs()), key=lambda job: int(job.id))
        took_ms = self._clock() - now
        self._looked_at = now
        self._pause_ms = max(_LOOK_MS if self._is_busy() else _IDLE_LOOK_MS, _SHARE * took_ms)
        # Components of one job carry one mark: the first of them stands for all.
        ours = {_attempt_id(job.key): job for job in reversed(jobs) if self._is_ours(job)}
        self._nodes.others_hold(held_by_others(job for job in jobs if not self._is_ours(job)))
        for key, job in ours.items():
            self._look_at(key, job, now)
        if self._adopting:
            self._end_strangers(jobs)
            self._adopting = False
        self._find_lost(ours, now)
        self._look_for_checkpoints(now)
        self._report_nodes(now)

    def _is_ours(self, job: QueuedJob) -> bool:
        """Is it an attempt's? Others see our marks and can forge them, but not whose a job is."""
        attempt = self._attempts.get(_attempt_id(job.key))
        if attempt is None or not self._is_marked(job):
            return False
        uid = self._uid_of(attempt.note.user)
        return attempt.note.handle == job.id or (uid is not None and job.uid == uid)

    def _is_marked(self, job: QueuedJob) -> bool:
        return job.key is not None and job.key.site == self._link.site

    def _uid_of(self, user: UserName) -> int | None:
        if user not in self._uids:
            with contextlib.suppress(KeyError):
                self._uids[user] = pwd.getpwnam(user).pw_uid
        return self._uids.get(user)

    def _look_at(self, key: AttemptId, job: QueuedJob, now: Instant) -> None:
        attempt = self._attempts.get(key)
        if attempt is None or attempt.is_over:
            return
        if attempt.note.handle != job.id:
            # It was submitted, and the answer did not come.
            attempt.note = replace(attempt.note, handle=job.id)
            self._keep(attempt)
        self._unsubmitted.pop(key, None)
        self._finish(key, attempt.look(look_of(job, attempt.note), now))
        waited = now - attempt.note.began_at
        is_stuck = job.phase is Phase.WAITS and waited > _PATIENCE_MS
        if is_stuck and not self._link.manner.delegates and attempt.note.stop is None:
            why = Requeued(by=MUSTER)
            attempt.stop(Stop(job=key[0], attempt=key[1], why=why, grace=attempt.note.grace), now)
            self._keep(attempt)

    def _end_strangers(self, jobs: Iterable[QueuedJob]) -> None:
        """What is marked as ours and is not known: nobody waits for it any more."""
        for job in jobs:
            is_known = _attempt_id(job.key) in self._attempts
            if self._is_marked(job) and not is_known and job.phase is not Phase.OVER:
                self._tried(partial(self._commands.do, job.id, Kill()))

    def _find_lost(self, ours: dict[AttemptId, QueuedJob], now: Instant) -> None:
        """Those that Slurm no longer lists: its accounting may still know how they ended."""
        for key, attempt in tuple(self._attempts.items()):
            if attempt.is_over or key in ours or key in self._unsubmitted:
                continue
            if attempt.note.handle is None and attempt.note.started_at is None:
                # It is sent again, and then submitted unless it was.
                continue
            job = self._remembered(attempt)
            self._finish(
                key,
                attempt.lost(now) if job is None else attempt.look(look_of(job, attempt.note), now),
            )

    def _remembered(self, attempt: Attempt) -> QueuedJob | None:
        handle = attempt.note.handle
        if handle is None:
            return None
        try:
            rows = self._commands.finished(handle).splitlines()
        except (SlurmDownError, SlurmRefusedError):
            return None
        return accounted(handle, rows[-1]) if rows else None

    def _look_for_checkpoints(self, now: Instant) -> None:
        for key, attempt in self._attempts.items():
            if attempt.note.checkpoint is None or attempt.is_over or attempt.timeline is None:
                continue
            saved = self._looks.setdefault(key, CheckpointLook()).news(attempt.note, now)
            if saved is not None:
                attempt.note = replace(attempt.note, saved=saved)
                attempt.checkpointed(now)
                self._keep(attempt)
                self._news.append(saved)

    def _report_nodes(self, now: Instant) -> None:
        ours = [share for shares in self._devices.values() for share in shares]
        self._news.extend(self._nodes.news(ours, now))

    def _act(self) -> None:
        now = self._clock()
        for attempt in tuple(self._attempts.values()):
            for deed in attempt.due(now):
                self._tried(partial(self._commands.do, attempt.note.handle or "", deed))
                self._pause_ms = _LOOK_MS

    def _finish(self, key: AttemptId, events: Iterable[Event]) -> None:
        """Tell what happened, and note an end before it is told."""
        found = tuple(events)
        if found:
            self._keep(self._attempts[key])
        for event in found:
            if isinstance(event, JobEnded):
                self._devices.pop(key, None)
                if isinstance(event.why, NodeFailed):
                    self._nodes_at = Instant(0)
        self._news.extend(found)

    def _is_busy(self) -> bool:
        return bool(self._unsubmitted) or any(not each.is_over for each in self._attempts.values())

    def _keep(self, attempt: Attempt) -> None:
        self._notes.keep(attempt.note)

    def _mark(self, key: AttemptId) -> Key:
        return Key(site=self._link.site, job=key[0], attempt=key[1])


def _attempt_id(key: Key | None) -> AttemptId:
    return (JobId(0), 0) if key is None else (JobId(key.job), key.attempt)


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
    )


def _note_of(allocation: Allocation) -> Note | None:
    """What can be known of an attempt that somebody else began; None: it was never begun."""
    if allocation.started_at is None:
        return None
    return Note(
        job=allocation.job,
        attempt=allocation.attempt,
        user=MUSTER,
        nodes=tuple(each.node for each in allocation.placements),
        began_at=allocation.placed_at,
        started_at=allocation.started_at,
        handle=allocation.handle,
    )


def _told_again(note: Note) -> Iterable[Event]:
    """All that is known of an attempt that is over."""
    if note.ended is None:
        return
    if note.started_at is not None:
        yield JobStarted(at=note.started_at, job=note.job, attempt=note.attempt, handle=note.handle)
    if note.saved is not None:
        yield note.saved
    yield note.ended


def _devices_of(allocation: Allocation) -> tuple[DeviceShare, ...]:
    return tuple(share for each in allocation.placements for share in each.devices)
