"""What came before in a job: what a single minute cannot tell (pure)."""

from muster.model.value import MINUTE, Duration, Value
from muster.telemetry.diagnosis.signals import MISSING, Signals, low_quarter
from muster.telemetry.diagnosis.thresholds import Thresholds

_REMEMBERED_RATES = 30
_FEWEST_RATES = 3
_REMEMBERED_IDLE = Duration(15 * MINUTE)
_A_BUSY_MINUTE = 3


class DeviceCourse(Value, gc=False):
    """One device of an attempt up to the end of a minute.

    touched: the job has had a process there. untouched_ms, still_ms: for how long, up to now, it
    had none; it seemed to compute and did nothing that can be seen. idle_ms: for how long it
    computed nothing, less three minutes for each minute in which it did: somebody who looks in now
    and then does not make a device used.
    """

    held_ms: int = 0
    touched: bool = False
    untouched_ms: int = 0
    idle_ms: int = 0
    still_ms: int = 0


class JobCourse(Value, gc=False):
    """What the attempt wrote lately, KiB a second minute by minute, and how long it is stuck."""

    written: tuple[float, ...] = ()
    stuck_ms: int = 0

    @property
    def usually_written(self) -> float:
        """The rate of the quieter minutes; missing until there are some."""
        return low_quarter(self.written) if len(self.written) >= _FEWEST_RATES else MISSING


def after(
    course: DeviceCourse, signals: Signals, length_ms: int, limits: Thresholds
) -> DeviceCourse:
    """The course at the end of this minute. What was not measured changes no stretch."""
    touched = is_touched(signals, limits)
    untouched_ms = 0 if touched else course.untouched_ms
    if is_untouched(signals, limits):
        untouched_ms = course.untouched_ms + length_ms
    return DeviceCourse(
        held_ms=course.held_ms + length_ms,
        touched=course.touched or touched,
        untouched_ms=untouched_ms,
        idle_ms=_idle_ms(course.idle_ms, length_ms, signals, limits),
        still_ms=course.still_ms + length_ms if is_still(signals, limits) else 0,
    )


def job_after(course: JobCourse, written: float, stuck_ms: int) -> JobCourse:
    """The course of the whole attempt at the end of this minute."""
    known = written == written  # noqa: PLR0124 - not so where it is missing
    return JobCourse(
        written=(*course.written, written)[-_REMEMBERED_RATES:] if known else course.written,
        stuck_ms=stuck_ms,
    )


def is_touched(signals: Signals, limits: Thresholds) -> bool:
    """Is a process of the job there? Memory and work tell, where processes are not listed."""
    if signals.processes == signals.processes:
        return signals.processes > 0 or signals.busy >= limits.nothing
    return signals.busy >= limits.nothing or signals.memory >= limits.untouched_memory


def is_untouched(signals: Signals, limits: Thresholds) -> bool:
    """Is certainly no process of the job there?"""
    if signals.processes == signals.processes:
        return signals.processes == 0 and not signals.busy >= limits.nothing
    return signals.busy < limits.nothing and signals.memory < limits.untouched_memory


def is_still(signals: Signals, limits: Thresholds) -> bool:
    """Is it busy without drawing power or moving anything: a kernel that waits for ever?

    Small kernels look much like it. With GPM they differ in that they compute something; without
    it, that nothing at all is read or written, and that no instant was free, is asked beside.
    """
    if signals.sm == signals.sm:
        return (
            signals.busy >= limits.still_busy
            and signals.tensor < limits.nothing
            and signals.dram < limits.nothing
            and not signals.fp32 >= limits.still_fp32
            and not signals.fp64 >= limits.still_fp32
            and not signals.link >= limits.still_link
            and signals.power < limits.still_power
        )
    return (
        signals.busy >= limits.still_busy_unprofiled
        and signals.power < limits.still_power
        and signals.moved < limits.still_moved
        and not signals.link >= limits.still_link
    )


def _idle_ms(before_ms: int, length_ms: int, signals: Signals, limits: Thresholds) -> int:
    if signals.busy >= limits.nothing:
        return max(0, before_ms - _A_BUSY_MINUTE * length_ms) if before_ms else 0
    if signals.busy < limits.nothing:
        return min(before_ms + length_ms, _REMEMBERED_IDLE)
    return before_ms
