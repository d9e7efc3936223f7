"""Tables of sacctmgr: fields by several names, chosen by `format=name%30,...`. Pure."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeVar

from muster.doors.slurm.call import lines
from muster.doors.slurm.words.errors import SlurmError
from muster.doors.slurm.words.formats import Column, Field, Form, cut_table, narrowed, parsable
from muster.model.value import Value

R = TypeVar("R")

Named = tuple[tuple[str, ...], Field[R]]
"""A field and the names that it goes by, in small letters."""


EVERYWHERE = (
    ("Account Acct", 10, ""),
    ("Action", 20, ""),
    ("ActionRaw", 10, ""),
    ("Actor", 10, ""),
    ("AdminLevel", 9, "Admin"),
    ("Allocated", 11, "% Allocated"),
    ("Associations", 10, "Assocs"),
    ("Classification", 9, "Class"),
    ("Cluster Clusters", 10, ""),
    ("ClusterNodes", 20, "Cluster Nodes"),
    ("ControlHost", 15, ""),
    ("ControlPort", 12, ""),
    ("Coordinators", 20, "Coord Accounts"),
    ("Count", 6, ""),
    ("CPUCount", 7, "CPU Cnt"),
    ("DefaultAccount", 10, "Def Acct"),
    ("DefaultQOS", 9, "Def QOS"),
    ("DefaultWCKey", 10, "Def WCKey"),
    ("Description", 20, "Descr"),
    ("Duration", 13, ""),
    ("Event", 7, ""),
    ("EventRaw", 8, ""),
    ("Fairshare Shares Share", 9, "Share"),
    ("Features", 20, ""),
    ("Federation", 10, ""),
    ("FedState", 12, ""),
    ("FedStateRaw", 11, ""),
    ("Flags", 20, ""),
    ("GraceTime", 10, ""),
    ("GrpCPUMins", 11, ""),
    ("GrpCPURunMins", 13, ""),
    ("GrpCPUs", 8, ""),
    ("GrpJobs", 7, ""),
    ("GrpJobsAccrue", 13, ""),
    ("GrpMemory", 7, "GrpMem"),
    ("GrpNodes", 8, ""),
    ("GrpSubmitJobs GrpSubmit", 9, "GrpSubmit"),
    ("GrpTRES", 13, ""),
    ("GrpTRESMins", 13, ""),
    ("GrpTRESRunMins", 13, "GrpTRESRunMin"),
    ("GrpWall", 11, ""),
    ("ID", 6, ""),
    ("Index", 6, ""),
    ("Info", 20, ""),
    ("LFT", 6, ""),
    ("LimitFactor", 11, ""),
    ("MaxCPUMinsPerJob", 11, "MaxCPUMins"),
    ("MaxCPUsPerJob", 8, "MaxCPUs"),
    ("MaxCPUsPerUser MaxCPUsPU", 9, "MaxCPUsPU"),
    ("MaxJobs", 7, ""),
    ("MaxJobsAccrue", 13, ""),
    ("MaxJobsAccruePerAccount MaxJobsAccruePA", 15, "MaxJobsAccruePA"),
    ("MaxJobsAccruePerUser MaxJobsAccruePU", 15, "MaxJobsAccruePU"),
    ("MaxJobsPerAccount MaxJobsPA", 9, "MaxJobsPA"),
    ("MaxJobsPerUser MaxJobsPU", 9, "MaxJobsPU"),
    ("MaxNodesPerJob", 8, "MaxNodes"),
    ("MaxNodesPerUser MaxNodesPU", 10, "MaxNodesPU"),
    ("MaxSubmitJobs MaxSubmit", 9, "MaxSubmit"),
    ("MaxSubmitJobsPerAccount MaxSubmitJobsPA MaxSubmitPA", 11, "MaxSubmitPA"),
    ("MaxSubmitJobsPerUser MaxSubmitJobsPU MaxSubmitPU", 11, "MaxSubmitPU"),
    ("MaxTRES MaxTRESPerJob", 13, "MaxTRES"),
    ("MaxTRESMinsPerJob MaxTRESMins", 13, "MaxTRESMins"),
    ("MaxTRESPerAccount MaxTRESPA", 13, "MaxTRESPA"),
    ("MaxTRESPerNode", 14, ""),
    ("MaxTRESPerUser MaxTRESPU", 13, "MaxTRESPU"),
    ("MaxTRESRunMinsPerAccount MaxTRESRunMinsPA", 15, "MaxTRESRunMinsPA"),
    ("MaxTRESRunMinsPerUser MaxTRESRunMinsPU", 15, "MaxTRESRunMinsPU"),
    ("MaxWallDurationPerJob MaxWall", 11, "MaxWall"),
    ("MinCPUsPerJob", 8, "MinCPUs"),
    ("MinPrioThreshold", 11, "MinPrioThres"),
    ("MinTRES MinTRESPerJob", 13, "MinTRES"),
    ("Name", 10, ""),
    ("NodeCount", 10, ""),
    ("NodeNames NodeName", 20, ""),
    ("Organization", 20, "Org"),
    ("ParentID", 6, "Par ID"),
    ("ParentName", 10, "Par Name"),
    ("Partition", 10, ""),
    ("PluginIDSelect", 15, ""),
    ("Preempt", 10, ""),
    ("PreemptExemptTime", 19, ""),
    ("PreemptMode", 11, ""),
    ("Priority", 10, ""),
    ("Problem", 40, ""),
    ("QOS QosLevel", 20, ""),
    ("QosRaw", 10, "QOS_RAW"),
    ("Reason", 30, ""),
    ("RGT", 6, ""),
    ("RPC", 5, ""),
    ("Server", 10, ""),
    ("ServerType", 10, ""),
    ("State", 6, ""),
    ("StateRaw", 8, ""),
    ("Time TimeStamp", 19, "Time"),
    ("TimeEnd End", 19, ""),
    ("TimeStart Start", 19, ""),
    ("TRES", 20, ""),
    ("Type", 8, ""),
    ("UnusedWall", 10, ""),
    ("UsageFactor", 11, ""),
    ("UsageThreshold", 10, "UsageThres"),
    ("User", 10, ""),
    ("WCKeys WCKey", 10, "WCKey"),
    ("Where", 20, ""),
)
"""The fields that sacctmgr knows, whatever is listed: names, width, header if another."""


class Style(Value):
    """With a header, and in columns, or with a bar between values and perhaps one at the end."""

    header: bool = True
    bars: bool = False
    bar_at_end: bool = False


def field(names: str, width: int, get: Callable[[R], str], header: str = "") -> Named[R]:
    """Its first name is its header by default; a width below zero aligns to the left."""
    words = names.split()
    return tuple(names.lower().split()), Field(header=header or words[0], get=get, width=width)


def printed(wanted: str, fields: Sequence[Named[R]], rows: Iterable[R], style: Style) -> str:
    """The table. A field may be named by its beginning; SlurmError if none begins so.

    As in Slurm, fields of other entities can be asked for too, and are empty.
    """
    known = _known(fields)
    columns = [_column(word, known) for word in wanted.split(",") if word.strip()]
    form = Form(columns=narrowed(columns))
    by_name = {names[0]: each for names, each in known}
    if style.bars:
        ends = ("|", "|" if style.bar_at_end else "")
        return lines(list(parsable(form, by_name, rows, header=style.header, ends=ends)))
    return lines(list(cut_table(form, by_name, rows, header=style.header)))


def _known(fields: Sequence[Named[R]]) -> list[Named[R]]:
    """The fields by all the names that they have anywhere; then those of other entities."""
    everywhere: list[Named[R]] = [
        field(names, width, _nothing, header) for names, width, header in EVERYWHERE
    ]
    own = [(tuple(dict.fromkeys((*names, *_more(names, everywhere)))), f) for names, f in fields]
    taken = {name for names, _ in own for name in names}
    return [*own, *(each for each in everywhere if taken.isdisjoint(each[0]))]


def _more(names: Sequence[str], everywhere: Sequence[Named[R]]) -> Iterator[str]:
    for others, _ in everywhere:
        if not set(names).isdisjoint(others):
            yield from others


def _nothing(_: object) -> str:
    return ""


def _column(word: str, fields: Sequence[Named[R]]) -> Column:
    name, _, size = word.strip().partition("%")
    names, found = _meant(name.lower(), fields)
    width = int(size) if size.lstrip("-").isdecimal() else found.width
    return Column(field=names[0], width=abs(width), right=width > 0)


def _meant(name: str, fields: Sequence[Named[R]]) -> Named[R]:
    exact = [each for each in fields if name in each[0]]
    near = [each for each in fields if any(known.startswith(name) for known in each[0])]
    if not (exact or near) or not name:
        raise SlurmError(f"Unknown field '{name}'")
    return (exact or near)[0]
