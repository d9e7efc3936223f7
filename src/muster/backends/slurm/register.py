"""The attempts of ours on one cluster, what is noted of them, and what is to be told."""

import contextlib
import logging
import pwd
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from muster.backends.attempts import Attempt
from muster.backends.base import Run
from muster.backends.looking import CheckpointLook
from muster.backends.notes import Note, Notes
from muster.backends.slurm.gone import AttemptId, Gone
from muster.backends.slurm.listing import Key, QueuedJob
from muster.backends.slurm.pod_files import PodFiles
from muster.backends.slurm.wire import SlurmRefusedError
from muster.model.event import Event, JobEnded, JobStarted
from muster.model.job import LaunchFailed, NodeFailed
from muster.model.placement import Allocation, DeviceShare
from muster.model.value import ClusterName, Instant, JobId, UserName, replace

log = logging.getLogger(__name__)

MUSTER = UserName("muster")
LOOK_MS = 500
"""How often the queue is listed while attempts of ours are there."""
IDLE_LOOK_MS = 5_000
_SHARE = 5
"""A listing that takes long is made so much less often, so that Slurm has time for others."""


class Pace:
    """When was the queue looked at, and when the nodes; and how long until the next look."""

    def __init__(self) -> None:
        self.looked_at = self.nodes_at = Instant(0)
        self.pause_ms = self._least_ms = LOOK_MS

    def looked(self, at: Instant, *, took_ms: int, is_busy: bool) -> None:
        """The queue was listed, and that took so long."""
        self.looked_at = at
        self._least_ms = max(LOOK_MS, _SHARE * took_ms)
        self.pause_ms = self._least_ms if is_busy else max(self._least_ms, IDLE_LOOK_MS)

    def hurry(self) -> None:
        """Something was ordered: what came of it is soon to be seen."""
        self.pause_ms = self._least_ms

    def rest(self, at: Instant) -> None:
        """The cluster does not answer: it is asked again in a while."""
        self.looked_at, self.pause_ms = at, IDLE_LOOK_MS


class Register:
    """Whose attempts are there. Only the thread of its backend uses it."""

    def __init__(self, cluster: ClusterName, site: str, folder: Path) -> None:
        self._cluster, self._site = cluster, site
        self._notes = Notes(folder)
        self.pace = Pace()
        self.attempts: dict[AttemptId, Attempt] = {}
        self.unsubmitted: dict[AttemptId, Run] = {}
        self.looks: dict[AttemptId, CheckpointLook] = {}
        self.pods: dict[AttemptId, PodFiles] = {}
        self.devices: dict[AttemptId, tuple[DeviceShare, ...]] = {}
        self.allocations: dict[AttemptId, Allocation] = {}
        self.news: list[Event] = []
        self.gone = Gone(folder / "gone")
        # What carries our mark there, and nobody knows: it is left alone.
        self.orphans: tuple[str, ...] = ()
        self._uids: dict[UserName, int] = {}

    def adopt(self, allocations: Iterable[Allocation]) -> None:
        """Know these again, from their notes, and nothing else."""
        self._empty()
        known = {(note.job, note.attempt): note for note in self._notes.kept()}
        for each in allocations:
            key = (each.job, each.attempt)
            note = known.pop(key, None) or _note_of(each)
            if note is None:
                continue
            self.attempts[key] = Attempt(note=note)
            self.devices[key] = devices_of(each)
            self.allocations[key] = each
            self.news.extend(_told_again(note))
        for key, note in known.items():
            self.gone.add(key, note.handle, self._uid_of(note.user))
            self._notes.drop(*key)
        self.pace.nodes_at = Instant(0)

    def _empty(self) -> None:
        known = (self.attempts, self.unsubmitted, self.looks, self.pods, self.devices)
        for each in (*known, self.allocations, self.news):
            each.clear()

    def begin(self, run: Run, note: Note) -> None:
        """It is ours to begin: that is noted before Slurm is told."""
        key = (note.job, note.attempt)
        self.attempts[key] = Attempt(note=note)
        self.devices[key] = devices_of(run.allocation)
        self.allocations[key] = run.allocation
        self._notes.keep_job(run)
        self._notes.keep(note)

    def keep(self, attempt: Attempt) -> None:
        """Note it as it is now."""
        self._notes.keep(attempt.note)

    def finish(self, key: AttemptId, events: Iterable[Event]) -> None:
        """Tell what happened, and note an end before it is told."""
        found = tuple(events)
        if found:
            self.keep(self.attempts[key])
        for event in found:
            if isinstance(event, JobEnded):
                self.devices.pop(key, None)
                self.allocations.pop(key, None)
                if isinstance(event.why, NodeFailed):
                    self.pace.nodes_at = Instant(0)
        self.news.extend(found)

    def fail(self, run: Run, why: str, now: Instant) -> None:
        """It cannot be begun at all."""
        key = (run.job.id, run.allocation.attempt)
        log.warning("cluster %s cannot begin job %s.%s: %s", self._cluster, *key, why)
        self.unsubmitted.pop(key, None)
        note = Note(
            job=key[0],
            attempt=key[1],
            user=run.job.spec.user,
            nodes=tuple(each.node for each in run.allocation.placements),
            began_at=now,
        )
        attempt = self.attempts.setdefault(key, Attempt(note=note))
        self.finish(key, attempt.end(LaunchFailed(text=why), now))

    def forget(self, key: AttemptId) -> Attempt | None:
        """Nothing of it is kept; returns it, if it was known."""
        found = self.attempts.pop(key, None)
        self.unsubmitted.pop(key, None)
        self.looks.pop(key, None)
        self.pods.pop(key, None)
        self.devices.pop(key, None)
        self.allocations.pop(key, None)
        self._notes.drop(*key)
        if found is not None:
            self.gone.add(key, found.note.handle, self._uid_of(found.note.user))
        return found

    def pods_of(self, key: AttemptId) -> PodFiles:
        """What its pods write, and what was told of them."""
        return self.pods.setdefault(key, PodFiles(self._site))

    def is_ours(self, job: QueuedJob) -> bool:
        """Is it an attempt's? Others see our marks and can forge them, but not whose a job is."""
        attempt = self.attempts.get(attempt_id(job.key))
        if attempt is None or not self.is_marked(job):
            return False
        uid = self._uid_of(attempt.note.user)
        return self.is_handle(job) or (uid is not None and job.uid == uid)

    def is_handle(self, job: QueuedJob) -> bool:
        """Is it the very job that Slurm said it took in?"""
        attempt = self.attempts.get(attempt_id(job.key))
        return attempt is not None and attempt.note.handle == job.id

    def is_marked(self, job: QueuedJob) -> bool:
        return job.key is not None and job.key.site == self._site

    def mark(self, key: AttemptId) -> Key:
        return Key(site=self._site, job=key[0], attempt=key[1])

    def is_busy(self) -> bool:
        return bool(self.unsubmitted) or any(not each.is_over for each in self.attempts.values())

    def tried(self, ask: Callable[[], None]) -> None:
        """What Slurm refuses of a job that is leaving, or already is as it should be."""
        try:
            ask()
        except SlurmRefusedError as error:
            log.info("cluster %s refused: %s", self._cluster, error)

    def _uid_of(self, user: UserName) -> int | None:
        if user not in self._uids:
            with contextlib.suppress(KeyError):
                self._uids[user] = pwd.getpwnam(user).pw_uid
        return self._uids.get(user)


def attempt_id(key: Key | None) -> AttemptId:
    return (JobId(0), 0) if key is None else (JobId(key.job), key.attempt)


def devices_of(allocation: Allocation) -> tuple[DeviceShare, ...]:
    return tuple(share for each in allocation.placements for share in each.devices)


def handled(attempt: Attempt, handle: str) -> None:
    """Slurm calls it so."""
    attempt.note = replace(attempt.note, handle=handle)


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


def _told_again(note: Note) -> Iterator[Event]:
    """All that is known of an attempt that is over."""
    if note.ended is None:
        return
    if note.started_at is not None:
        yield JobStarted(at=note.started_at, job=note.job, attempt=note.attempt, handle=note.handle)
    if note.saved is not None:
        yield note.saved
    yield note.ended
