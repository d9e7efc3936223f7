"""The wire between the controller and the forecaster's process: only what changed goes over it."""

import msgspec

from muster.controller.planner.protocol import SnapshotDelta
from muster.model.dates import Foreseen, KeptDate, Moved, StartDate
from muster.model.history import Ended
from muster.model.site import Site
from muster.model.value import JobId, Value

DATES_AT_ONCE = 2_000
"""So many dates go into one frame: decoding them must not hold up the other threads."""


class Lessons(Value):
    """What a forecaster learns from, the oldest first: jobs that ended, and dates that came due."""

    ended: tuple[Ended, ...] = ()
    kept: tuple[KeptDate, ...] = ()


class Supposed(Value):
    """A world that differs from the one as it is, and its rules.

    job: whose date in it is asked for; without one, which jobs move.
    """

    delta: SnapshotDelta
    site: Site
    job: JobId | None = None


class ForecastRequest(Value):
    """Say when those start who wait in the world that this delta leads to.

    site: None if the rules are as they were. lessons: what is new.
    supposed: say it of this world instead, and forget it.
    """

    delta: SnapshotDelta
    site: Site | None = None
    lessons: Lessons = Lessons()
    supposed: Supposed | None = None


class JobDate(Value):
    """The date of one job, and what it was made from."""

    job: JobId
    date: StartDate
    foreseen: Foreseen


class DatesReply(Value):
    """Some dates; more frames follow until the last, and take the place of earlier ones.

    moved: only of a supposed world.
    """

    told: tuple[JobDate, ...]
    is_last: bool
    moved: tuple[Moved, ...] = ()


encode = msgspec.msgpack.Encoder().encode
decode_request = msgspec.msgpack.Decoder(ForecastRequest).decode
decode_reply = msgspec.msgpack.Decoder(DatesReply).decode
