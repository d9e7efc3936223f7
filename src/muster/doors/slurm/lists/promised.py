"""What running jobs may still use before their time is over, by account and user. Pure."""

from collections.abc import Iterable

from muster.model.job import Job
from muster.model.placement import Allocation
from muster.model.queue import lineage
from muster.model.resources import NOTHING
from muster.model.value import MINUTE, Instant, Value

WHOLE = "root"


class Promised(Value):
    """TRES times minutes."""

    cpu: int = 0
    memory_mib: int = 0
    nodes: int = 0
    gpus: int = 0

    @property
    def text(self) -> str:
        """As sshare lists it; what is not counted here is 0."""
        return (
            f"cpu={self.cpu},mem={self.memory_mib},energy=0,node={self.nodes},"
            f"billing={self.cpu},fs/disk=0,vmem=0,pages=0,gres/gpu={self.gpus}"
        )

    def __add__(self, other: "Promised") -> "Promised":
        return Promised(
            cpu=self.cpu + other.cpu,
            memory_mib=self.memory_mib + other.memory_mib,
            nodes=self.nodes + other.nodes,
            gpus=self.gpus + other.gpus,
        )


def promised(
    running: Iterable[tuple[Job, Allocation]], now: Instant
) -> dict[tuple[str, str], Promised]:
    """For the whole, every account with those below it, and every user in an account.

    Jobs without a time limit promise nothing that could be counted.
    """
    found: dict[tuple[str, str], Promised] = {}
    for job, allocation in running:
        if job.spec.time_limit is None:
            continue
        began = allocation.placed_at if allocation.started_at is None else allocation.started_at
        minutes = max(0, began + job.spec.time_limit - now) // MINUTE
        amount = sum((placed.amount for placed in allocation.placements), start=NOTHING)
        rest = Promised(
            cpu=amount.cpu_milli * minutes // 1_000,
            memory_mib=amount.memory_mib * minutes,
            nodes=len({placed.node for placed in allocation.placements}) * minutes,
            gpus=amount.gpu_milli * minutes // 1_000,
        )
        # A queue may be called as the whole is, and then stands for it.
        paths = {WHOLE, *lineage(job.spec.queue)}
        for key in [(job.spec.queue, job.spec.user), *((path, "") for path in paths)]:
            found[key] = found.get(key, Promised()) + rest
    return found
