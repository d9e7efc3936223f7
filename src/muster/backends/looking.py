"""Looks for what attempts elsewhere wrote, where this machine sees the files of their cluster."""

import contextlib
from collections.abc import Callable, Sequence
from functools import partial

from muster.backends.checkpoints import CheckpointPlace, CheckpointWatch, Seen, candidates
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
        return self._told(note, now, self._watch.news)

    def last(
        self, note: Note, now: Instant, *, killed_at: Instant | None
    ) -> JobCheckpointed | None:
        """The same when nothing writes any more; killed_at: unless it ended by itself."""
        return self._told(note, now, partial(self._watch.last_news, killed_at_ms=killed_at))

    def _told(
        self, note: Note, now: Instant, newest: Callable[[Sequence[Seen]], Seen | None]
    ) -> JobCheckpointed | None:
        if note.checkpoint is None:
            return None
        with contextlib.suppress(LaunchError, OSError):
            user = local_user(note.user)
            place = CheckpointPlace(path=note.checkpoint.path, uid=user.uid, since_ms=note.began_at)
            with opening_as(user):
                found = candidates(place)
            seen = newest(found)
            if seen is not None:
                at = Instant(min(seen.mtime_ms, now))
                return JobCheckpointed(at=at, job=note.job, attempt=note.attempt, path=seen.path)
        return None
