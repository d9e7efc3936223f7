"""What sacctmgr lists of QOS, field by field."""

from muster.doors.slurm.managing.limits import ceiling_text
from muster.doors.slurm.managing.tables import Named, field
from muster.doors.slurm.words import times
from muster.model.queue import JobClass
from muster.model.value import Duration


def _mode(each: JobClass) -> str:
    if not each.preemptible:
        return "off"
    return each.preempt_mode.value


def _number(count: int | None) -> str:
    return "" if count is None else str(count)


def _span(span: Duration | None) -> str:
    return "" if span is None else times.long_text(span)


def _nothing(_: JobClass) -> str:
    return ""


FIELDS: tuple[Named[JobClass], ...] = (
    field("Description", 20, lambda each: each.name, "Descr"),
    field("Flags", 40, _nothing),
    field("GraceTime", 10, lambda each: _span(each.grace)),
    field("GrpTRES", 13, _nothing),
    field("GrpTRESMins", 13, _nothing),
    field("GrpTRESRunMins", 13, _nothing, "GrpTRESRunMin"),
    field("GrpJobs", 7, _nothing),
    field("GrpJobsAccrue", 13, _nothing),
    field("GrpSubmitJobs", 9, _nothing, "GrpSubmit"),
    field("GrpWall", 11, _nothing),
    field("GrpCPUs", 8, _nothing),
    field("GrpNodes", 8, _nothing),
    field("ID", 6, _nothing),
    field("LimitFactor", 11, _nothing),
    field("MaxTRESPerJob MaxTRES", 13, _nothing, "MaxTRES"),
    field("MaxTRESPerNode", 14, _nothing),
    field("MaxTRESMinsPerJob", 13, _nothing, "MaxTRESMins"),
    field("MaxWallDurationPerJob", 11, lambda each: _span(each.max_time), "MaxWall"),
    field("MaxTRESPerUser MaxTRESPU", 13, lambda each: ceiling_text(each.per_user), "MaxTRESPU"),
    field("MaxJobsPerUser MaxJobsPU", 9, lambda each: _number(each.per_user.jobs), "MaxJobsPU"),
    field(
        "MaxSubmitJobsPerUser MaxSubmitPU",
        11,
        lambda each: _number(each.per_user.submitted),
        "MaxSubmitPU",
    ),
    field(
        "MaxTRESPerAccount MaxTRESPA", 13, lambda each: ceiling_text(each.per_queue), "MaxTRESPA"
    ),
    field("MaxJobsPerAccount MaxJobsPA", 9, lambda each: _number(each.per_queue.jobs), "MaxJobsPA"),
    field(
        "MaxSubmitJobsPerAccount MaxSubmitPA",
        11,
        lambda each: _number(each.per_queue.submitted),
        "MaxSubmitPA",
    ),
    field("MinPrioThreshold", 11, _nothing, "MinPrioThres"),
    field("MinTRESPerJob MinTRES", 13, _nothing, "MinTRES"),
    field("Name", 10, lambda each: each.name),
    field("Preempt", 10, lambda each: ",".join(sorted(each.preempts))),
    field(
        "PreemptExemptTime", 19, lambda each: times.long_text(each.min_run) if each.min_run else ""
    ),
    field("PreemptMode", 11, _mode),
    field("Priority", 10, lambda each: str(each.priority)),
    field("UsageFactor", 11, lambda _: "1.000000"),
    field("UsageThreshold", 10, _nothing, "UsageThres"),
)

USUAL = (
    "name,priority,gracetime,preempt,preemptexempttime,preemptmode,flags,usagethreshold,"
    "usagefactor,grptres,grptresmins,grptresrunmins,grpjobs,grpsubmit,grpwall,maxtresperjob,"
    "maxtrespernode,maxtresminsperjob,maxwall,maxtrespu,maxjobspu,maxsubmitpu,maxtrespa,maxjobspa,"
    "maxsubmitpa,mintresperjob"
)
