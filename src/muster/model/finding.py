"""Why a device did less than it could: one cause for each minute that a job holds it."""

from collections.abc import Mapping
from enum import StrEnum

from muster.model.value import (
    DeviceId,
    Duration,
    Instant,
    JobId,
    QueuePath,
    UserName,
    Value,
)


class Cause(StrEnum):
    """What kept the device, in the order in which the rules ask."""

    BROKEN = "broken"
    STARTING = "starting"
    NEVER_USED = "never_used"
    SOME_UNUSED = "some_unused"
    HANG = "hang"
    IDLE = "idle"
    HEAT = "heat"
    POWER = "power"
    BRAKE = "brake"
    CLOCKS = "clocks"
    CHECKPOINT = "checkpoint"
    STRAGGLER = "straggler"
    INPUT_IO = "input_io"
    INPUT_CPU = "input_cpu"
    HOST = "host"
    WAITING = "waiting"
    COPYING = "copying"
    COMMUNICATION = "communication"
    NO_TENSOR = "no_tensor"
    MEMORY_BOUND = "memory_bound"
    FINE = "fine"
    SMALL_WORK = "small_work"
    OVERSIZED = "oversized"
    """Said of a whole job: what waited, or was small, would have fitted a part of the device."""
    UNKNOWN = "unknown"


class Use(StrEnum):
    """What became of a second of a GPU that somebody held."""

    WORKING = "working"
    HELD_SLOW = "held_slow"
    HELD_IDLE = "held_idle"
    THROTTLED = "throttled"
    BROKEN = "broken"
    UNMEASURED = "unmeasured"
    """Nobody looked, or what was seen does not say: neither work nor waste is claimed."""


USE_OF: Mapping[Cause, Use] = {
    Cause.BROKEN: Use.BROKEN,
    Cause.STARTING: Use.HELD_IDLE,
    Cause.NEVER_USED: Use.HELD_IDLE,
    Cause.SOME_UNUSED: Use.HELD_IDLE,
    Cause.HANG: Use.HELD_IDLE,
    Cause.IDLE: Use.HELD_IDLE,
    Cause.HEAT: Use.THROTTLED,
    Cause.POWER: Use.THROTTLED,
    Cause.BRAKE: Use.THROTTLED,
    Cause.CLOCKS: Use.THROTTLED,
    Cause.CHECKPOINT: Use.HELD_SLOW,
    Cause.STRAGGLER: Use.HELD_SLOW,
    Cause.INPUT_IO: Use.HELD_SLOW,
    Cause.INPUT_CPU: Use.HELD_SLOW,
    Cause.HOST: Use.HELD_SLOW,
    Cause.WAITING: Use.HELD_SLOW,
    Cause.COPYING: Use.HELD_SLOW,
    Cause.COMMUNICATION: Use.HELD_SLOW,
    Cause.NO_TENSOR: Use.HELD_SLOW,
    Cause.MEMORY_BOUND: Use.WORKING,
    Cause.FINE: Use.WORKING,
    Cause.SMALL_WORK: Use.HELD_SLOW,
    Cause.OVERSIZED: Use.HELD_SLOW,
    Cause.UNKNOWN: Use.UNMEASURED,
}


class Confidence(StrEnum):
    """How far the minutes of a job agree, and whether every signal was there."""

    SURE = "sure"
    LIKELY = "likely"
    POSSIBLE = "possible"


class Evidence(Value, gc=False):
    """What was measured while the cause held: the mean of one signal, in thousandths."""

    signal: str
    milli: int


class Finding(Value):
    """One cause that cost a job something, with what it cost.

    held_ms: GPU-milliseconds of the cause, a whole GPU counting fully; wasted_micros: what of
    their price bought nothing; micros_per_hour, wasted_gpu_milli: the same as a rate while it
    holds, and in thousandths of a GPU; devices: where it was seen; missing: signals that would
    have told more.
    """

    job: JobId
    attempt: int
    user: UserName
    queue: QueuePath
    cause: Cause
    confidence: Confidence
    since: Instant
    until: Instant
    held_ms: Duration
    wasted_micros: int = 0
    micros_per_hour: int = 0
    wasted_gpu_milli: int = 0
    devices: tuple[DeviceId, ...] = ()
    evidence: tuple[Evidence, ...] = ()
    missing: tuple[str, ...] = ()


SENTENCES: Mapping[Cause, str] = {
    Cause.BROKEN: "the hardware failed",
    Cause.STARTING: "the job was starting: image, staging and imports",
    Cause.NEVER_USED: "no process of the job ever used a GPU",
    Cause.SOME_UNUSED: "some of its GPUs had no process",
    Cause.HANG: "it stood still: a stuck collective, or storage that does not answer",
    Cause.IDLE: "the GPU was used once and then did nothing",
    Cause.HEAT: "the GPU was slowed down because it was too hot",
    Cause.POWER: "the GPU was slowed down to keep its power limit",
    Cause.BRAKE: "the power supply slowed the GPU down",
    Cause.CLOCKS: "the GPU's clocks were set low",
    Cause.CHECKPOINT: "the GPU waited while a checkpoint was written",
    Cause.STRAGGLER: "one GPU was slower and the others waited for it",
    Cause.INPUT_IO: "the GPU waited for storage",
    Cause.INPUT_CPU: "the GPU waited for CPUs that prepare its input",
    Cause.HOST: "one thread could not feed the GPU fast enough",
    Cause.WAITING: "nobody worked: it waited for the network, remote data or requests",
    Cause.COPYING: "copies between memory and GPU kept it",
    Cause.COMMUNICATION: "the GPUs waited for what they send each other",
    Cause.NO_TENSOR: "it computed in plain FP32, without tensor cores",
    Cause.MEMORY_BOUND: "the GPU's memory is what limits it, as its kernels are",
    Cause.FINE: "the GPU was put to good use",
    Cause.SMALL_WORK: "the work was too small to fill the GPU",
    Cause.OVERSIZED: "a part of the GPU would have been enough",
    Cause.UNKNOWN: "what was measured does not say",
}
