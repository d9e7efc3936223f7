"""How often a job was interrupted, what that cost, and how often it should save (pure)."""

import math
from collections import Counter
from collections.abc import Mapping, Sequence

from muster.model.history import Attempt
from muster.model.job import NodeFailed, Preempted
from muster.model.value import Duration, Instant, Value


class Interruptions(Value):
    """What made room or was lost with its node, of one job.

    by: how often, by why. recovery_ms: from the end of an attempt to the start of the next, on the
    mean. saved_every_ms: between two checkpoints, on the mean. best_every_ms: what would lose
    least, by how long a checkpoint takes and how often it is interrupted; None where one is not
    known.
    """

    times: int
    by: Mapping[str, int]
    lost_gpu_ms: int
    recovery_ms: int | None = None
    saved_every_ms: int | None = None
    best_every_ms: int | None = None


def interruptions(
    attempts: Sequence[Attempt], saved: Sequence[Instant], saving_ms: int
) -> Interruptions | None:
    """Of attempts in their order; saved: when checkpoints were written, which took saving_ms."""
    broken = [each for each in attempts if isinstance(each.why, Preempted | NodeFailed)]
    if not broken:
        return None
    by = Counter(
        "preempted" if isinstance(each.why, Preempted) else "node_failed" for each in broken
    )
    ran = sum(each.ended_at - each.started_at for each in attempts if each.started_at is not None)
    return Interruptions(
        times=len(broken),
        by=dict(sorted(by.items())),
        lost_gpu_ms=sum(each.lost_gpu_ms for each in broken),
        recovery_ms=_recovery(attempts, broken),
        saved_every_ms=(saved[-1] - saved[0]) // (len(saved) - 1) if len(saved) > 1 else None,
        best_every_ms=_best(len(broken), ran, saved, saving_ms),
    )


def _recovery(attempts: Sequence[Attempt], broken: Sequence[Attempt]) -> int | None:
    starts = {each.number: each.started_at for each in attempts}
    spans = [
        start - each.ended_at
        for each in broken
        if (start := starts.get(each.number + 1)) is not None
    ]
    return sum(spans) // len(spans) if spans else None


def _best(times: int, ran: int, saved: Sequence[Instant], saving_ms: int) -> Duration | None:
    """Young's interval: the root of twice what one checkpoint takes, times the time between."""
    if not saved or not saving_ms or not ran:
        return None
    return Duration(round(math.sqrt(2 * (saving_ms / len(saved)) * (ran / times))))
