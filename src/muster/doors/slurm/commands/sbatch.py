"""`sbatch`: hand in a script."""

from muster.doors.slurm import times
from muster.doors.slurm.call import Again, Call, Door, ReadScript, Reply, version
from muster.doors.slurm.choosing import Filter, JobName, ended_views, live_views, parts_of
from muster.doors.slurm.helping import help_reply
from muster.doors.slurm.hostlist import compressed
from muster.doors.slurm.job_options import OPTIONS
from muster.doors.slurm.jobs import by_number
from muster.doors.slurm.options import Parsed
from muster.doors.slurm.refused import UNAVAILABLE, submission_words
from muster.doors.slurm.states import State, exit_code, state_of
from muster.doors.slurm.submit import Wanted, World, command_line, requests_of, script_of, wanted
from muster.doors.slurm.trouble import SlurmError, failed
from muster.model.errors import MusterError
from muster.model.plan import NoEstimate
from muster.model.value import Instant, JobId

NAME = "sbatch"
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
    if call.script is None and not line.has("wrap"):
        return Reply(then=ReadScript(file=line.rest[0] if line.rest else None))
    script = script_of(line, call.script)
    requests = requests_of(call, line, script, door.now)
    want = wanted(requests, script, world_of(door))
    is_test = requests[0].has("test-only")
    try:
        if is_test:
            return _rehearsed(want, call, door)
        return _submitted(want, requests[0].given, door)
    except SlurmError:
        raise
    except MusterError as error:
        raise _refused(error, is_test=is_test) from error


def world_of(door: Door) -> World:
    """What requests are read against, as things are now."""
    snapshot = door.looking.snapshot()

    def meant(job: int, index: int | None) -> tuple[JobId, ...]:
        return parts_of(door, job, index)

    return World(
        machines=door.memory.machines(snapshot.nodes),
        user=door.caller.user,
        now=door.now,
        meant=meant,
        partitions=frozenset(snapshot.pools),
        default=door.looking.site().default_pool,
        accounts=frozenset(snapshot.queues),
    )


def _refused(error: MusterError, *, is_test: bool) -> SlurmError:
    words = submission_words(error)
    if is_test:
        return SlurmError(f"allocation failure: {words}")
    return failed(NAME, f"Batch job submission failed: {words}")


def _submitted(want: Wanted, given: Parsed, door: Door) -> Reply:
    receipt = door.service.submit(
        door.caller, want.spec, indices=want.indices, at_once=want.at_once, held=want.held
    ).result()
    job = receipt.jobs[0]
    said = f"{job}\n" if given.has("parsable") else f"Submitted batch job {job}\n"
    quiet = given.has("quiet") and not given.has("parsable")
    then = Again(memo={"waits_for": str(job)}) if given.has("wait") else None
    return Reply(out="" if quiet else said, err=want.warnings, then=then)


def _waited(job: int, door: Door) -> Reply:
    """--wait: the exit code is that of the job, or the highest of an array."""
    wish = Filter(names=(JobName(job=JobId(job)),), states=frozenset(State))
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
    rehearsal = door.looking.rehearse(door.caller, spec=want.spec)
    wait = rehearsal.wait
    at = door.now
    if wait is not None:
        if isinstance(wait.expected, NoEstimate):
            raise SlurmError(f"allocation failure: {UNAVAILABLE}")
        at = wait.expected
    placed = rehearsal.placements
    spec = want.spec
    milli = sum(each.amount.cpu_milli for each in placed)
    milli = milli or sum(group.count * group.each.cpu_milli for group in spec.groups)
    nodes = {each.node for each in placed} or set(spec.groups[0].where.nodes)
    pools = sorted({each.pool for each in placed}) or spec.pools
    pool = ",".join(pools) or min(door.looking.snapshot().pools, default="")
    names = compressed(sorted(nodes, key=by_number))
    where = f"on nodes {names} in partition {pool}" if names else f"in partition {pool}"
    start = times.instant_text(at, zone=call.zone)
    processors = max(1, milli // 1_000)
    said = (
        f"sbatch: Job {rehearsal.job} to start at {start} using {processors} processors {where}\n"
    )
    return Reply(err=want.warnings + said)
