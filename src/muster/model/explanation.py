"""Why a job waits or where it goes, who is in its way, and what would help."""

from muster.model.burst import Bursting
from muster.model.dates import StartDate
from muster.model.gpu import Slice
from muster.model.plan import Decision, NoEstimate
from muster.model.value import Duration, GpuModel, Instant, JobId, QueuePath, Value
from muster.model.words import span


class FewerGpus(Value, kw_only=True, tag="fewer_gpus", gc=False):
    """Each task of the group asks for this many GPUs."""

    group: str = "main"
    gpus: int


class FewerTasks(Value, kw_only=True, tag="fewer_tasks", gc=False):
    """The group has this many tasks."""

    group: str = "main"
    tasks: int


class OtherModel(Value, tag="other_model", gc=False):
    """Tasks that insist on other GPU models take this one."""

    model: GpuModel


class AsSlice(Value, tag="as_slice"):
    """Tasks that ask for one whole GPU take a part of one."""

    slice: Slice


class OnSpot(Value, tag="on_spot", gc=False):
    """The job may run where capacity can be taken away."""


class OffSpot(Value, tag="off_spot", gc=False):
    """The job does not insist on spot capacity."""


class NoTopology(Value, tag="no_topology", gc=False):
    """Tasks would rather stay together, but need not."""


class AnyNode(Value, tag="any_node", gc=False):
    """No rules about nodes and neighbours, but for the taints that are not tolerated."""


class AnyPool(Value, tag="any_pool", gc=False):
    """No pools or clusters are named."""


class Shorter(Value, tag="shorter", gc=False):
    """The job ends earlier."""

    time_limit: Duration


class OtherQueue(Value, tag="other_queue", gc=False):
    """The job goes to another queue that its user may submit to."""

    queue: QueuePath


Change = (
    FewerGpus
    | FewerTasks
    | OtherModel
    | AsSlice
    | OnSpot
    | OffSpot
    | NoTopology
    | AnyNode
    | AnyPool
    | Shorter
    | OtherQueue
)
"""One thing that the request could say differently."""


class Alternative(Value):
    """What would become of the job if its request were changed: found by planning again."""

    change: Change
    starts_now: bool
    expected: Instant | NoEstimate
    text: str


class KnownTime(Value, kw_only=True):
    """What is known of how long a waiting job will take, and what that decides.

    expected: as long as similar jobs did, which decides its place in line; nine of ten of them took
    no longer than `high`. samples: how many ended; like: which they are, for people.
    limit: what it takes at most, by which room is promised; without one, by what is expected.
    first_from: from then on it goes before all others; None: never.
    """

    expected: Duration
    high: Duration
    samples: int
    like: str
    limit: Duration | None
    first_from: Instant | None

    @property
    def text(self) -> str:
        """What it rests on, for people."""
        if self.samples:
            times = f"about {span(self.expected)}, nine of ten like it within {span(self.high)}"
            like = self.like if self.samples > 1 else self.like.replace("jobs", "job", 1)
            learned = f"{times} (learned from {self.samples} {like}), for its place in line"
        else:
            guess = f"taken to be {span(self.expected)} for its place in line"
            learned = f"unknown, as no similar job has ended yet; {guess}"
        if self.limit is None:
            return f"{learned} and, as it has no time limit, where room is promised"
        return f"{learned}; at most {span(self.limit)}, by which room is promised"


class Explanation(Value, kw_only=True):
    """All there is to say about one job of a plan.

    decision: None for a job that the plan had nothing to decide about: it runs, or is about to.
    blockers: jobs that hold or come before what it waits for; those that matter most come first.
    expected: when it starts, resumes or, without a decision, did start.
    date: what was forecast for a job that waits; then `expected` is its middle.
    time: what is known of how long a job takes that waits, to those who may see its name.
    bursting: what rules say of a waiting job that may move to another cluster, or may not.
    alternatives: only those that help; what starts now comes first, then what starts soonest.
    """

    job: JobId
    decision: Decision | None
    text: str
    blockers: tuple[JobId, ...] = ()
    expected: Instant | NoEstimate
    alternatives: tuple[Alternative, ...] = ()
    date: StartDate | None = None
    time: KnownTime | None = None
    bursting: tuple[Bursting, ...] = ()


class UnknownJob(Value, tag="unknown_job", gc=False):
    """No such job was submitted, or it ended long ago."""

    job: JobId
