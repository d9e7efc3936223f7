"""`scancel`: end jobs, or send them a signal."""

from collections.abc import Mapping

from muster.doors.slurm import clusters, jobs
from muster.doors.slurm.call import Call, Door, Prompt, Reply, version, warning
from muster.doors.slurm.changing import NOT_WHOLE
from muster.doors.slurm.choosing import (
    Filter,
    JobName,
    ended_views,
    job_name,
    live_views,
    split_ids,
    states_of,
    users_of,
)
from muster.doors.slurm.helping import help_reply
from muster.doors.slurm.hostlist import expanded
from muster.doors.slurm.jobs import JobRow
from muster.doors.slurm.options import Manner, Parsed, parsed, table
from muster.doors.slurm.permitted import DENIED, may_change
from muster.doors.slurm.scene import Scene, is_user
from muster.doors.slurm.states import State
from muster.doors.slurm.trouble import SlurmError, failed
from muster.doors.units import BadTextError, signal_number
from muster.model.value import Instant, JobId

NAME = "scancel"
OPTIONS = table("""
    A:account= b:batch cluster= M:clusters= ctld f:full help H:hurry i:interactive jobname= me
    n:name= w:nodelist= p:partition= q:qos= Q:quiet R:reservation= sibling= s:signal= t:state= usage
    u:user= v:verbose V:version wckey=
""")
USAGE = """\
Usage: scancel [-A account] [--batch] [--full] [--interactive] [-n job_name]
               [-p partition] [-Q] [-q qos] [-R reservation] [-s signal | integer]
               [-t PENDING | RUNNING | SUSPENDED] [--usage] [-u user_name]
               [--hurry] [-V] [-v] [-w hosts...] [--wckey=wckey]
               [job_id[_array_id][.step_id]]
"""
FILTERS = "account jobname me name nodelist partition qos reservation state user wckey".split()
TARGETS = frozenset({State.PENDING, State.RUNNING, State.SUSPENDED})
"""By which states one may choose."""

FLAGS: Mapping[str, str] = {
    "SCANCEL_BATCH": "batch",
    "SCANCEL_CTLD": "ctld",
    "SCANCEL_FULL": "full",
    "SCANCEL_HURRY": "hurry",
    "SCANCEL_INTERACTIVE": "interactive",
    "SCANCEL_VERBOSE": "verbose",
}
VALUES: Mapping[str, str] = {
    "SCANCEL_ACCOUNT": "account",
    "SCANCEL_NAME": "name",
    "SCANCEL_PARTITION": "partition",
    "SCANCEL_QOS": "qos",
    "SCANCEL_STATE": "state",
    "SCANCEL_USER": "user",
    "SCANCEL_WCKEY": "wckey",
}
KILL = 9
NOT_YOURS = 210
"""What is left in a byte of Slurm's number for what may not be done."""

ANSWERS = "answers"
"""The memo of an interactive call: `y` or `n` for each job so far."""


def run(call: Call, door: Door) -> Reply:
    """Cancel what is named and what the filters leave."""
    line = parsed(OPTIONS, call.argv, Manner(command=NAME))
    if line.has("version"):
        return version()
    if line.has("usage"):
        return Reply(out=USAGE)
    if line.has("help"):
        return help_reply(NAME, OPTIONS, "[OPTIONS] [job_id[_array_id][.step_id]]")
    line, strange = _with_environment(line, call.env)
    clusters.named(NAME, line, door.looking.fleet().clusters)
    if not line.rest and not any(line.has(each) for each in FILTERS):
        raise failed(NAME, "No job identification provided")
    names, signal = _names(line), _signal(line)
    _demand_whole(names)
    steps = tuple(name for name in names if name.step is not None)
    whole = tuple(name for name in names if name.step is None)
    strange += "".join(_ended_step(door, line, name, signal or KILL) for name in steps)
    if steps and not whole:
        return Reply(err=strange)
    reply = _ended(line, call, door, whole)
    return Reply(err=strange + reply.err, code=reply.code, then=reply.then)


def _demand_whole(names: tuple[JobName, ...]) -> None:
    """SlurmError for one component of a job: they end together."""
    for name in names:
        if name.component is not None:
            raise failed(NAME, f"Kill job error on job id {name.text}: {NOT_WHOLE}")


def _ended(line: Parsed, call: Call, door: Door, names: tuple[JobName, ...]) -> Reply:
    signal = _signal(line)
    rows = _chosen(line, call, door, names)
    if line.has("interactive"):
        question, rows = _asked(rows, call.memo)
        if question is not None:
            return Reply(then=question)
    told = _told(line, rows, signal) + _missed(line, door, names, rows)
    denied = _denied(door, names, rows)
    if rows:
        _act(door, tuple(row.job.id for row in rows), signal)
    said = "".join(
        f"scancel: error: Kill job error on job id {each}: {DENIED}\n" for each in denied
    )
    return Reply(err=told + said, code=NOT_YOURS if denied else 0)


def _with_environment(line: Parsed, env: Mapping[str, str]) -> tuple[Parsed, str]:
    """What variables say, below what the command line says; and those that say nothing."""
    given: list[tuple[str, str | None]] = [
        (option, env[name]) for name, option in VALUES.items() if name in env
    ]
    strange = ""
    for name, option in FLAGS.items():
        text = env.get(name, "f").lower()
        if text.startswith("t"):
            given.append((option, None))
        elif not text.startswith("f"):
            strange += f"scancel: error: Unrecognized {name} value: {env[name]}\n"
    return Parsed(given=(*given, *line.given), rest=line.rest), strange


def _asked(rows: list[JobRow], memo: Mapping[str, str]) -> tuple[Prompt | None, list[JobRow]]:
    """The next question, or the jobs that the user said yes to."""
    answers = memo.get(ANSWERS, "")
    if ANSWERS in memo:
        # At the end of the input nothing was typed, which is no.
        answers += "y" if memo.get("typed", "").strip().lower().startswith("y") else "n"
    if len(answers) >= len(rows):
        return None, [row for row, answer in zip(rows, answers, strict=False) if answer == "y"]
    row = rows[len(answers)]
    text = (
        f"Cancel job_id={jobs.id_text(row)} name={row.job.spec.name} "
        f"partition={jobs.partition(row)} [y/n]? "
    )
    return Prompt(text=text, memo={ANSWERS: answers}, echo=False), rows


def _ended_step(door: Door, line: Parsed, name: JobName, signal: int) -> str:
    """A step that runs is sent the signal; what is said if none does, or may not be."""
    step = f"{name.job}.{name.step}"
    running = {(each.job, str(each.number)) for each in door.looking.running_steps(door.caller)}
    is_loud = line.has("verbose") and not line.has("quiet")
    if (name.job, name.step) not in running:
        why = "Invalid job id specified"
        return f"scancel: error: Kill job error on job step id {step}: {why}\n" if is_loud else ""
    number = int(name.step or 0)
    outcome = door.service.signal(door.caller, (name.job,), signal, step=number).result()
    if outcome.failed:
        return f"scancel: error: Kill job error on job step id {step}: {DENIED}\n"
    return f"scancel: Terminating step {step}\n" if is_loud else ""


def _denied(door: Door, names: tuple[JobName, ...], rows: list[JobRow]) -> list[str]:
    """The jobs of others; of one that is named it is said even if it is over."""
    live = [jobs.id_text(row) for row in rows if not may_change(door, row.job)]
    lost = [name for name in names if not any(name.means(row.job) for row in rows)]
    over = [
        name.text
        for name in lost
        for view in ended_views(door, _any(name), Instant(0))[:1]
        if not may_change(door, view.job)
    ]
    return live + over


def _act(door: Door, ids: tuple[JobId, ...], signal: int | None) -> None:
    """The signal KILL ends a job, whatever its state; others only reach what runs."""
    if signal is None or signal == KILL:
        door.service.cancel(door.caller, ids).result()
    else:
        door.service.signal(door.caller, ids, signal).result()


def _any(name: JobName) -> Filter:
    return Filter(names=(name,), states=frozenset(State))


def _names(line: Parsed) -> tuple[JobName, ...]:
    found: list[JobName] = []
    for text in (each for word in line.rest for each in split_ids(word)):
        name = job_name(text)
        if name is None or (name.step is not None and not name.step.isdigit()):
            raise failed(NAME, f"Invalid job id {text}")
        found.append(name)
    return tuple(found)


def _signal(line: Parsed) -> int | None:
    text = line.value("signal")
    if text is None:
        return None
    try:
        return signal_number(text)
    except BadTextError as bad:
        raise SlurmError(f"Unknown job signal: {text}") from bad


def _chosen(line: Parsed, call: Call, door: Door, names: tuple[JobName, ...]) -> list[JobRow]:
    """Those that are named, as far as the filters leave them."""
    wish = Filter(
        names=names,
        users=_users(line, door),
        accounts=_one(line, "account"),
        qos=_one(line, "qos"),
        job_names=_one(line, "name", "jobname"),
        reservations=_one(line, "reservation"),
        states=_states(line),
    )
    scene = Scene(call, door)
    rows = [JobRow(view, scene) for view in live_views(door, wish)]
    return [row for row in rows if _is_there(row, line)]


def _users(line: Parsed, door: Door) -> frozenset[str]:
    if line.has("me"):
        return frozenset({door.caller.user})
    for name in line.words("user"):
        if not is_user(name):
            raise failed(NAME, f"Invalid user name: {name}")
    return users_of(line.words("user"))


def _one(line: Parsed, *names: str) -> frozenset[str]:
    """The value that was given last; as in Slurm it is no list, so that none too many are ended."""
    value = line.value(*names)
    return frozenset({value}) if value else frozenset()


def _states(line: Parsed) -> frozenset[State] | None:
    words = line.words("state")
    found = states_of(words)
    if not isinstance(found, frozenset) or not found <= TARGETS:
        raise SlurmError(
            f"Invalid job state specified: {words[-1]}",
            "Valid job states are PENDING, RUNNING, and SUSPENDED",
        )
    return found or None


def _is_there(row: JobRow, line: Parsed) -> bool:
    pools, hosts, wckey = line.words("partition"), line.value("nodelist"), line.value("wckey")
    return (
        (not pools or jobs.partition(row) in pools)
        and (hosts is None or not set(expanded(hosts)).isdisjoint(jobs.nodes(row)))
        and (wckey is None or row.label("wckey") == wckey)
    )


def _told(line: Parsed, rows: list[JobRow], signal: int | None) -> str:
    warned = "".join(warning(NAME, each) for each in ("batch", "sibling") if line.has(each))
    if not line.has("verbose"):
        return warned
    verb = "Terminating" if signal in {None, KILL} else f"Signal {signal} to"
    live = [row for row in rows if row.state is not State.COMPLETING]
    return warned + "".join(f"scancel: {verb} job {jobs.id_text(row)}\n" for row in live)


def _missed(line: Parsed, door: Door, names: tuple[JobName, ...], rows: list[JobRow]) -> str:
    """With -v one is told of ids that mean nothing any more; Slurm is silent about them else."""
    if not line.has("verbose"):
        return ""
    lost = [
        name.job
        for name in names
        if name.indices is None and not any(name.means(row.job) for row in rows)
    ]
    said = "".join(f"scancel: Terminating job {job}\n" for job in lost)
    return said + "".join(
        f"scancel: error: Kill job error on job id {job}: {_why_not(door, job)}\n" for job in lost
    )


def _why_not(door: Door, job: JobId) -> str:
    if ended_views(door, _any(JobName(job=job)), Instant(0)):
        return "Job/step already completing or completed"
    return "Invalid job id specified"
