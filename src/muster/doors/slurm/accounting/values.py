"""What a row of accounting shows, as text."""

from collections.abc import Callable, Hashable
from math import ceil

from muster.doors.slurm.accounting.records import (
    AcctRow,
    RecordKind,
    cancelled_by,
    derived_exit,
    exit_of_row,
    state_of_row,
)
from muster.doors.slurm.lists import jobs
from muster.doors.slurm.lists.jobs import JobRow
from muster.doors.slurm.lists.listing import Listing
from muster.doors.slurm.lists.usage import (
    Scale,
    Together,
    average,
    given_out,
    gpus_taken,
    same_for_all,
    taken_in,
    tres_text,
)
from muster.doors.slurm.words import times
from muster.doors.slurm.words.hostlist import compressed
from muster.doors.slurm.words.states import LIVE, State
from muster.doors.slurm.words.users import uid_of
from muster.model.resources import Resources
from muster.model.value import Duration, Instant, NodeId

SHELL_SIGNAL = 128

NOBODY_ASSIGNED = "None assigned"


def id_text(acct: AcctRow) -> str:
    """`12`, `12_3`, `12_[4-9]`, `12+1`, each with its step behind it."""
    text = jobs.id_text(acct.row)
    return f"{text}.{acct.name}" if acct.kind else text


def raw_id(acct: AcctRow) -> str:
    """Waiting tasks of an array are one row, under the number of their array."""
    if acct.row.indices:
        return jobs.array_id(acct.row)
    return f"{acct.row.job.id}.{acct.name}" if acct.kind else str(acct.row.job.id)


def name(acct: AcctRow) -> str:
    if acct.kind is RecordKind.BATCH:
        return "batch"
    return acct.row.job.spec.name if acct.step is None else acct.step.name


def state(acct: AcctRow) -> str:
    found = state_of_row(acct)
    if found is State.CANCELLED and acct.kind is RecordKind.JOB:
        by = cancelled_by(acct.record)
        return found.name if by is None else f"CANCELLED by {uid_of(by)}"
    return found.name


def exit_text(acct: AcctRow) -> str:
    return _exit_text(*exit_of_row(acct))


def derived_exit_text(acct: AcctRow) -> str:
    return _exit_text(*derived_exit(acct.record))


def _exit_text(code: int, signal: int) -> str:
    """A shell ends with 128 and more for a signal; sacct takes that off, and so do we."""
    return f"{code - SHELL_SIGNAL if code >= SHELL_SIGNAL else code}:{signal}"


def reason(acct: AcctRow) -> str:
    """Why it waits; of what is over Slurm remembers what kept it last, and we do not."""
    return jobs.reason(acct.row) if acct.row.state in LIVE else "None"


def amount(acct: AcctRow) -> Resources:
    """What it may use; a script is where its job's first node is."""
    if acct.step is not None:
        return acct.step.amount
    whole = jobs.amount(acct.row)
    if acct.kind is RecordKind.JOB:
        return whole
    there = jobs.nodes(acct.row)
    held = acct.row.view.allocation
    if held is None or len(there) < 2:
        return _share(whole, len(there))
    on_first = [placed.amount for placed in held.placements if placed.node == there[0]]
    return sum(on_first, Resources())


def cpus(acct: AcctRow) -> int:
    return max(1, ceil(amount(acct).cpu_milli / 1_000))


def cpus_text(acct: AcctRow) -> str:
    return str(cpus(acct))


def cpu_time(acct: AcctRow) -> Duration:
    return Duration(acct.elapsed // 1_000 * 1_000 * cpus(acct))


def nodes(acct: AcctRow) -> tuple[str, ...]:
    if acct.step is not None:
        return acct.step.nodes
    there = jobs.nodes(acct.row)
    return there[:1] if acct.kind is RecordKind.BATCH else there


def node_list(acct: AcctRow) -> str:
    return compressed(nodes(acct)) or NOBODY_ASSIGNED


def node_count(acct: AcctRow) -> int:
    if acct.kind is RecordKind.JOB and acct.record.component is None:
        return jobs.node_count(acct.row)
    return max(1, len(nodes(acct)))


def allocated_nodes(acct: AcctRow) -> str:
    return str(len(nodes(acct)))


def tasks(acct: AcctRow) -> int:
    return 1 if acct.step is None else acct.step.tasks


def allocated(acct: AcctRow) -> str:
    """AllocTRES: nothing for what never started."""
    if acct.kind is RecordKind.JOB and not jobs.nodes(acct.row):
        return ""
    count = gpu_count(acct)
    kind = gpu_type(acct.row) if count else None
    return _known(acct, (acct.kind, amount(acct), node_count(acct), count, kind), allocated_parts)


def allocated_parts(acct: AcctRow) -> dict[str, str]:
    has = amount(acct)
    parts = {"cpu": str(cpus(acct)), "node": str(node_count(acct))}
    if acct.kind is RecordKind.JOB:
        parts["billing"] = parts["cpu"]
    if has.memory_mib or acct.kind is not RecordKind.JOB:
        parts["mem"] = scale_of(acct).mib(has.memory_mib)
    count = gpu_count(acct)
    if count:
        parts["gres/gpu"] = str(count)
        kind = gpu_type(acct.row)
        if kind is not None:
            parts[f"gres/gpu:{kind}"] = str(count)
    return parts


def requested(acct: AcctRow) -> str:
    """ReqTRES of the job."""
    asked = jobs.asked_amount(acct.row.job)
    return _known(acct, (asked, node_count(acct), jobs.gpu_count(acct.row)), requested_parts)


def requested_parts(acct: AcctRow) -> dict[str, str]:
    row = acct.row
    asked = jobs.asked_amount(row.job)
    count = str(max(1, ceil(asked.cpu_milli / 1_000)))
    parts = {"cpu": count, "node": str(node_count(acct)), "billing": count}
    if asked.memory_mib:
        parts["mem"] = scale_of(acct).mib(asked.memory_mib)
    gpus = jobs.gpu_count(row)
    if gpus:
        parts["gres/gpu"] = str(gpus)
    return parts


def gpu_count(acct: AcctRow) -> int:
    if acct.step is not None:
        return ceil(acct.step.amount.gpu_milli / 1_000)
    count = jobs.gpu_count(acct.row)
    if acct.kind is RecordKind.JOB or not count:
        return count
    return max(1, count // max(1, len(jobs.nodes(acct.row))))


def gpu_type(row: JobRow) -> str | None:
    """The type of GPU, where all that the job had were of one."""
    if row.view.allocation is not None:
        kinds = tuple(jobs.gpu_types(row))
        return kinds[0] if len(kinds) == 1 else None
    return _type_there(row.listing, jobs.nodes(row))


def old_gres(acct: AcctRow) -> str:
    """The older spelling of what GPUs a job asked for."""
    count = jobs.gpu_count(acct.row)
    return f"gpu:{count}" if count else ""


def memory(acct: AcctRow) -> str:
    """ReqMem: on all nodes together."""
    return scale_of(acct).mib(jobs.asked_amount(acct.row.job).memory_mib)


def waited(acct: AcctRow) -> Duration:
    """From when it could have started until it did; below zero if that is still to come."""
    since = acct.record.eligible_at
    if since is None:
        return Duration(0)
    return Duration((acct.started_at or acct.ended_at or acct.row.listing.now) - since)


def limit(acct: AcctRow) -> str:
    found = jobs.time_limit(acct.row)
    return "UNLIMITED" if found is None else times.long_text(found)


def raw_limit(acct: AcctRow) -> str:
    found = jobs.time_limit(acct.row)
    return "UNLIMITED" if found is None else str(found // 60_000)


def priority(acct: AcctRow) -> str:
    return str(jobs.priority(acct.row))


def at_text(acct: AcctRow, at: Instant | None, otherwise: str = "Unknown") -> str:
    listing = acct.row.listing
    return otherwise if at is None else times.instant_text(at, listing.time_form, listing.zone)


def start(acct: AcctRow) -> str:
    """What was ended before it began never started; what waits is not known to."""
    if acct.started_at is None and acct.ended_at is not None:
        return "None"
    return at_text(acct, acct.started_at)


def submit(acct: AcctRow) -> str:
    at = acct.record.submitted_at if acct.kind is RecordKind.JOB else acct.started_at
    return at_text(acct, at)


def eligible(acct: AcctRow) -> str:
    at = acct.record.eligible_at if acct.kind is RecordKind.JOB else acct.started_at
    return at_text(acct, at)


def line(acct: AcctRow) -> str:
    """The command that asked for it; a script was asked for with its job."""
    return acct.row.launch.submit_line or "" if acct.step is None else acct.step.command


# What was measured.


def cpu_ms(acct: AcctRow) -> tuple[int, int]:
    """All of it, and the kernel's part. An attempt's steps are counted in what it used."""
    used = acct.used
    if acct.step is not None or not acct.record.steps:
        return (0, 0) if used is None else (used.cpu_ms, used.system_ms)
    of_steps = [step.used for step in acct.record.steps if step.used is not None]
    whole = sum(each.cpu_ms for each in of_steps)
    system = sum(each.system_ms for each in of_steps)
    if acct.kind is RecordKind.JOB:
        return (whole, system) if used is None else (used.cpu_ms, used.system_ms)
    if used is None:
        return 0, 0
    return max(0, used.cpu_ms - whole), max(0, used.system_ms - system)


def total_cpu(acct: AcctRow) -> str:
    return times.cpu_text(Duration(cpu_ms(acct)[0]))


def user_cpu(acct: AcctRow) -> str:
    whole, system = cpu_ms(acct)
    return times.cpu_text(Duration(whole - system))


def system_cpu(acct: AcctRow) -> str:
    return times.cpu_text(Duration(cpu_ms(acct)[1]))


def average_cpu(acct: AcctRow) -> str:
    used = acct.used
    return "" if used is None else times.long_text(Duration(used.cpu_ms // tasks(acct)))


def resident(acct: AcctRow) -> str:
    """Of what was over before anybody looked, nothing is known."""
    used = acct.used
    if used is None or not used.max_memory_mib:
        return ""
    return scale_of(acct).mib(used.max_memory_mib)


def pages(acct: AcctRow) -> str:
    return "" if acct.used is None else str(acct.used.faults)


def disk_read(acct: AcctRow) -> str:
    return "" if acct.used is None else _megabytes(acct.used.read_kib)


def disk_written(acct: AcctRow) -> str:
    return "" if acct.used is None else _megabytes(acct.used.written_kib)


def where_measured(acct: AcctRow) -> str:
    there = nodes(acct)
    return "" if acct.used is None or not there else there[0]


def which_measured(acct: AcctRow) -> str:
    return "" if acct.used is None else "0"


def usage_in(acct: AcctRow, together: Together = sum) -> str:
    """together: what of several GPUs is told; of tasks it is the mean where that is."""
    used = acct.used
    if used is None:
        return ""
    parts = taken_in(used, scale_of(acct), tasks(acct) if together is average else 1)
    return tres_text(parts | gpus_taken(acct.row.listing.report_of(acct.row.job), together))


def usage_out(acct: AcctRow, *, average: bool = False) -> str:
    used = acct.used
    return "" if used is None else tres_text(given_out(used, tasks(acct) if average else 1))


def usage_in_at(acct: AcctRow, value: str) -> str:
    used = acct.used
    return "" if used is None else same_for_all(taken_in(used, scale_of(acct)), value)


def usage_out_at(acct: AcctRow, value: str) -> str:
    used = acct.used
    return "" if used is None else same_for_all(given_out(used), value)


def scale_of(acct: AcctRow) -> Scale:
    return acct.row.listing.scale


def _share(whole: Resources, count: int) -> Resources:
    if count < 2:
        return whole
    return Resources(
        cpu_milli=whole.cpu_milli // count,
        memory_mib=whole.memory_mib // count,
        gpu_milli=whole.gpu_milli // count,
    )


def _type_there(listing: Listing, names: tuple[str, ...]) -> str | None:
    if names not in listing.types_there:
        nodes = [listing.nodes[node] for each in names if (node := NodeId(each)) in listing.nodes]
        models = {device.model for node in nodes for device in node.devices}
        listing.types_there[names] = listing.gpu_type(models.pop()) if len(models) == 1 else None
    return listing.types_there[names]


def _known(acct: AcctRow, key: Hashable, parts: Callable[[AcctRow], dict[str, str]]) -> str:
    """Jobs are alike: what was written for one is written for the next."""
    known = acct.row.listing.tres_known
    found = known.get(key)
    if found is None:
        found = known[key] = tres_text(parts(acct))
    return found


def _megabytes(kib: int) -> str:
    return f"{kib / 1_024:.2f}M"
