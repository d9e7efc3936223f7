"""`scancel`: end jobs, or send them a signal."""

from collections.abc import Iterable, Mapping

from muster.doors.slurm import clusters
from muster.doors.slurm.call import Call, Door, Prompt, Reply, version, warning
from muster.doors.slurm.control.job_verbs import NOT_WHOLE, OVER, UNKNOWN
from muster.doors.slurm.help import help_reply
from muster.doors.slurm.lists import jobs
from muster.doors.slurm.lists.filters import (
    Filter,
    JobName,
    ended_views,
    in_any_state,
    job_name,
    live_views,
    split_ids,
    states_of,
    users_of,
)
from muster.doors.slurm.lists.jobs import JobRow
from muster.doors.slurm.lists.listing import Listing
from muster.doors.slurm.permissions import DENIED, STRANGER, may_change
from muster.doors.slurm.words.errors import SlurmError, failed
from muster.doors.slurm.words.hostlist import expanded
from muster.doors.slurm.words.options import Manner, Parsed, parsed, table
from muster.doors.slurm.words.states import State
from muster.doors.slurm.words.users import is_user
from muster.doors.units import BadTextError, signal_number
from muster.model.forbidden import NotYourJob
from muster.model.job import Job
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
DENIED_CODE, STRANGER_CODE, UNKNOWN_CODE = (number & 0xFF for number in (2002, 2010, 2017))
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
    clusters.named(NAME, line, door.queries.nodes.clusters())
    if not line.rest and not any(line.has(each) for each in FILTERS):
        raise failed(NAME, "No job identification provided")
    names, signal = _names(line), _signal(line)
    _demand_whole(names)
    steps = tuple(name for name in names if name.step is not None)
    whole = tuple(name for name in names if name.step is None)
    messages = [_ended_step(door, line, name, signal or KILL) for name in steps]
    if whole or not steps:
        messages.append(_ended(line, call, door, whole))
    return Reply(
        err=strange + "".join(each.err for each in messages),
        code=max(each.code for each in messages),
        then=messages[-1].then,
    )


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
    messages = _report(line, rows, signal)
    missed = _missed(line, door, names, rows)
    acted = _acted(door, rows, names, line) if rows else Reply()
    return Reply(err=messages + missed.err + acted.err, code=max(missed.code, acted.code))


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


def _ended_step(door: Door, line: Parsed, name: JobName, signal: int) -> Reply:
    """A step that runs is sent the signal; what is said if none does, or may not be."""
    step = f"step id {name.job}.{name.step}"
    job = door.queries.jobs.find(door.caller, name.job)
    if job is not None and not may_change(door, job):
        return _failed([step], STRANGER, code=STRANGER_CODE)
    running = {
        (each.job, str(each.number)) for each in door.queries.jobs.running_steps(door.caller)
    }
    if (name.job, name.step) not in running:
        if job is None:
            return _failed([step], UNKNOWN, code=1)
        # Of jobs that have no steps yet, nothing is said.
        missed = [step] if job.attempt else []
        return _failed(missed, UNKNOWN, code=UNKNOWN_CODE)
    number = int(name.step or 0)
    outcome = door.service.signal(door.caller, (name.job,), signal, step=number).result()
    if outcome.failed:
        return _failed([step], DENIED, code=DENIED_CODE)
    is_loud = line.has("verbose") and not line.has("quiet")
    return Reply(err=f"scancel: Terminating {step.replace(' id', '')}\n" if is_loud else "")


def _failed(whats: Iterable[str], why: str, *, code: int) -> Reply:
    """In Slurm, the lower half of an error's number becomes the exit code."""
    texts = [f"scancel: error: Kill job error on job {what}: {why}\n" for what in whats]
    return Reply(err="".join(texts), code=code if texts else 0)


def _acted(door: Door, rows: list[JobRow], names: tuple[JobName, ...], line: Parsed) -> Reply:
    """The signal KILL ends a job, whatever its state; others only reach what runs."""
    signal, ids = _signal(line), tuple(row.job.id for row in rows)
    if signal is None or signal == KILL:
        outcome = door.service.cancel(door.caller, ids).result()
    else:
        outcome = door.service.signal(door.caller, ids, signal).result()
    kept = {job for job, why in outcome.failed.items() if isinstance(why, NotYourJob)}
    denied = [row for row in rows if row.job.id in kept]
    return _failed(_called(denied, names), DENIED, code=DENIED_CODE)


def _called(rows: list[JobRow], names: tuple[JobName, ...]) -> list[str]:
    """As they were named; tasks of an array that wait, and were not named, are one."""
    named = [row for row in rows if any(name.means(row.job) for name in names)]
    texts = [
        str(name.job) if name.indices is None else name.text
        for row in named
        for name in names
        if name.means(row.job)
    ]
    others = jobs.collapsed(row for row in rows if row not in named)
    return [f"id {each}" for each in dict.fromkeys([*texts, *map(jobs.id_text, others)])]


def _names(line: Parsed) -> tuple[JobName, ...]:
    found: list[JobName] = []
    for text in (each for word in line.rest for each in split_ids(word)):
        name = job_name(text)
        if name is None or (name.step is not None and not name.step.isdecimal()):
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
    listing = Listing(call, door)
    rows = [JobRow(view, listing) for view in live_views(door, wish)]
    return [row for row in rows if _is_there(row, line)]


def _users(line: Parsed, door: Door) -> frozenset[str]:
    if line.has("me"):
        return frozenset({door.caller.user})
    named = _one(line, "user")
    for name in named:
        if not is_user(name):
            raise failed(NAME, f"Invalid user name: {name}")
    return users_of(tuple(named))


def _one(line: Parsed, *names: str) -> frozenset[str]:
    """The value that was given last; as in Slurm it is no list, so that none too many are ended."""
    value = line.value(*names)
    return frozenset({value}) if value else frozenset()


def _states(line: Parsed) -> frozenset[State] | None:
    named = _one(line, "state")
    found = states_of(tuple(named))
    if not isinstance(found, frozenset) or not found <= TARGETS:
        raise SlurmError(
            f"Invalid job state specified: {line.value('state')}",
            "Valid job states are PENDING, RUNNING, and SUSPENDED",
        )
    return found or None


def _is_there(row: JobRow, line: Parsed) -> bool:
    pools, hosts, wckey = _one(line, "partition"), line.value("nodelist"), line.value("wckey")
    return (
        (not pools or jobs.partition(row) in pools)
        and (hosts is None or not set(expanded(hosts)).isdisjoint(jobs.nodes(row)))
        and (wckey is None or row.label("wckey") == wckey)
    )


def _report(line: Parsed, rows: list[JobRow], signal: int | None) -> str:
    aside = ("batch", "sibling") if rows else ()
    warned = "".join(warning(NAME, each) for each in aside if line.has(each))
    if not line.has("verbose"):
        return warned
    verb = "Terminating" if signal in {None, KILL} else f"Signal {signal} to"
    live = [row for row in rows if row.state is not State.COMPLETING]
    return warned + "".join(f"scancel: {verb} job {jobs.id_text(row)}\n" for row in live)


def _missed(line: Parsed, door: Door, names: tuple[JobName, ...], rows: list[JobRow]) -> Reply:
    """Slurm speaks of ids that mean nothing any more with -v, or where they were another's."""
    lost = [
        name.job
        for name in names
        if name.indices is None and not any(name.means(row.job) for row in rows)
    ]
    over = {job: _ended_jobs(door, job) for job in lost}
    strangers = [job for job in lost if not all(may_change(door, each) for each in over[job])]
    denied = _failed([f"id {job}" for job in strangers], DENIED, code=DENIED_CODE)
    if not line.has("verbose"):
        return denied
    said = "".join(f"scancel: Terminating job {job}\n" for job in lost)
    said += "".join(
        f"scancel: error: Kill job error on job id {job}: {OVER if over[job] else UNKNOWN}\n"
        for job in lost
        if job not in strangers
    )
    return Reply(err=said + denied.err, code=denied.code)


def _ended_jobs(door: Door, job: JobId) -> list[Job]:
    wish = in_any_state(JobName(job=job))
    return [view.job for view in ended_views(door, wish, Instant(0))]
