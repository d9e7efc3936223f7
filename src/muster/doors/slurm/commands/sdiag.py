"""`sdiag`: what the controller did, and what it was asked."""

import time
from collections import Counter
from collections.abc import Callable, Iterator
from threading import active_count

from muster.controller.loop.counters import Counts
from muster.doors.slurm.call import Call, Door, Reply, lines, version
from muster.doors.slurm.clusters import demand_here
from muster.doors.slurm.help import help_reply
from muster.doors.slurm.lists.listing import Listing
from muster.doors.slurm.permissions import DENIED
from muster.doors.slurm.traffic import Calls, message_of
from muster.doors.slurm.words import times
from muster.doors.slurm.words.errors import SlurmError
from muster.doors.slurm.words.options import Manner, parsed, table
from muster.doors.slurm.words.users import uid_of
from muster.model.errors import ForbiddenError
from muster.model.job import WAITING, JobState
from muster.model.value import MINUTE, Instant

NAME = "sdiag"
OPTIONS = table("""
    a:all M:cluster= clusters= help r:reset i:sort-by-id t:sort-by-time T:sort-by-time2 usage
    V:version
""")
USAGE = "Usage: sdiag [-M cluster] [-aritT]\n"
STARS = "*" * 55
LOOKS = 1_000

Key = Callable[[tuple[str, Calls]], tuple[int, str]]
ORDERS: dict[str, Key] = {
    "sort-by-id": lambda each: (message_of(each[0])[1], each[0]),
    "sort-by-time": lambda each: (-each[1].total_us, each[0]),
    "sort-by-time2": lambda each: (-each[1].average_us, each[0]),
}


def run(call: Call, door: Door) -> Reply:
    """Show the counts, or reset them."""
    line = parsed(OPTIONS, call.argv, Manner(command=NAME))
    if line.has("version"):
        return version()
    if line.has("usage"):
        return Reply(out=USAGE)
    if line.has("help"):
        return help_reply(NAME, OPTIONS)
    listing = Listing(call, door)
    demand_here(NAME, line.words("cluster", "clusters"), listing)
    if line.has("reset"):
        try:
            door.queries.status.reset_counts(door.caller)
        except ForbiddenError as error:
            raise SlurmError(f"slurm_reset_statistics: {DENIED}", code=255) from error
        door.traffic.reset()
        return Reply(out="Reset scheduling statistics\n")
    key = next((ORDERS[name] for name in ORDERS if line.has(name)), _by_count)
    counts = door.queries.status.counts()
    parts = (
        _head(counts, listing),
        _jobs(counts, door.queries.jobs.count_by_state(), listing),
        _plans(counts, listing),
        _BACKFILL,
        [f"Latency for {LOOKS} calls to gettimeofday(): {_latency_us()} microseconds", ""],
        _calls(door, key),
    )
    return Reply(out=lines([text for part in parts for text in part]))


def _head(counts: Counts, listing: Listing) -> Iterator[str]:
    yield STARS
    yield f"sdiag output at {_moment(listing.now, listing)}"
    yield f"Data since      {_moment(counts.since, listing)}"
    yield STARS
    yield f"Server thread count:  {active_count()}"
    # Nothing waits to be sent to nodes or to a database daemon: there is neither here.
    yield from ("Agent queue size:     0", "Agent count:          0", "Agent thread count:   0")
    yield from ("DBD Agent queue size: 0", "")


def _jobs(counts: Counts, live: Counter[JobState], listing: Listing) -> Iterator[str]:
    yield f"Jobs submitted: {counts.submitted}"
    yield f"Jobs started:   {counts.started}"
    yield f"Jobs completed: {counts.completed}"
    yield f"Jobs canceled:  {counts.cancelled}"
    yield f"Jobs failed:    {counts.failed}"
    yield ""
    yield f"Job states ts:  {_moment(listing.now, listing)}"
    yield f"Jobs pending:   {sum(live[state] for state in WAITING)}"
    yield f"Jobs running:   {live[JobState.RUNNING]}"
    yield ""


def _plans(counts: Counts, listing: Listing) -> Iterator[str]:
    yield "Main schedule statistics (microseconds):"
    yield f"\tLast cycle:   {counts.last_us}"
    yield f"\tMax cycle:    {counts.most_us}"
    yield f"\tTotal cycles: {counts.plans}"
    if counts.plans:
        minutes = (listing.now - counts.since) // MINUTE
        yield f"\tMean cycle:   {counts.total_us // counts.plans}"
        yield f"\tMean depth cycle:  {counts.total_waiting // counts.plans}"
        if minutes:
            yield f"\tCycles per minute: {counts.plans // minutes}"
    yield f"\tLast queue length: {counts.waiting}"
    yield ""


_BACKFILL = (
    # One plan does both, and is counted above: there are no cycles of backfill alone.
    "Backfilling stats",
    "\tTotal backfilled jobs (since last slurm start): 0",
    "\tTotal backfilled jobs (since last stats cycle start): 0",
    "\tTotal backfilled heterogeneous job components: 0",
    "\tTotal cycles: 0",
    "\tLast cycle when: N/A",
    "\tLast cycle: 0",
    "\tMax cycle:  0",
    "\tLast depth cycle: 0",
    "\tLast depth cycle (try sched): 0",
    "\tLast queue length: 0",
    "\tLast table size: 0",
    "",
)


def _calls(door: Door, key: Key) -> Iterator[str]:
    yield "Remote Procedure Call statistics by message type"
    for command, calls in sorted(door.traffic.by_command.items(), key=key):
        message, number = message_of(command)
        yield f"\t{message:<40}({number:5}) {_numbers(calls)}"
    yield ""
    yield "Remote Procedure Call statistics by user"
    for user, calls in sorted(door.traffic.by_user.items(), key=_by_count):
        yield f"\t{user:<16}({uid_of(user):8}) {_numbers(calls)}"
    yield from ("", "Pending RPC statistics", "\tNo pending RPCs")


def _numbers(calls: Calls) -> str:
    times_us = f"ave_time:{calls.average_us:<6} total_time:{calls.total_us}"
    return f"count:{calls.count:<6} {times_us}"


def _by_count(each: tuple[str, Calls]) -> tuple[int, str]:
    return -each[1].count, each[0]


def _moment(at: Instant, listing: Listing) -> str:
    return f"{times.heading_text(at, listing.zone)} ({at // 1_000})"


def _latency_us() -> int:
    """How long it takes to ask for the time, measured as Slurm does."""
    began = time.perf_counter_ns()
    for _ in range(LOOKS):
        time.time()
    return (time.perf_counter_ns() - began) // 1_000
