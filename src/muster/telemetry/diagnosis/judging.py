"""Judges a minute of an attempt: one cause and one waste for each of its devices (pure).

judged, course = judge(minute, course, limits)
"""

from collections.abc import Mapping, Sequence

from muster.model.finding import Cause
from muster.model.value import DeviceId, Duration, NodeId, Value
from muster.telemetry.diagnosis import course as courses
from muster.telemetry.diagnosis.course import DeviceCourse, JobCourse
from muster.telemetry.diagnosis.rules import Peers, Scene, cause_of, has_profile
from muster.telemetry.diagnosis.signals import MISSING, Signals, median
from muster.telemetry.diagnosis.thresholds import STARTING_VALUES, Thresholds


class Part(Value, gc=False, cache_hash=True):
    """What an attempt holds of one device: all of it, or one MIG instance."""

    node: NodeId
    device: DeviceId
    instance: int | None = None
    start: int | None = None


class Member(Value, gc=False):
    """One part in one minute. held: how much of the minute the attempt had it."""

    part: Part
    signals: Signals
    held: Duration


class Course(Value):
    """What came before in one attempt."""

    job: JobCourse = JobCourse()
    devices: Mapping[Part, DeviceCourse] = {}


class Judged(Value, gc=False):
    """The one cause of one part in one minute. slack_milli: what of it bought nothing."""

    member: Member
    cause: Cause
    slack_milli: int


def judge(
    members: Sequence[Member], before: Course, limits: Thresholds = STARTING_VALUES
) -> tuple[tuple[Judged, ...], Course]:
    """One cause for each member, in their order, and the course at the end of the minute."""
    known = before.devices
    devices = dict(known)
    for each in members:
        course = known.get(each.part, _BEGINNING)
        devices[each.part] = courses.after(course, each.signals, each.held, limits)
    peers = _together(members, devices, before.job, limits)
    judged = tuple([_judged(each, devices[each.part], peers, limits) for each in members])
    written = members[0].signals.written if members else MISSING
    job = courses.job_after(before.job, written, peers.stuck_ms)
    return judged, Course(job=job, devices=devices)


_BEGINNING = DeviceCourse()


def _judged(member: Member, course: DeviceCourse, peers: Peers, limits: Thresholds) -> Judged:
    scene = Scene(now=member.signals, course=course, peers=peers, limits=limits)
    cause = cause_of(scene)
    return Judged(
        member=member, cause=cause, slack_milli=slack_milli(cause, member.signals, limits)
    )


def _together(
    members: Sequence[Member],
    devices: Mapping[Part, DeviceCourse],
    before: JobCourse,
    limits: Thresholds,
) -> Peers:
    """All members seen at once: for how long all stand, and whether they wait for one of them."""
    if len(members) == 1:
        return _alone(members[0], devices, before, limits)
    stuck_ms = 0
    if all(_is_stuck(each.signals, limits) for each in members):
        stuck_ms = before.stuck_ms + max((each.held for each in members), default=0)
    now = [devices[each.part] for each in members]
    return Peers(
        count=len(members),
        nodes=len({each.part.node for each in members}),
        touched=any(each.touched for each in now),
        working=any(each.touched and not each.untouched_ms for each in now),
        still_ms=min((each.still_ms for each in now), default=0),
        stuck_ms=stuck_ms,
        others_wait=_others_wait(members, limits),
        usually_written=before.usually_written,
    )


def _alone(
    member: Member, devices: Mapping[Part, DeviceCourse], before: JobCourse, limits: Thresholds
) -> Peers:
    """The same for one member, which most attempts have: it takes half as long."""
    course = devices[member.part]
    stuck = _is_stuck(member.signals, limits)
    return Peers(
        touched=course.touched,
        working=False,
        still_ms=course.still_ms,
        stuck_ms=before.stuck_ms + member.held if stuck else 0,
        usually_written=before.usually_written,
    )


def _is_stuck(signals: Signals, limits: Thresholds) -> bool:
    return (
        signals.busy < limits.nothing
        and signals.cpu < limits.nothing
        and signals.blocked > limits.stuck_blocked
    )


def _others_wait(members: Sequence[Member], limits: Thresholds) -> bool:
    """Is one slower than the rest, while all seem busy and somebody has time to spare?"""
    seen = [each.signals for each in members]
    if not all(each.busy >= limits.starved for each in seen):
        return False
    slow = limits.straggling * median([each.clock for each in seen]) / 1_000
    if any(each.clock <= slow for each in seen):
        return True
    if has_profile(seen[0]):
        done, usually_good = [each.sm for each in seen], limits.good
    else:
        done = [each.power for each in seen]
        usually_good = limits.good_power_unprofiled
    usual = median(done)
    return usual < usually_good and max(done) >= limits.longer * usual / 1_000


def slack_milli(cause: Cause, signals: Signals, limits: Thresholds) -> int:
    """What of the minute bought nothing, in thousandths.

    Where nothing was measured, nothing is claimed. Lost clocks and unused tensor cores do not show
    in how long the GPU computed, so they are counted by what they are.
    """
    if cause in _NO_WASTE:
        return 0
    if cause in _ALL_WASTE:
        return 1_000
    unused = 1_000 - _useful(signals) * 1_000 / limits.goal
    if cause in _LOST_CLOCKS and signals.clock < 1_000:
        unused = max(unused, 1_000 - signals.clock)
    if cause is Cause.NO_TENSOR:
        unused = max(unused, signals.fp32 / 2)
    # Not so where it is missing.
    return round(min(unused, 1_000)) if unused > 0 else 0


def _useful(signals: Signals) -> float:
    if has_profile(signals):
        return max(0, signals.sm, signals.dram)
    useful = signals.busy
    if signals.clock > 0:
        useful = useful * min(signals.clock, 1_000) / 1_000
    return min(useful, signals.power) if signals.power > 0 else useful


_NO_WASTE = frozenset({Cause.FINE, Cause.MEMORY_BOUND, Cause.UNKNOWN})
_ALL_WASTE = frozenset(
    {
        Cause.BROKEN,
        Cause.STARTING,
        Cause.NEVER_USED,
        Cause.SOME_UNUSED,
        Cause.IDLE,
        Cause.HANG,
    }
)
_LOST_CLOCKS = frozenset({Cause.HEAT, Cause.POWER, Cause.BRAKE, Cause.CLOCKS, Cause.STRAGGLER})
