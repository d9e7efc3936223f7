"""QOS: job classes that are made, changed and removed by sacctmgr's words. Pure."""

from collections.abc import Callable, Sequence

from muster.controller.messages import JobQuery
from muster.doors.slurm.managing.edit import (
    NOTHING_DELETED,
    NOTHING_MODIFIED,
    NOTHING_NEW,
    Edit,
    EditFacts,
    Editing,
    demand_sound,
    name_of,
    refuse,
    warned,
)
from muster.doors.slurm.managing.limits import amounts, with_ceilings
from muster.doors.slurm.managing.words import (
    Assignment,
    Words,
    bad_value,
    changed,
    meant,
    number,
    whole,
)
from muster.doors.slurm.words import times
from muster.doors.slurm.words.errors import SlurmError
from muster.model.queue import JobClass, PreemptMode
from muster.model.site import Site
from muster.model.value import SECOND, ClassName, Duration, Value, replace

NAMES = ("Names", "QOS", "QosLevel")
NOT_KEPT = ("Description",)
REFUSED = (
    "Flags GrpCPUMins GrpCPURunMins GrpCPUs GrpJobs GrpJobsAccrue GrpMemory GrpNodes "
    "GrpSubmitJobs GrpTRES GrpTRESMins GrpTRESRunMins GrpWall LimitFactor MaxCPUMinsPerJob "
    "MaxCPUsPerJob MaxCPUsPerUser MaxJobsAccruePerAccount MaxJobsAccruePerUser MaxNodesPerJob "
    "MaxNodesPerUser "
    "MaxTRESMinsPerJob MaxTRESPerJob MaxTRESPerNode MaxTRESRunMinsPerAccount "
    "MaxTRESRunMinsPerUser MaxTRES MinCPUsPerJob MinPrioThreshold MinTRESPerJob RawUsage "
    "UsageThreshold"
).split()
HINTS = {
    "GrpTRES": "give an account GrpTRES, or the QOS MaxTRESPerAccount",
    "GrpJobs": "give an account GrpJobs, or the QOS MaxJobsPerAccount",
    "MaxTRESPerJob": "give the QOS MaxTRESPerUser",
    "MaxTRES": "give the QOS MaxTRESPerUser",
}
MODES = {
    "off": None,
    "cluster": PreemptMode.REQUEUE,
    "requeue": PreemptMode.REQUEUE,
    "cancel": PreemptMode.CANCEL,
    "suspend": PreemptMode.SUSPEND,
    "gang": PreemptMode.SUSPEND,
    "checkpoint": PreemptMode.CHECKPOINT,
}


class QosChange(Value):
    """Which ones, and what they are to be like."""

    names: tuple[ClassName, ...] = ()
    settings: tuple[Assignment, ...] = ()


def adding(words: Words, around: EditFacts) -> Editing:
    """`add qos high priority=100 preempt=low`."""
    wish = _wish(words.what)
    if not wish.names:
        raise SlurmError(" Need name of qos to add.")

    def edit(site: Site) -> Edit:
        new = [name for name in wish.names if name not in site.classes]
        if not new:
            return Edit(site=site, printed=(NOTHING_NEW,), code=1)
        made = {name: _set(JobClass(name=name), wish.settings, around) for name in new}
        after = replace(site, classes={**site.classes, **made})
        demand_sound(after)
        given = [" Adding QOS(s)", *(f"  {name}" for name in new)]
        given += [" Settings", *(f"  Description    = {name}" for name in new[:1])]
        kept = [word for word in wish.settings if _option(word) in SETTERS]
        given += [f"  {_option(word):<24} = {word.value}" for word in kept]
        return Edit(site=after, printed=tuple(given), warned=_not_kept(wish))

    return edit


def modifying(words: Words, around: EditFacts) -> Editing:
    """`modify qos high set priority=100 preempt+=low`."""
    chosen, wish = _wish(words.where), _wish(words.what)
    if not wish.settings:
        raise SlurmError(" You didn't give me anything to set")

    def edit(site: Site) -> Edit:
        names = [name for name in chosen.names if name in site.classes]
        if not names:
            return Edit(site=site, printed=(NOTHING_MODIFIED,), code=1)
        made = {name: _set(site.classes[name], wish.settings, around) for name in names}
        after = replace(site, classes={**site.classes, **made})
        demand_sound(after)
        given = (" Modified qos...", *(f"  {name}" for name in names))
        return Edit(site=after, printed=given, warned=_not_kept(wish))

    return edit


def deleting(words: Words, around: EditFacts) -> Editing:
    """`delete qos high`: no other one preempts it afterwards."""
    chosen = _wish(words.where)

    def edit(site: Site) -> Edit:
        gone = [name for name in chosen.names if name in site.classes]
        if not gone:
            return Edit(site=site, printed=(NOTHING_DELETED,), code=1)
        busy = sorted({job.spec.job_class for job in around.jobs(JobQuery())} & set(gone))
        if busy:
            raise SlurmError(f" Error with request: jobs have the QOS {', '.join(busy)}")
        left = {
            name: replace(each, preempts=tuple(low for low in each.preempts if low not in gone))
            for name, each in site.classes.items()
            if name not in gone
        }
        after = replace(site, classes=left)
        demand_sound(after)
        return Edit(site=after, printed=(" Deleting QOS(s)...", *(f"  {name}" for name in gone)))

    return edit


def _wish(words: Sequence[Assignment]) -> QosChange:
    names: list[str] = []
    settings: list[Assignment] = []
    for word in words:
        if not word.sign:
            names += [each for each in word.name.split(",") if each]
        elif _option(word) in NAMES:
            names += word.values
        else:
            settings.append(word)
    found = tuple(ClassName(name_of(name)) for name in dict.fromkeys(names))
    return QosChange(names=found, settings=tuple(settings))


def _option(word: Assignment) -> str:
    found = meant(word.name, OPTIONS)
    if found is None:
        raise SlurmError(
            f" Unknown option: {word.text}", " Use keyword 'where' to modify condition"
        )
    return found


def _set(each: JobClass, settings: Sequence[Assignment], around: EditFacts) -> JobClass:
    for word in settings:
        option = _option(word)
        if option in REFUSED and not (option == "Flags" and word.value in {"", "-1"}):
            refuse("a QOS", option, HINTS.get(option, ""))
        if option in SETTERS:
            each = SETTERS[option](each, word, around)
    return each


def _not_kept(wish: QosChange) -> tuple[str, ...]:
    return warned(option for word in wish.settings if (option := _option(word)) in NOT_KEPT)


def _priority(each: JobClass, word: Assignment, _: EditFacts) -> JobClass:
    return replace(each, priority=whole(word, "Priority"))


def _preempt(each: JobClass, word: Assignment, _: EditFacts) -> JobClass:
    names = changed(each.preempts, word)
    return replace(each, preempts=tuple(ClassName(name) for name in names if name != "-1"))


def _mode(each: JobClass, word: Assignment, _: EditFacts) -> JobClass:
    if word.value.lower() not in MODES:
        raise bad_value("PreemptMode", word.value)
    mode = MODES[word.value.lower()]
    if mode is None:
        return replace(each, preemptible=False)
    return replace(each, preemptible=True, preempt_mode=mode)


def _grace(each: JobClass, word: Assignment, _: EditFacts) -> JobClass:
    return replace(each, grace=_span(word, "GraceTime", seconds=True) or Duration(0))


def _exempt(each: JobClass, word: Assignment, _: EditFacts) -> JobClass:
    return replace(each, min_run=_span(word, "PreemptExemptTime") or Duration(0))


def _max_wall(each: JobClass, word: Assignment, _: EditFacts) -> JobClass:
    return replace(each, max_time=_span(word, "MaxWall"))


def _per_user(each: JobClass, word: Assignment, around: EditFacts) -> JobClass:
    given = amounts(word, around.models)
    return replace(each, per_user=with_ceilings(each.per_user, given))


def _per_account(each: JobClass, word: Assignment, around: EditFacts) -> JobClass:
    given = amounts(word, around.models)
    return replace(each, per_queue=with_ceilings(each.per_queue, given))


def _jobs_per_user(each: JobClass, word: Assignment, _: EditFacts) -> JobClass:
    jobs = number(word, "MaxJobsPerUser")
    return replace(each, per_user=replace(each.per_user, jobs=jobs))


def _submitted_per_user(each: JobClass, word: Assignment, _: EditFacts) -> JobClass:
    jobs = number(word, "MaxSubmitJobsPerUser")
    return replace(each, per_user=replace(each.per_user, submitted=jobs))


def _submitted_per_account(each: JobClass, word: Assignment, _: EditFacts) -> JobClass:
    jobs = number(word, "MaxSubmitJobsPerAccount")
    return replace(each, per_queue=replace(each.per_queue, submitted=jobs))


def _jobs_per_account(each: JobClass, word: Assignment, _: EditFacts) -> JobClass:
    jobs = number(word, "MaxJobsPerAccount")
    return replace(each, per_queue=replace(each.per_queue, jobs=jobs))


def _usage_factor(each: JobClass, word: Assignment, _: EditFacts) -> JobClass:
    if word.value not in {"1", "1.0", "1.000000", "-1"}:
        refuse("a QOS", f"UsageFactor={word.value}", "use counts the same in every QOS")
    return each


def _span(word: Assignment, shown: str, *, seconds: bool = False) -> Duration | None:
    """A time as Slurm writes it: a plain number is minutes, or seconds where the key says so."""
    text = word.value
    if text in {"", "-1"}:
        return None
    if seconds and text.isdecimal():
        return Duration(int(text) * SECOND)
    try:
        return times.limit(text)
    except times.BadTimeError as bad:
        raise bad_value(shown, text) from bad


SETTERS: dict[str, Callable[[JobClass, Assignment, EditFacts], JobClass]] = {
    "Priority": _priority,
    "Preempt": _preempt,
    "PreemptMode": _mode,
    "GraceTime": _grace,
    "PreemptExemptTime": _exempt,
    "MaxWallDurationPerJob": _max_wall,
    "MaxTRESPerUser": _per_user,
    "MaxTRESPU": _per_user,
    "MaxTRESPerAccount": _per_account,
    "MaxTRESPA": _per_account,
    "MaxJobsPerUser": _jobs_per_user,
    "MaxJobsPU": _jobs_per_user,
    "MaxSubmitJobsPerUser": _submitted_per_user,
    "MaxSubmitPU": _submitted_per_user,
    "MaxSubmitJobsPerAccount": _submitted_per_account,
    "MaxSubmitPA": _submitted_per_account,
    "MaxJobsPerAccount": _jobs_per_account,
    "MaxJobsPA": _jobs_per_account,
    "UsageFactor": _usage_factor,
}
OPTIONS = (*NAMES, *SETTERS, *NOT_KEPT, *REFUSED)
