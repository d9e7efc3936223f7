"""An attempt on one axis: its minutes in steps, all its devices together (pure)."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence

from muster.model.finding import Cause
from muster.model.minutes import MinuteBlock
from muster.model.value import MINUTE, Duration, Instant, Value

PEAKS = frozenset({"memory", "host_memory", "temperature", "io"})
"""Of these the highest of a step is told, of the others the mean."""

STEPS = tuple(Duration(minutes * MINUTE) for minutes in (1, 5, 15, 60, 360, 1_440))


class Curves(Value):
    """What was measured from `start` on, a value each step; None where nothing was.

    causes: the one that took most of each step. values: in hundredths, and degrees.
    """

    start: Instant
    step: Duration
    causes: tuple[Cause | None, ...] = ()
    values: Mapping[str, tuple[int | None, ...]] = {}


def curves(blocks: Iterable[MinuteBlock], most: int) -> Curves:
    """In so many steps at most."""
    minutes = sorted(
        (minute for block in blocks for minute in block.held_minutes()), key=lambda each: each[0]
    )
    if not minutes:
        return Curves(start=Instant(0), step=STEPS[0])
    first, last = minutes[0][0], minutes[-1][0]
    step = next((each for each in STEPS if (last - first) // each < most), STEPS[-1])
    count = (last - first) // step + 1
    causes: list[Counter[Cause]] = [Counter() for _ in range(count)]
    seen: dict[str, dict[int, list[int]]] = defaultdict(lambda: defaultdict(list))
    for at, cause, known in minutes:
        place = (at - first) // step
        causes[place][cause] += 1
        for name, value in known.items():
            seen[name][place].append(value)
    return Curves(
        start=first,
        step=step,
        causes=tuple(_commonest(each) for each in causes),
        values={
            name: tuple(_together(name, found.get(place, ())) for place in range(count))
            for name, found in sorted(seen.items())
        },
    )


def _commonest(counted: Counter[Cause]) -> Cause | None:
    return min(counted, key=lambda cause: (-counted[cause], cause), default=None)


def _together(name: str, values: Sequence[int]) -> int | None:
    if not values:
        return None
    return max(values) if name in PEAKS else round(sum(values) / len(values))
