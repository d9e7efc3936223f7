"""The rules of a new installation, until its first `muster apply`."""

from muster.model.cluster import Pool
from muster.model.queue import JobClass, Queue
from muster.model.site import Confinement, Site
from muster.model.value import ClassName, ClusterName, PoolName, QueuePath

_QUEUE = QueuePath("default")
_POOL = PoolName("local")
_LOW, _NORMAL, _HIGH = ClassName("low"), ClassName("normal"), ClassName("high")

# A class counts by its part of the highest priority. A tenth keeps normal as far above low as one
# week of waiting does, so that fair share and age still decide between those two; and high comes
# first, whichever jobs wait.
DEFAULT_SITE = Site(
    queues={_QUEUE: Queue(path=_QUEUE)},
    classes={
        _LOW: JobClass(name=_LOW, priority=0),
        _NORMAL: JobClass(name=_NORMAL, priority=100),
        _HIGH: JobClass(name=_HIGH, priority=1_000, preempts=(_LOW,)),
    },
    pools={_POOL: Pool(name=_POOL, cluster=ClusterName("local"))},
    default_queue=_QUEUE,
    confinement=Confinement(),
)
