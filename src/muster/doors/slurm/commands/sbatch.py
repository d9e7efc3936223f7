"""`sbatch`: hand in a script."""

import os.path
import shutil

from muster.doors.slurm import clusters
from muster.doors.slurm.call import Again, Call, Door, ReadScript, Reply, version
from muster.doors.slurm.help import help_reply
from muster.doors.slurm.lists.filters import (
    JobName,
    ended_views,
    in_any_state,
    live_views,
    parts_of,
)
from muster.doors.slurm.lists.jobs import by_number
from muster.doors.slurm.lists.listing import has_usual_limit
from muster.doors.slurm.submit.job_options import OPTIONS
from muster.doors.slurm.submit.refusals import UNAVAILABLE, refusal, warnings_of
from muster.doors.slurm.submit.submission import (
    Wanted,
    World,
    command_line,
    requests_of,
    script_of,
    wanted,
)
from muster.doors.slurm.words import times
from muster.doors.slurm.words.errors import SlurmError
from muster.doors.slurm.words.hostlist import compressed
from muster.doors.slurm.words.options import Parsed
from muster.doors.slurm.words.states import State, exit_code, state_of
from muster.model.errors import MusterError
from muster.model.plan import NoEstimate
from muster.model.value import Instant, JobId, replace

NAME = "sbatch"
USUAL_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
LOOK_AGAIN_MS = 300


def run(call: Call, door: Door) -> Reply:
    """Submit, or say what is missing or wrong."""
    if "waits_for" in call.memo:
        return _waited(int(call.memo["waits_for"]), door)
    line = command_line(call)
    if line.has("version"):
        return version()
    if line.has("help") or line.has("usage"):
        return help_reply(NAME, OPTIONS, "[OPTIONS...] script [args...]")
    if line.value("gres") == "help":
        return Reply(out="Valid gres options are:\ngpu[[:type]:count]\n")
    cluster = clusters.named(NAME, line, door.queries.nodes.clusters())
    named = line.rest[0] if line.rest else None
    if not line.has("wrap") and (call.script is None or call.script.name != named):
        # One that came along unasked was a guess, and it was wrong.
        return Reply(then=ReadScript(file=named))
    script = script_of(line, call.script)
    requests = requests_of(call, line, script, door.now)
    want = _with_commands(wanted(requests, script, world_of(door)), call)
    try:
        request = requests[0]
        if request.has("test-only"):
            return _rehearsed(want, request.call, door)
        return _submitted(want, request.given, door, cluster)
    except SlurmError:
        raise
    except MusterError as error:
        raise refusal(requests[0], error) from error


def asked(call: Call, door: Door) -> Wanted:
    """What such a call asks for, with the script that came along; nothing is submitted."""
    line = command_line(call)
    script = script_of(line, call.script)
    requests = requests_of(call, line, script, door.now)
    return _with_commands(wanted(requests, script, world_of(door)), call)


def _with_commands(want: Wanted, call: Call) -> Wanted:
    """A script without a PATH finds Slurm's commands in the usual place; ours may be elsewhere."""
    launch = want.spec.launch
    if "PATH" in launch.env:
        return want
    sbatch = shutil.which(NAME, path=call.env.get("PATH"))
    if sbatch is None:
        return want
    path = f"{os.path.dirname(sbatch)}:{USUAL_PATH}"
    launch = replace(launch, env={**launch.env, "PATH": path})
    return replace(want, spec=replace(want.spec, launch=launch))


def world_of(door: Door) -> World:
    """What requests are read against, as things are now."""
    fleet, site = door.queries.nodes.fleet(), door.queries.site()

    def meant(job: int, index: int | None) -> dict[JobId, int | None]:
        return parts_of(door, job, index)

    return World(
        machines=door.cache.machines(fleet.nodes),
        user=door.caller.user,
        now=door.now,
        meant=meant,
        partitions=frozenset(fleet.pools),
        default=site.default_pool,
        accounts=frozenset(site.queues),
        has_usual_limit=has_usual_limit(door),
    )


def _submitted(want: Wanted, given: Parsed, door: Door, cluster: str | None) -> Reply:
    receipt = door.service.submit(
        door.caller, want.spec, indices=want.indices, at_once=want.at_once, held=want.held
    ).result()
    job = receipt.jobs[0]
    said = f"Submitted batch job {job}" + (f" on cluster {cluster}" if cluster else "")
    if given.has("parsable"):
        said = f"{job};{cluster}" if cluster else str(job)
    quiet = given.has("quiet") and not given.has("parsable")
    then = Again(memo={"waits_for": str(job)}) if given.has("wait") else None
    messages = _warned(want) + warnings_of(NAME, receipt)
    return Reply(out="" if quiet else f"{said}\n", err=messages, then=then)


def _warned(want: Wanted) -> str:
    return "".join(f"{NAME}: warning: {text}\n" for text in want.warnings)


def _waited(job: int, door: Door) -> Reply:
    """--wait: the exit code is that of the job, or the highest of an array."""
    wish = in_any_state(JobName(job=JobId(job)))
    if live_views(door, wish):
        return Reply(then=Again(memo={"waits_for": str(job)}, after_ms=LOOK_AGAIN_MS))
    codes = [_code(exit_code(view.job)) for view in ended_views(door, wish, Instant(0))]
    unclean = [
        view
        for view in ended_views(door, wish, Instant(0))
        if state_of(view.job) is not State.COMPLETED
    ]
    return Reply(code=max(codes, default=0) or (1 if unclean else 0))


def _code(text: str) -> int:
    code, _, number = text.partition(":")
    return int(code) or (128 + int(number) if int(number) else 0)


def _rehearsed(want: Wanted, call: Call, door: Door) -> Reply:
    rehearsal = door.queries.plan.rehearse(door.caller, spec=want.spec)
    if isinstance(rehearsal.expected, NoEstimate):
        raise SlurmError(f"allocation failure: {UNAVAILABLE}")
    at = door.now if rehearsal.expected is None else rehearsal.expected
    placed = rehearsal.placements
    spec = want.spec
    milli = sum(each.amount.cpu_milli for each in placed)
    milli = milli or sum(group.count * group.each.cpu_milli for group in spec.groups)
    nodes = {each.node for each in placed} or set(spec.groups[0].where.nodes)
    pools = sorted({each.pool for each in placed}) or spec.pools
    pool = ",".join(pools) or min(door.queries.nodes.pools(), default="")
    names = compressed(sorted(nodes, key=by_number))
    where = f"on nodes {names} in partition {pool}" if names else f"in partition {pool}"
    start = times.instant_text(at, zone=call.zone)
    processors = max(1, milli // 1_000)
    said = (
        f"sbatch: Job {rehearsal.job} to start at {start} using {processors} processors {where}\n"
    )
    return Reply(err=_warned(want) + said)
