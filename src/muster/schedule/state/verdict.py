"""A verdict: why jobs cannot start, together with what would overturn it."""

from typing import NamedTuple

from muster.model.reason import WaitReason


class Verdict(NamedTuple):
    """Why jobs cannot start, found in the plan of this number.

    In a plan room and quota are only given out. So where nothing but room is missing, the verdict
    holds to the end of the plan (`state` is None), for jobs that run at least `from_ms`: a shorter
    one may leave in time what is promised to another. Otherwise anything that is given out
    overturns it, and it holds in this state of things alone.
    """

    why: WaitReason
    plan: int
    state: int | None = None
    from_ms: int = 0
