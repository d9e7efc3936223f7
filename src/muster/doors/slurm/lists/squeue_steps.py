"""`squeue --steps`: the steps that run."""

from muster.doors.slurm.accounting import values
from muster.doors.slurm.call import Call, Door, Reply, lines
from muster.doors.slurm.lists.filters import Filter, JobName, job_name, split_ids, users_of
from muster.doors.slurm.lists.jobs import partition
from muster.doors.slurm.lists.listing import Listing
from muster.doors.slurm.lists.step_rows import (
    STEP_LETTERS,
    STEP_NAMES,
    StepRow,
    is_named,
    running_steps,
)
from muster.doors.slurm.words import times
from muster.doors.slurm.words.errors import SlurmError
from muster.doors.slurm.words.formats import keys_of, known, long_form, rendered, short_form
from muster.doors.slurm.words.hostlist import expanded
from muster.doors.slurm.words.options import Parsed
from muster.doors.slurm.words.states import State

DEFAULT = "%.15i %.8j %.9P %.8u %.9M %N"


def listed_steps(line: Parsed, call: Call, door: Door, listing: Listing) -> Reply:
    """A table of them, with the formats that squeue has for steps."""
    rows = _sorted(_chosen(line, door, listing), line.value("sort") or "")
    by_name = line.value("Format")
    text = line.value("format") or call.env.get("SQUEUE_FORMAT") or DEFAULT
    fields = STEP_NAMES if by_name else STEP_LETTERS
    form, lost = known(long_form(by_name) if by_name else short_form(text), fields)
    messages = "".join(
        f"squeue: error: Invalid job step format specification: {each}\n" for each in lost
    )
    header = not line.has("noheader")
    shown = list(rendered(form, fields, rows, header=header))
    if line.has("long") and header:
        shown.insert(0, times.heading_text(listing.now, call.zone))
    return Reply(out=lines(shown), err=messages)


def _chosen(line: Parsed, door: Door, listing: Listing) -> list[StepRow]:
    users = (
        frozenset({door.caller.user}) if line.has("me") else users_of(line.words("user", "users"))
    )
    wish = Filter(
        names=tuple(_job(text) for value in line.values("jobs") for text in split_ids(value)),
        users=users,
        accounts=frozenset(line.words("accounts")),
        qos=frozenset(line.words("qos")),
        states=frozenset(State),
    )
    rows = running_steps(door, listing, wish)
    names = tuple(_step(text) for value in line.values("steps") for text in split_ids(value))
    if names:
        rows = [row for row in rows if is_named(row, names)]
    pools = set(line.words("partitions"))
    if pools:
        rows = [row for row in rows if partition(row.row) in pools]
    hosts = line.value("nodelist", "nodes", "node")
    if hosts is not None:
        there = set(expanded(hosts))
        rows = [row for row in rows if not there.isdisjoint(values.nodes(row))]
    return rows


def _job(text: str) -> JobName:
    name = job_name(text)
    if name is None:
        raise SlurmError(f"squeue: error: Invalid job id: {text}")
    return name


def _step(text: str) -> JobName:
    name = job_name(text)
    if name is None or name.step is None:
        raise SlurmError(f"squeue: error: Invalid job_step id: {text.partition('.')[0]}.??")
    return name


def _sorted(rows: list[StepRow], order: str) -> list[StepRow]:
    """By each key in turn, the least important first, because sorting keeps what was in order."""
    for letter, downwards in keys_of(order):
        if letter == "M":
            rows.sort(key=lambda row: row.elapsed, reverse=downwards)
        elif letter in STEP_LETTERS and letter != "i":
            rows.sort(key=STEP_LETTERS[letter].get, reverse=downwards)
    return rows
