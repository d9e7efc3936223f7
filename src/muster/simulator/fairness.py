"""What each queue was entitled to at each time, and how much later jobs ended than fair sharing."""

from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate

from muster.model.queue import Meter, Percent, Queue, Scope
from muster.model.value import QueuePath
from muster.simulator.curve import Series

OVERALL = Scope(meter=Meter.GPU)


def guaranteed_milli(queue: Queue, capacity_milli: float) -> float:
    """What the queue is always entitled to, of all GPUs; lines for one pool or model left out."""
    for quota in queue.quotas:
        if quota.scope == OVERALL:
            given = quota.guaranteed
            if isinstance(given, Percent):
                return capacity_milli * given.percent / 100
            return float(given)
    return 0.0


def entitled(
    queues: Mapping[QueuePath, Queue], demand: Mapping[QueuePath, float], capacity: float
) -> dict[QueuePath, float]:
    """What each queue should have now: its guarantee first, then by weight, never above its demand.

    What one queue does not want, its siblings share, level by level.
    """
    below = _children(queues)
    found: dict[QueuePath, float] = {}

    def share_out(parent: QueuePath, amount: float) -> None:
        siblings = below.get(parent, [])
        for path, part in _shared(siblings, queues, demand, amount, capacity).items():
            found[path] = part
            share_out(path, part)

    share_out(QueuePath(""), capacity)
    return found


def jain(parts: Sequence[float]) -> float:
    """Jain's index: 1 if all have the same, 1/n if one has everything."""
    squares = sum(part * part for part in parts)
    return sum(parts) ** 2 / (len(parts) * squares) if squares else 1.0


class FairPace:
    """How fast a job would run if all that want GPUs shared them equally, at every time.

    Where the demand is twice what there is, every job runs at half speed.
    """

    def __init__(self, demand: Series, capacity: Series) -> None:
        self._begin = demand.begins_at
        self._every = demand.every
        self._paces = [
            min(1.0, has / wanted) if wanted > 0 else 1.0
            for wanted, has in zip(demand.means, capacity.means, strict=True)
        ]
        self._done = [0.0, *accumulate(pace * self._every for pace in self._paces)]

    def ends_after(self, submitted_at: int, work: int) -> float:
        """How long a job with so much work would take from its submission."""
        goal = self._done_by(submitted_at) + work
        place = bisect_right(self._done, goal) - 1
        left = goal - self._done[place]
        if place < len(self._paces):
            pace = self._paces[place]
            left = left / pace if pace else left
        return self._begin + place * self._every + left - submitted_at

    def _done_by(self, at: int) -> float:
        place, into = divmod(at - self._begin, self._every)
        if place >= len(self._paces):
            return self._done[-1] + (at - self._begin - len(self._paces) * self._every)
        return self._done[place] + self._paces[place] * into


def _children(queues: Iterable[QueuePath]) -> dict[QueuePath, list[QueuePath]]:
    below: dict[QueuePath, list[QueuePath]] = {}
    for path in sorted(queues):
        below.setdefault(QueuePath(path.rpartition("/")[0]), []).append(path)
    return below


def _shared(
    siblings: Sequence[QueuePath],
    queues: Mapping[QueuePath, Queue],
    demand: Mapping[QueuePath, float],
    amount: float,
    capacity: float,
) -> dict[QueuePath, float]:
    """Fill all to their guarantee, then the rest by weight until no queue wants more."""
    parts = {
        path: min(demand.get(path, 0.0), guaranteed_milli(queues[path], capacity))
        for path in siblings
    }
    left = amount - sum(parts.values())
    hungry: list[QueuePath] = [path for path in siblings if demand.get(path, 0.0) > parts[path]]
    while hungry and left > 1e-6:
        weights = sum(queues[path].weight for path in hungry)
        step = min((demand[path] - parts[path]) / queues[path].weight for path in hungry)
        step = min(step, left / weights)
        for path in hungry:
            parts[path] += step * queues[path].weight
        left -= step * weights
        hungry = [path for path in hungry if demand[path] - parts[path] > 1e-6]
    return parts
