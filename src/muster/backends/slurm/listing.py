"""What `squeue` says of the jobs of a cluster, ours and those of others. Pure.

One call tells of all jobs: their state, how they ended, what they have, and our mark on our own.
"""

from collections.abc import Iterable, Mapping, Sequence

from muster.backends.attempts import Phase
from muster.backends.fleet import Taken
from muster.backends.slurm.gres import MPS, SHARD, gres_in, instances_in
from muster.model.hostlist import NoHostlistError, expanded
from muster.model.resources import Resources
from muster.model.value import NodeId, Value

_FIELDS = (
    ("JobID", 20),
    ("HetJobID", 20),
    ("State", 20),
    ("UserID", 12),
    ("exit_code", 12),
    ("StartTime", 24),
    ("EndTime", 24),
    ("NumCPUs", 12),
    ("tres-alloc", 256),
    ("tres-per-node", 256),
    ("NodeList", 4_096),
    ("Comment", 128),
)
"""Columns by their widths, because comments may hold every separator, ends of lines too.

Widths count bytes: what is not ASCII, which only comments can hold, comes last.
"""
_COMMENT_AT = sum(width for name, width in _FIELDS if name != "Comment")

FORMAT = ",".join(f"{name}:{width}" for name, width in _FIELDS)
"""For `squeue -O`, with instants as seconds (SLURM_TIME_FORMAT=%s)."""

_MARK = "muster"
_UNITS_MIB = {"K": 1 / 1_024, "M": 1, "G": 1_024, "T": 1_048_576}


_PHASES = {
    "PENDING": Phase.WAITS,
    "REQUEUED": Phase.WAITS,
    "REQUEUE_HOLD": Phase.WAITS,
    "REQUEUE_FED": Phase.WAITS,
    "SPECIAL_EXIT": Phase.WAITS,
    "RESV_DEL_HOLD": Phase.WAITS,
    "CONFIGURING": Phase.WAITS,
    "RUNNING": Phase.RUNS,
    "RESIZING": Phase.RUNS,
    "SIGNALING": Phase.RUNS,
    "STAGE_OUT": Phase.RUNS,
    "SUSPENDED": Phase.STANDS,
    "STOPPED": Phase.STANDS,
    "COMPLETING": Phase.LEAVES,
}
"""Every other state is one in which a job has ended."""


class Key(Value, gc=False):
    """Whose attempt it is. site: which Muster, because several may share a cluster."""

    site: str
    job: int
    attempt: int

    @property
    def mark(self) -> str:
        """What is written into Slurm's own record of the job, as its comment."""
        return f"{_MARK}:{self.site}:{self.job}.{self.attempt}"


class QueuedJob(Value):
    """One job of Slurm's. status: as wait(2) has it. Instants are in whole seconds.

    uid: whose it is; None where that is not told. Anybody can write a mark of ours on their job.
    whole: the job of which it is a component, or its own number.
    """

    id: str
    state: str
    status: int
    started_s: int | None
    ended_s: int | None
    nodes: tuple[NodeId, ...]
    holds: Taken
    key: Key | None
    uid: int | None = None
    whole: str = ""

    @property
    def phase(self) -> Phase:
        return _PHASES.get(self.state, Phase.OVER)

    @property
    def ended_by_itself(self) -> bool:
        """Did its processes end, and nobody killed them?"""
        return self.state in {"COMPLETED", "FAILED"}

    @property
    def is_placed(self) -> bool:
        """Has it nodes now?"""
        return self.phase in {Phase.RUNS, Phase.STANDS, Phase.LEAVES}


class Listing:
    """What `squeue` said last: a line that it says again is not read again."""

    def __init__(self) -> None:
        self._read: Mapping[str, QueuedJob | None] = {}

    def read(self, text: str) -> tuple[QueuedJob, ...]:
        """Every job of the listing; a line that is none is left out."""
        known = self._read
        self._read = {
            line: known[line] if line in known else _read(line) for line in text.split("\n")
        }
        return tuple(job for job in self._read.values() if job is not None)


def _read(line: str) -> QueuedJob | None:
    """None where it is what comes after the end of a line in somebody's comment."""
    row = _row(line)
    return queued(row) if row["JobID"].isdecimal() and len(line) >= _COMMENT_AT else None


def queued(row: Mapping[str, str]) -> QueuedJob:
    """The job of one row, by the names of `squeue -O`."""
    nodes = _nodes(row["NodeList"])
    status = row["exit_code"]
    return QueuedJob(
        id=row["JobID"],
        whole=row["HetJobID"] if _count(row["HetJobID"]) else row["JobID"],
        state=row["State"],
        uid=int(row["UserID"]) if row["UserID"].isdecimal() else None,
        status=int(status) if status.isdecimal() else 0,
        started_s=_seconds(row["StartTime"]),
        ended_s=_seconds(row["EndTime"]),
        nodes=nodes,
        holds=_holds(row, nodes),
        key=key_in(row["Comment"]),
    )


def held_by_others(jobs: Iterable[QueuedJob]) -> dict[NodeId, Taken]:
    """What these jobs have of each node.

    Slurm says what a job has in all; on several nodes it is taken to be spread evenly.
    """
    found: dict[NodeId, Taken] = {}
    for job in jobs:
        if not job.is_placed or not job.nodes:
            continue
        count = len(job.nodes)
        amount = job.holds.amount
        each = Resources(
            cpu_milli=-(-amount.cpu_milli // count),
            memory_mib=-(-amount.memory_mib // count),
            gpu_milli=-(-amount.gpu_milli // count),
        )
        mig = {profile: -(-number // count) for profile, number in job.holds.mig.items()}
        for node in job.nodes:
            found[node] = found.get(node, Taken()) + Taken(amount=each, mig=mig)
    return found


def accounted(handle: str, row: str) -> QueuedJob | None:
    """A row of `sacct` as the queue would list it."""
    state, exit_code, started, ended, *_ = [*row.split("|"), "", "", "", ""]
    code, _, number = exit_code.partition(":")
    if not code.isdecimal() or not number.isdecimal():
        return None
    return QueuedJob(
        id=handle,
        state=state.partition(" ")[0],
        status=(int(code) << 8) | int(number),
        started_s=int(started) if started.isdecimal() else None,
        ended_s=int(ended) if ended.isdecimal() else None,
        nodes=(NodeId("slurm"),),
        holds=Taken(),
        key=None,
    )


def key_in(comment: str) -> Key | None:
    """The key that we wrote into a job's comment, if it is one of ours."""
    word, _, rest = comment.partition(":")
    site, _, number = rest.rpartition(":")
    job, _, attempt = number.partition(".")
    if word != _MARK or not site or not (job.isdecimal() and attempt.isdecimal()):
        return None
    return Key(site=site, job=int(job), attempt=int(attempt))


def _row(line: str) -> Mapping[str, str]:
    row: dict[str, str] = {}
    begin = 0
    for name, width in _FIELDS:
        row[name] = line[begin : begin + width].strip()
        begin += width
    return row


def _holds(row: Mapping[str, str], nodes: Sequence[NodeId]) -> Taken:
    """MIG instances are not GPUs; who shares a GPU has it all, to who does not share with them.

    A type is told of what a job has only where the administrator has it counted; what a job asked
    each node for is told always.
    """
    tres = _tres(row["tres-alloc"])
    counted = instances_in(gres_in(row["tres-alloc"].replace("gres/", "")))
    of_each = gres_in(row["tres-per-node"].replace("gres:", ""))
    told = {name: number * len(nodes) for name, number in instances_in(of_each).items()}
    mig = {name: max(counted.get(name, 0), told.get(name, 0)) for name in {*counted, *told}}
    gpus = _count(tres.get("gres/gpu", "0")) - sum(mig.values())
    shares = any(_count(tres.get(f"gres/{name}", "0")) for name in (SHARD, MPS))
    return Taken(
        amount=Resources(
            cpu_milli=1_000 * _count(tres.get("cpu") or row["NumCPUs"]),
            memory_mib=_mib(tres.get("mem", "0")),
            gpu_milli=1_000 * (max(0, gpus) + (len(nodes) if shares else 0)),
        ),
        mig=dict(sorted(mig.items())),
    )


def _tres(text: str) -> dict[str, str]:
    """`cpu=4,mem=4G,gres/gpu=1` by name."""
    parts = (each.partition("=") for each in text.split(","))
    return {name: amount for name, _, amount in parts if amount}


def _count(text: str) -> int:
    return int(text) if text.isdecimal() else 0


def _mib(text: str) -> int:
    number, unit = (text[:-1], text[-1:]) if text[-1:].isalpha() else (text, "M")
    try:
        return int(float(number) * _UNITS_MIB.get(unit.upper(), 1))
    except ValueError:
        return 0


def _seconds(text: str) -> int | None:
    return int(text) if text.isdecimal() and int(text) else None


def _nodes(text: str) -> tuple[NodeId, ...]:
    try:
        return tuple(NodeId(name) for name in expanded(text)) if text != "(null)" else ()
    except NoHostlistError:
        return ()
