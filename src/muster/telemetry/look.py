"""Everything that was measured at one instant, beside who held what then (pure)."""

from collections.abc import Callable, Mapping

from muster.model.holding import Holding
from muster.model.samples import Samples
from muster.model.value import ClusterName, Duration, Instant, Value


class Look(Value):
    """One pass over all clusters.

    interval: when the next pass comes. samples: of the clusters that measure. silent: those that
    should measure, and could not be asked this time. holdings: what attempts hold at this moment,
    by job, node and device; a device is joined with its jobs by them, never by a label.
    """

    at: Instant
    interval: Duration
    samples: Mapping[ClusterName, Samples] = {}
    silent: tuple[ClusterName, ...] = ()
    holdings: tuple[Holding, ...] = ()


Looker = Callable[[Look], None]
"""Is told of every pass, in the watching thread: it must be quick, and may not wait for anybody."""
