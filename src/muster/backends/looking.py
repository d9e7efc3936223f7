"""Looks for what attempts elsewhere wrote, where this machine sees the files of their cluster."""

import contextlib

from muster.backends.checkpoints import CheckpointPlace, CheckpointWatch, candidates
from muster.backends.local.isolation.users import LaunchError, local_user, opening_as
from muster.backends.notes import Note
from muster.model.event import JobCheckpointed
from muster.model.value import Instant


class CheckpointLook:
    """Looks for the checkpoints of one attempt, where this machine sees the cluster's files."""

    def __init__(self) -> None:
        self._watch = CheckpointWatch()

    def news(self, note: Note, now: Instant) -> JobCheckpointed | None:
        """A finished checkpoint that was not told before; with the user's rights alone."""
        if note.checkpoint is None:
            return None
        with contextlib.suppress(LaunchError, OSError):
            user = local_user(note.user)
            place = CheckpointPlace(path=note.checkpoint.path, uid=user.uid, since_ms=note.began_at)
            with opening_as(user):
                found = candidates(place)
            seen = self._watch.news(found)
            if seen is not None:
                at = Instant(min(seen.mtime_ms, now))
                return JobCheckpointed(at=at, job=note.job, attempt=note.attempt, path=seen.path)
        return None
