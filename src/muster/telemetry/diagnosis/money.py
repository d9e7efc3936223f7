"""Seconds of GPUs and what they cost, in whole numbers that always add up (pure).

Time is counted as thousandths of a GPU times milliseconds, and waste as that times thousandths.
Both are exact, so sums may be made in any order; only what is shown is rounded to micro-units, and
then so that the parts make the whole.
"""

from collections.abc import Hashable, Mapping, Sequence
from typing import Generic, TypeVar

from muster.model.value import Value

K = TypeVar("K", bound=Hashable)

_MILLI = 1_000
_MS_PER_HOUR = 3_600_000


class Time(Value, gc=False):
    """How much of GPUs, and how much of it bought nothing.

    milli_ms: thousandths of a GPU times milliseconds. wasted: the same times thousandths.
    """

    milli_ms: int = 0
    wasted: int = 0

    def __add__(self, other: "Time") -> "Time":
        return Time(milli_ms=self.milli_ms + other.milli_ms, wasted=self.wasted + other.wasted)

    @property
    def gpu_ms(self) -> int:
        """Milliseconds of whole GPUs."""
        return self.milli_ms // _MILLI

    @property
    def gpu_seconds(self) -> float:
        """For metrics, which are no whole numbers."""
        return self.milli_ms / (_MILLI * _MILLI)


NO_TIME = Time()


def time_of(*, gpu_milli: int, ms: int, slack_milli: int = 0) -> Time:
    """This part of a GPU for so long, so much of it wasted."""
    milli_ms = gpu_milli * ms
    return Time(milli_ms=milli_ms, wasted=milli_ms * slack_milli)


def cost_micros(milli_ms: int, micros_per_hour: int) -> int:
    """What the time costs, to the nearest micro-unit below."""
    return milli_ms * micros_per_hour // (_MILLI * _MS_PER_HOUR)


def wasted_micros(wasted: int, micros_per_hour: int) -> int:
    """What of it bought nothing, to the nearest micro-unit below."""
    return wasted * micros_per_hour // (_MILLI * _MILLI * _MS_PER_HOUR)


class Spent(Generic[K]):
    """What time cost, each stretch at the price of then: it only grows. One thread.

    Parts of a micro-unit are carried on, so that each key is short of what it cost by less than
    one micro-unit, and n keys together by less than n. What is shared out of a total cannot be
    counted so: a part of it may shrink while others grow.
    """

    def __init__(self) -> None:
        self._parts: dict[K, int] = {}

    def add(self, key: K, milli_ms: int, micros_per_hour: int) -> None:
        """So much time went by."""
        self._parts[key] = self._parts.get(key, 0) + milli_ms * micros_per_hour

    def micros(self) -> dict[K, int]:
        """All of it until now."""
        return {key: part // (_MILLI * _MS_PER_HOUR) for key, part in self._parts.items()}


def shared_out(amounts: Mapping[K, int], total: int) -> dict[K, int]:
    """The total in whole numbers, split as the amounts are, so that the parts make the total.

    Each gets what is below its exact part; what is left goes to those that lost most by it, the
    first of them in the order given.
    """
    whole = sum(amounts.values())
    if not whole:
        return dict.fromkeys(amounts, 0)
    parts = {key: amount * total // whole for key, amount in amounts.items()}
    left = total - sum(parts.values())
    lost = {key: amount * total % whole for key, amount in amounts.items()}
    for key in sorted(amounts, key=lambda key: -lost[key])[:left]:
        parts[key] += 1
    return parts


def summed(times: Sequence[Time]) -> Time:
    """All of them together."""
    return Time(
        milli_ms=sum(each.milli_ms for each in times),
        wasted=sum(each.wasted for each in times),
    )
