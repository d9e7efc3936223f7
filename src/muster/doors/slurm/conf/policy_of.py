"""slurm.conf's settings as the rules of choosing, one by one. Pure."""

import re
from collections.abc import Mapping

from muster.doors.slurm.conf.found import BadSlurmConfError, Notes
from muster.doors.slurm.words import times
from muster.model.policy import OrderWeights, Packing, Policy, PreemptPolicy, SharePolicy
from muster.model.queue import PreemptMode
from muster.model.value import DAY, SECOND, Duration

FIRST_COME = OrderWeights(job_class=0, fair_share=0, age=1_000, short=0, queue=0)
USUAL_SPAN = Duration(7 * DAY)
NEVER_FORGOTTEN = Duration(3_650 * DAY)

MODES = {
    "REQUEUE": PreemptMode.REQUEUE,
    "SUSPEND": PreemptMode.SUSPEND,
    "CANCEL": PreemptMode.CANCEL,
}

# Ways, ports, keys and daemons of Slurm itself: there is nothing here that they could set.
_OWN = re.compile(
    r"(slurm|auth|cred|crypto|statesave|plugin|proctrack|taskplugin|switch|mpi|jobacct|jobcomp|"
    r"accountingstorage(?!enforce)|return|inactive|wait|kill|debug|log|tmpfs|health|batchstart|"
    r"communication|tcp|message|msg|unkillable|control|backup|clustername|usepam|firstjob|maxjobid|"
    r"minjobage|treewidth|grestypes|topologyplugin|srun|launch|compl|eiotimeout|getenv|"
    r"licenses$|acct|ext|cpufreq|core|jobfile|jobsubmit|cli|dependency|federation|rebootprogram|"
    r"resume|suspend|power|prioritycalcperiod|priorityparameters|prioritysite|routeplugin|"
    r"sbcast|selecttype$|schedulertimeslice|vsize|x11|interactive|requeueexit|authalt)"
)

KNOWN = frozenset(
    "prioritytype priorityweightqos priorityweightfairshare priorityweightage "
    "priorityweightjobsize priorityweightassoc priorityfavorsmall prioritymaxage "
    "prioritydecayhalflife preempttype preemptmode preemptexempttime schedulertype "
    "selecttypeparameters killwait accountingstorageenforce overtimelimit".split()
)

WITHOUT = {
    "priorityweightpartition": "a partition gives its jobs no priority here: give a class one",
    "priorityweighttres": "jobs get no priority for what they ask, but for GPUs: policy.order.size",
    "priorityflags": "fair share goes down the tree of queues, always",
    "priorityusageresetperiod": "past use fades with policy.share.half_life, and is never reset",
    "defmempercpu": "a job that asks for no memory gets no limit; let users ask for some",
    "defmempernode": "a job that asks for no memory gets no limit; let users ask for some",
    "defmempergpu": "a job that asks for no memory gets no limit; let users ask for some",
    "defcpupergpu": "a job that asks for no CPUs gets one; let users ask for some",
    "maxmempercpu": "memory is not bounded by CPU; bound it with a queue's quota",
    "maxmempernode": "memory is bounded by what nodes have, and by a queue's quota",
    "maxjobcount": "there is no bound; max_submitted of a queue sets one",
    "mailprog": "what sends mail is named when Muster is started: muster up --mail-program",
    "maildomain": "users are written to by their names; the mail program knows where they are",
    "maxarraysize": "an array may have 100,000 parts",
    "schedulerparameters": "see policy.backfill_depth and policy.backfill_horizon",
    "prolog": "nothing is run before a job; put it into the job, or into an image",
    "epilog": "nothing is run after a job; its processes and memory are cleared away",
    "taskprolog": "nothing is run before a task; put it into the job's script",
    "taskepilog": "nothing is run after a task; put it into the job's script",
    "prologslurmctld": "nothing is run before a job",
    "epilogslurmctld": "nothing is run after a job",
    "enforcepartlimits": "what can never run is refused at submission, always",
    "disablerootjobs": "root may submit; a queue's may_submit can leave root out",
}


def policy_of(options: Mapping[str, str], spelled: Mapping[str, str], notes: Notes) -> Policy:
    """The rules that these settings come to; names are in lower case, `spelled` has their own."""
    for name, value in options.items():
        if name in KNOWN or _OWN.match(name) or value.lower() in {"(null)", "none", "0"}:
            continue
        notes(f"{spelled.get(name, name)}={value}", WITHOUT.get(name, "has no counterpart"))
    spread = "CR_LLN" in options.get("selecttypeparameters", "").upper()
    if options.get("schedulertype", "").lower().endswith("builtin"):
        notes("SchedulerType", "jobs are always backfilled here: it delays no job")
    return Policy(
        order=_order(options, notes),
        share=SharePolicy(half_life=_half_life(options)),
        preempt=_preempt(options),
        packing=Packing.SPREAD if spread else Packing.PACK,
    )


def mode_of(text: str) -> PreemptMode | None:
    """What happens to preempted jobs; None: no job is preempted."""
    for word in text.upper().split(","):
        if word in MODES:
            return MODES[word]
    return None


def span(options: Mapping[str, str], name: str, usual: Duration) -> Duration:
    """A time in Slurm's form."""
    text = options.get(name)
    if text is None:
        return usual
    if text.strip().lower() in times.ENDLESS:
        return NEVER_FORGOTTEN
    try:
        return times.exact(text)
    except times.BadTimeError as wrong:
        raise BadSlurmConfError(f"{name}={text} is no time of Slurm's") from wrong


def seconds(options: Mapping[str, str], name: str, usual: int) -> Duration:
    """A number of seconds."""
    return Duration(whole(options, name, usual) * SECOND)


def whole(options: Mapping[str, str], name: str, usual: int = 0) -> int:
    text = options.get(name, str(usual))
    if not re.fullmatch(r"-?[0-9]{1,12}", text):
        raise BadSlurmConfError(f"{name}={text} is no whole number")
    return int(text)


def _order(options: Mapping[str, str], notes: Notes) -> OrderWeights:
    if not options.get("prioritytype", "basic").lower().endswith("multifactor"):
        return FIRST_COME
    size = whole(options, "priorityweightjobsize")
    if size:
        notes("PriorityWeightJobSize", "size counts GPUs here, not the part of all nodes")
    small = options.get("priorityfavorsmall", "no").lower() in {"yes", "1", "true"}
    return OrderWeights(
        job_class=whole(options, "priorityweightqos"),
        fair_share=whole(options, "priorityweightfairshare"),
        age=whole(options, "priorityweightage"),
        size=-size if small else size,
        # Slurm learns nothing of jobs, so no weight of its own may come before those of the file.
        short=0,
        queue=whole(options, "priorityweightassoc"),
        age_full=span(options, "prioritymaxage", USUAL_SPAN),
    )


def _half_life(options: Mapping[str, str]) -> Duration:
    """Nothing is forgotten with a half life of zero."""
    return span(options, "prioritydecayhalflife", USUAL_SPAN) or NEVER_FORGOTTEN


def _preempt(options: Mapping[str, str]) -> PreemptPolicy:
    kind = options.get("preempttype", "none").lower().rpartition("/")[2]
    return PreemptPolicy(
        by_class=kind in {"qos", "partition_prio"},
        # Slurm's accounts have shares but no guarantees, and so nothing to take back.
        reclaim=False,
        min_run=span(options, "preemptexempttime", Duration(0)),
    )
