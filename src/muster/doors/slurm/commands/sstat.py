"""`sstat`: what the steps of running jobs use now."""

import re
from collections.abc import Callable, Iterator

from muster.doors.slurm.accounting import values
from muster.doors.slurm.accounting.records import AcctRow
from muster.doors.slurm.call import Call, Door, Reply, lines, version
from muster.doors.slurm.help import columns_of, help_reply
from muster.doors.slurm.lists.filters import (
    JobName,
    ended_views,
    in_any_state,
    job_name,
    live_views,
    split_ids,
)
from muster.doors.slurm.lists.listing import Listing
from muster.doors.slurm.lists.step_rows import is_named, running_steps
from muster.doors.slurm.lists.usage import (
    Together,
    average,
    given_out,
    gpus_taken,
    same_for_all,
    taken_in,
    tres_text,
)
from muster.doors.slurm.words import times
from muster.doors.slurm.words.errors import SlurmError
from muster.doors.slurm.words.formats import Field, Form, cut_table, parsable, picked_form
from muster.doors.slurm.words.hostlist import compressed
from muster.doors.slurm.words.options import Manner, Parsed, parsed, table
from muster.model.errors import ForbiddenError, UnknownError
from muster.model.running import Measured
from muster.model.value import Duration, Instant

NAME = "sstat"
OPTIONS = table("""
    a:allsteps o:format= fields= h:help e:helpformat j:jobs= noconvert n:noheader p:parsable
    P:parsable2 i:pidformat usage v:verbose V:version
""")
PIDS = "jobid,nodelist,pids"
_STEP = re.compile(r"batch|extern|interactive|[0-9]{1,10}")


class Sight:
    """A step, and what it uses now, as far as that can be seen."""

    __slots__ = ("now", "row")

    def __init__(self, row: AcctRow, now: Measured) -> None:
        self.row = row
        self.now = now

    @property
    def tasks(self) -> int:
        return values.tasks(self.row)


def run(call: Call, door: Door) -> Reply:
    """Look at the steps that are named."""
    line = parsed(OPTIONS, call.argv, Manner(command=NAME, points_to_help=False))
    if line.has("version"):
        return version()
    if line.has("usage"):
        return Reply(out="Usage: sstat [options] -j <job(.stepid)>\n\tUse --help for help\n")
    if line.has("help"):
        return help_reply(NAME, OPTIONS, "[<OPTION>] -j <job(.stepid)>")
    if line.has("helpformat"):
        return Reply(out=columns_of(LISTED))
    form = _form(line)
    names = _names(line)
    messages: list[str] = []
    listing = Listing(call, door)
    sights = [each for name in names for each in _seen(name, line, door, listing, messages)]
    return Reply(out=lines(_table(line, form, sights)), err=lines(messages))


def _names(line: Parsed) -> list[JobName]:
    words = [word for value in line.values("jobs") for word in split_ids(value)]
    found: list[JobName] = []
    for word in (*words, *line.rest):
        name = job_name(word)
        if name is None:
            raise SlurmError(f"sstat: fatal: Bad job/step specified: {word}")
        if name.step is not None and _STEP.fullmatch(name.step) is None:
            raise SlurmError(f"sstat: fatal: Bad step specified: {word.partition('.')[0]}")
        found.append(name)
    if not found:
        raise SlurmError("sstat: error: You didn't give me any jobs to stat.")
    return found


def _seen(
    name: JobName, line: Parsed, door: Door, listing: Listing, messages: list[str]
) -> Iterator[Sight]:
    """The step that is named, the first that is no script, or all of them."""
    rows = [row for row in running_steps(door, listing) if is_named(row, (name,))]
    if not rows:
        messages.append(_missing(name, door))
        return
    if name.step is None and not line.has("allsteps"):
        rows = [row for row in rows if row.step is not None][:1]
    for row in rows:
        try:
            found = door.queries.attempts.usage(door.caller, row.row.job.id)
        except (UnknownError, ForbiddenError) as error:
            step = f"StepId={values.raw_id(row)}"
            why = "Invalid user id" if isinstance(error, ForbiddenError) else str(error)
            messages.append(f"sstat: error: problem getting step_layout for {step}: {why}")
            continue
        number = None if row.step is None else row.step.number
        yield from (Sight(row, now) for now in found if now.step == number)


def _missing(name: JobName, door: Door) -> str:
    wish = in_any_state(JobName(job=name.job))
    if not (live_views(door, wish) or ended_views(door, wish, Instant(0))):
        return f"sstat: error: couldn't get steps for job {name.job}"
    if name.step is None:
        return f"sstat: error: No steps running for job {name.job}"
    return f"sstat: error: StepId={name.job}.{name.step} not found running."


def _form(line: Parsed) -> Form:
    given = ",".join(line.values("format", "fields"))
    text = PIDS if line.has("pidformat") else given if line.has("format") else DEFAULT
    words = [word for each in text.split(",") if (word := each.strip())]
    form, unknown = picked_form(words, FIELDS)
    if unknown:
        raise SlurmError(f'sstat: error: Invalid field requested: "{unknown[0]}"')
    return form


def _table(line: Parsed, form: Form, sights: list[Sight]) -> list[str]:
    header = not line.has("noheader")
    if line.has("parsable") or line.has("parsable2"):
        ends = ("|", "" if line.has("parsable2") else "|")
        return list(parsable(form, FIELDS, sights, header=header, ends=ends))
    return list(cut_table(form, FIELDS, sights, header=header))


def _in(sight: Sight, together: Together = sum) -> dict[str, str]:
    row = sight.row.row
    tasks = sight.tasks if together is average else 1
    parts = taken_in(sight.now.used, row.listing.scale, tasks)
    peak = sight.now.peak_kib if tasks == 1 else sight.now.resident_kib // tasks
    gpus = gpus_taken(row.listing.report_of(row.job), together)
    return parts | gpus | {"mem": f"{peak}K", "vmem": f"{sight.now.virtual_kib}K"}


def _node(sight: Sight) -> str:
    there = values.nodes(sight.row)
    return there[0] if there else ""


def _cpu(sight: Sight) -> str:
    return times.long_text(Duration(sight.now.used.cpu_ms // sight.tasks))


def _read(sight: Sight) -> str:
    return str(sight.now.used.read_kib * 1_024)


def _written(sight: Sight) -> str:
    return str(sight.now.used.written_kib * 1_024)


def _all_taken(together: Together) -> Callable[[Sight], str]:
    return lambda sight: tres_text(_in(sight, together))


def _usage_fields() -> Iterator[tuple[str, int, Callable[[Sight], str]]]:
    """Sums over processes stand for the extremes over tasks, which are not counted separately."""
    yield "TRESUsageInAve", 14, _all_taken(average)
    for what, together in (("Max", max), ("Min", min)):
        yield f"TRESUsageIn{what}", 14, _all_taken(together)
        yield f"TRESUsageIn{what}Node", 18, lambda sight: same_for_all(_in(sight), _node(sight))
        yield f"TRESUsageIn{what}Task", 18, lambda sight: same_for_all(_in(sight), "0")
    yield "TRESUsageInTot", 14, _all_taken(sum)
    yield (
        "TRESUsageOutAve",
        15,
        lambda sight: tres_text(given_out(sight.now.used, sight.tasks)),
    )
    for what in ("Max", "Min"):
        yield f"TRESUsageOut{what}", 15, lambda sight: tres_text(given_out(sight.now.used))
        yield (
            f"TRESUsageOut{what}Node",
            19,
            lambda sight: same_for_all(given_out(sight.now.used), _node(sight)),
        )
        yield (
            f"TRESUsageOut{what}Task",
            19,
            lambda sight: same_for_all(given_out(sight.now.used), "0"),
        )
    yield "TRESUsageOutTot", 15, lambda sight: tres_text(given_out(sight.now.used))


_FIELDS: tuple[tuple[str, int, Callable[[Sight], str]], ...] = (
    ("AveCPU", 10, _cpu),
    ("AveCPUFreq", 10, lambda _: "0"),
    ("AveDiskRead", 12, _read),
    ("AveDiskWrite", 12, _written),
    ("AvePages", 10, lambda sight: str(sight.now.used.faults)),
    ("AveRSS", 10, lambda sight: f"{sight.now.resident_kib // sight.tasks}K"),
    ("AveVMSize", 10, lambda sight: f"{sight.now.virtual_kib}K"),
    ("ConsumedEnergy", 14, lambda _: "0"),
    ("ConsumedEnergyRaw", 17, lambda _: "0"),
    ("JobID", -12, lambda sight: values.raw_id(sight.row)),
    ("MaxDiskRead", 12, _read),
    ("MaxDiskReadNode", 15, _node),
    ("MaxDiskReadTask", 15, lambda _: "0"),
    ("MaxDiskWrite", 12, _written),
    ("MaxDiskWriteNode", 16, _node),
    ("MaxDiskWriteTask", 16, lambda _: "0"),
    ("MaxPages", 8, lambda sight: str(sight.now.used.faults)),
    ("MaxPagesNode", 12, _node),
    ("MaxPagesTask", 14, lambda _: "0"),
    ("MaxRSS", 10, lambda sight: f"{sight.now.peak_kib}K"),
    ("MaxRSSNode", 10, _node),
    ("MaxRSSTask", 10, lambda _: "0"),
    ("MaxVMSize", 10, lambda sight: f"{sight.now.virtual_kib}K"),
    ("MaxVMSizeNode", 14, _node),
    ("MaxVMSizeTask", 14, lambda _: "0"),
    ("MinCPU", 10, _cpu),
    ("MinCPUNode", 10, _node),
    ("MinCPUTask", 10, lambda _: "0"),
    ("Nodelist", 20, lambda sight: compressed(values.nodes(sight.row))),
    ("NTasks", 8, lambda sight: str(sight.tasks)),
    ("Pids", 20, lambda sight: ",".join(sight.now.processes)),
    ("ReqCPUFreq", 10, lambda _: "0"),
    ("ReqCPUFreqMin", 13, lambda _: "0"),
    ("ReqCPUFreqMax", 13, lambda _: "0"),
    ("ReqCPUFreqGov", 13, lambda _: "0"),
    *_usage_fields(),
)
FIELDS = {name.lower(): Field(header=name, get=get, width=size) for name, size, get in _FIELDS}
LISTED = tuple(name for name, _, _ in _FIELDS)
DEFAULT = (
    "jobid,maxvmsize,maxvmsizenode,maxvmsizetask,avevmsize,maxrss,maxrssnode,maxrsstask,averss,"
    "maxpages,maxpagesnode,maxpagestask,avepages,mincpu,mincpunode,mincputask,avecpu,ntasks,"
    "avecpufreq,reqcpufreqmin,reqcpufreqmax,reqcpufreqgov,consumedenergy,maxdiskread,"
    "maxdiskreadnode,maxdiskreadtask,avediskread,maxdiskwrite,maxdiskwritenode,maxdiskwritetask,"
    "avediskwrite,tresusageinave,tresusageinmax,tresusageinmaxnode,tresusageinmaxtask,"
    "tresusageinmin,tresusageinminnode,tresusageinmintask,tresusageintot,tresusageoutave,"
    "tresusageoutmax,tresusageoutmaxnode,tresusageoutmaxtask,tresusageoutmin,tresusageoutminnode,"
    "tresusageoutmintask,tresusageouttot"
)
