"""The decision list: the first rule that holds names the cause of a minute (pure).

A rule is a function of one `Scene`. A signal that is missing makes every comparison false, so that
a rule holds only on what was measured. To add one: write it, and name it in `RULES` in its place.
"""

from collections.abc import Callable

from muster.model.finding import Cause
from muster.model.value import Value
from muster.telemetry.diagnosis.course import DeviceCourse
from muster.telemetry.diagnosis.signals import MISSING, Signals
from muster.telemetry.diagnosis.thresholds import Thresholds


class Peers(Value, gc=False):
    """All devices of the attempt together in this minute.

    touched: the job has had a process on one of them; working: it has one now. still_ms, stuck_ms:
    for how long all of them have stood. others_wait: one of them is slower than the rest, which
    waits. usually_written: KiB a second, of the whole job.
    """

    count: int = 1
    nodes: int = 1
    touched: bool = True
    working: bool = True
    still_ms: int = 0
    stuck_ms: int = 0
    others_wait: bool = False
    usually_written: float = MISSING


class Scene(Value, gc=False):
    """What a rule sees: one device in one minute, what came before it, and its peers."""

    now: Signals
    course: DeviceCourse
    peers: Peers
    limits: Thresholds


def cause_of(scene: Scene) -> Cause:
    """The cause of this minute; UNKNOWN where no rule holds."""
    for cause, holds in RULES:
        if holds(scene):
            return cause
    return Cause.UNKNOWN


def has_profile(signals: Signals) -> bool:
    """Does it say what the parts of the GPU did?"""
    return signals.sm == signals.sm


def _broken(scene: Scene) -> bool:
    return scene.now.is_broken


def _starting(scene: Scene) -> bool:
    course = scene.course
    return (
        not course.touched
        and course.untouched_ms > 0
        and course.held_ms <= scene.limits.start_patience
    )


def _never_used(scene: Scene) -> bool:
    return (
        not scene.peers.touched
        and scene.course.untouched_ms > 0
        and scene.course.held_ms > scene.limits.start_patience
    )


def _some_unused(scene: Scene) -> bool:
    return scene.peers.working and scene.course.untouched_ms > scene.limits.start_patience


def _hang(scene: Scene) -> bool:
    patience = scene.limits.still_patience
    return scene.peers.still_ms >= patience or scene.peers.stuck_ms >= patience


def _idle(scene: Scene) -> bool:
    return (
        scene.course.touched
        and scene.now.busy < scene.limits.nothing
        and scene.course.idle_ms > scene.limits.idle_patience
    )


def _heat(scene: Scene) -> bool:
    return scene.now.heat > scene.limits.throttled and _computes(scene)


def _power(scene: Scene) -> bool:
    """GPUs at full work keep to their power limit all the time; only lost clocks count."""
    return (
        scene.now.power_cap > scene.limits.throttled
        and scene.now.clock < scene.limits.slow_clock
        and _computes(scene)
    )


def _brake(scene: Scene) -> bool:
    return scene.now.brake > scene.limits.throttled and _computes(scene)


def _clocks(scene: Scene) -> bool:
    return (
        scene.now.clocks_set > scene.limits.throttled
        and scene.now.clock < scene.limits.slow_clock
        and _computes(scene)
    )


def _checkpoint(scene: Scene) -> bool:
    now, limits = scene.now, scene.limits
    usual = scene.peers.usually_written
    return (
        now.busy < limits.burst_busy
        and now.written > limits.burst * max(usual, 1_024)
        and usual >= 0
    )


def _straggler(scene: Scene) -> bool:
    return scene.peers.others_wait


def _input_io(scene: Scene) -> bool:
    now, limits = scene.now, scene.limits
    return now.busy < limits.starved and now.io > limits.io and not now.cpu >= limits.io_cpu


def _input_cpu(scene: Scene) -> bool:
    now, limits = scene.now, scene.limits
    return now.busy < limits.starved and (
        now.cpu >= limits.cpu or now.cpu_throttled > limits.cpu_throttled
    )


def _host(scene: Scene) -> bool:
    now, limits = scene.now, scene.limits
    return (
        now.busy < limits.starved
        and now.thread >= limits.thread
        and not now.cpu >= limits.thread_cpu
    )


def _waiting(scene: Scene) -> bool:
    now, limits = scene.now, scene.limits
    return (
        now.busy < limits.starved
        and now.cpu < limits.quiet_cpu
        and not now.thread >= limits.quiet_thread
        and not now.io >= limits.quiet_io
    )


def _copying(scene: Scene) -> bool:
    now, limits = scene.now, scene.limits
    return now.pcie >= limits.copying or (now.is_narrow and now.pcie >= limits.copying_narrow)


def _communication(scene: Scene) -> bool:
    now, limits, peers = scene.now, scene.limits, scene.peers
    talks = now.link >= limits.talking or (
        peers.nodes > 1 and now.network >= limits.talking_network
    )
    if peers.count < 2 or not talks or not now.busy >= limits.starved:
        return False
    if has_profile(now):
        return now.sm < limits.talking_sm
    return now.power < limits.talking_power_unprofiled


def _no_tensor(scene: Scene) -> bool:
    """FP64 has its reasons, and is not told to change."""
    now, limits = scene.now, scene.limits
    return (
        now.sm >= limits.plain
        and now.tensor < limits.tensor + now.fp32 * limits.tensor_echo / 1_000
        and now.fp32 >= limits.plain_fp32
        and not now.dram >= limits.memory_bound
        and not now.fp64 >= limits.plain_fp32
    )


def _memory_bound(scene: Scene) -> bool:
    now, limits = scene.now, scene.limits
    return now.dram >= limits.memory_bound and not now.tensor >= limits.good_tensor


def _fine(scene: Scene) -> bool:
    now, limits = scene.now, scene.limits
    if has_profile(now):
        return now.sm >= limits.good or now.dram >= limits.good or now.tensor >= limits.good_tensor
    return now.busy >= limits.starved and now.power >= limits.good_power_unprofiled


def _small_work(scene: Scene) -> bool:
    now, limits = scene.now, scene.limits
    if has_profile(now):
        return now.busy >= limits.some and (
            now.sm < limits.small or now.occupancy < limits.small_occupancy
        )
    return now.busy >= limits.some and now.power < limits.small_power_unprofiled


def _computes(scene: Scene) -> bool:
    """Clocks of a GPU that does nothing fall for that reason, and cost nobody anything."""
    return scene.now.busy >= scene.limits.computing


RULES: tuple[tuple[Cause, Callable[[Scene], bool]], ...] = (
    (Cause.BROKEN, _broken),
    (Cause.STARTING, _starting),
    (Cause.NEVER_USED, _never_used),
    (Cause.SOME_UNUSED, _some_unused),
    (Cause.HANG, _hang),
    (Cause.IDLE, _idle),
    (Cause.HEAT, _heat),
    (Cause.POWER, _power),
    (Cause.BRAKE, _brake),
    (Cause.CLOCKS, _clocks),
    (Cause.CHECKPOINT, _checkpoint),
    (Cause.STRAGGLER, _straggler),
    (Cause.COPYING, _copying),
    (Cause.INPUT_IO, _input_io),
    (Cause.INPUT_CPU, _input_cpu),
    (Cause.HOST, _host),
    (Cause.WAITING, _waiting),
    (Cause.COMMUNICATION, _communication),
    (Cause.NO_TENSOR, _no_tensor),
    (Cause.MEMORY_BOUND, _memory_bound),
    (Cause.FINE, _fine),
    (Cause.SMALL_WORK, _small_work),
)
