"""The keys of the rules by which jobs are chosen."""

from muster.doors.config.kinds import (
    INTEGER,
    MONEY,
    NAME,
    SPAN,
    SPAN_ABOVE_ZERO,
    TRUTH,
    WHOLE,
    choice,
)
from muster.doors.config.shapes import Inside, Key, Many, Section, ValueList
from muster.model.burst import Burst
from muster.model.policy import (
    Aim,
    OrderWeights,
    Packing,
    Policy,
    PreemptPolicy,
    Preference,
    SharePolicy,
)
from muster.model.value import ClusterName

ORDER = Section(
    title="Job priority: `policy.order`",
    noun="order",
    makes=(OrderWeights,),
    blank=OrderWeights(),
    keys=(
        Key(
            name="job_class",
            shape=WHOLE,
            meaning="the weight of the class's priority",
            example="10000",
        ),
        Key(
            name="fair_share",
            shape=WHOLE,
            meaning="the weight of fair share: users who used less than their share go first",
            example="4000",
        ),
        Key(
            name="age",
            shape=WHOLE,
            meaning="the weight of waiting time; a job gains this much every `age_full`",
            example="1000",
        ),
        Key(
            name="size",
            shape=INTEGER,
            meaning="the weight of each requested GPU; a negative weight puts small jobs first",
            example="-10",
        ),
        Key(
            name="short",
            shape=WHOLE,
            meaning="the weight of being expected to take little, learned from past jobs",
            example="4000",
        ),
        Key(
            name="service",
            shape=WHOLE,
            meaning="the weight of little GPU time so far, in levels learned from past jobs",
            example="9000",
        ),
        Key(
            name="queue",
            shape=WHOLE,
            meaning="the weight of the queue's priority",
            example="1000",
        ),
        Key(
            name="age_full",
            shape=SPAN_ABOVE_ZERO,
            meaning="how long a job waits to gain one full weight of age",
            example="3d",
        ),
    ),
)

SHARE = Section(
    title="Fair share: `policy.share`",
    noun="share",
    makes=(SharePolicy,),
    blank=SharePolicy(),
    keys=(
        Key(
            name="half_life",
            shape=SPAN_ABOVE_ZERO,
            meaning="past usage counts half as much after this time",
            example="3d",
        ),
        Key(
            name="lookahead",
            shape=SPAN,
            meaning="what a job holds now counts as usage for this long ahead",
            example="2h",
        ),
    ),
)

PREEMPT = Section(
    title="Preemption: `policy.preempt`",
    noun="preempt",
    makes=(PreemptPolicy,),
    blank=PreemptPolicy(),
    keys=(
        Key(
            name="by_class",
            shape=TRUTH,
            meaning="may a class preempt jobs of the classes that it names?",
            example="false",
        ),
        Key(
            name="reclaim",
            shape=TRUTH,
            meaning="may a queue preempt jobs that borrow its guarantee?",
            example="false",
        ),
        Key(
            name="by_service",
            shape=TRUTH,
            meaning="may a job preempt any jobs of its class that have had more GPU time?",
            example="true",
        ),
        Key(
            name="by_service_if_saved",
            shape=TRUTH,
            meaning="may it preempt those of them that save when they are stopped, and did before?",
            example="true",
        ),
        Key(
            name="tries",
            shape=WHOLE,
            meaning="for how many waiting jobs one plan looks for jobs to preempt",
            example="12",
        ),
        Key(
            name="candidates",
            shape=WHOLE,
            meaning="how many of the cheapest running jobs it considers each time",
            example="1000",
        ),
        Key(
            name="min_run",
            shape=SPAN,
            meaning="no job is preempted before it has run this long",
            example="5m",
        ),
        Key(
            name="waited_percent",
            shape=WHOLE,
            meaning="no job is preempted by service before it has run this percentage of its wait",
            example="25",
        ),
        Key(
            name="restart_cost",
            shape=SPAN,
            meaning="the restart cost of a job that does not give its own",
            example="2m",
        ),
    ),
)

BURST = Section(
    title="Bursting: `policy.bursts`",
    noun="burst",
    makes=(Burst,),
    blank=Burst(preferred=ClusterName(""), to=ClusterName(""), classes=()),
    keys=(
        Key(
            name="preferred",
            shape=NAME,
            required=True,
            meaning="the cluster that is to run the jobs",
            example="aks",
        ),
        Key(
            name="to",
            shape=NAME,
            required=True,
            meaning="the cluster that they may move to",
            example="gke",
        ),
        Key(
            name="classes",
            shape=Many(each=NAME),
            required=True,
            meaning="the classes of the jobs that may move",
            example="[tuning]",
        ),
        Key(
            name="over_gpu_hours",
            shape=WHOLE,
            meaning="they move only while more GPU-hours than these wait for the preferred cluster",
            example="100",
        ),
        Key(
            name="cost_percent",
            shape=WHOLE,
            meaning="the most that a job may be estimated to cost there,"
            " in percent of what it costs on the preferred cluster",
            example="60",
        ),
        Key(
            name="transfer",
            shape=SPAN,
            meaning="how long a job's GPUs wait there until its data have come; counted as cost",
            example="10m",
        ),
        Key(
            name="transfer_cost",
            field="transfer_micros",
            shape=MONEY,
            meaning="what moving a job's data costs, in your currency",
            example="1.20",
        ),
    ),
)

POLICY = Section(
    title="Scheduling policy: `policy`",
    noun="policy",
    makes=(Policy,),
    blank=Policy(),
    keys=(
        Key(
            name="packing",
            shape=choice(Packing),
            meaning="fill nodes up, or spread jobs over them",
            example="spread",
        ),
        Key(
            name="prefer",
            shape=choice(Preference),
            meaning="which cluster to try first when a job names none: in order, or the cheapest",
            example="price",
        ),
        Key(
            name="default_time",
            shape=SPAN_ABOVE_ZERO,
            optional=True,
            meaning="the time limit of jobs without one, in pools without a default",
            example="12h",
        ),
        Key(
            name="backfill_depth",
            shape=WHOLE,
            meaning="how many blocked jobs get a start date and a reservation of room",
            example="32",
        ),
        Key(
            name="backfill_horizon",
            shape=WHOLE,
            meaning="how many running jobs are considered to find that date",
            example="8000",
        ),
        Key(
            name="patience",
            shape=SPAN,
            meaning="who has waited so long goes before everybody else, and room is kept for them;"
            " 0 turns this off",
            example="7d",
        ),
        Key(
            name="repartition",
            shape=TRUTH,
            meaning="may the planner change the MIG layout of GPUs, where the cluster supports it?",
            example="false",
        ),
        Key(
            name="grow",
            shape=TRUTH,
            meaning="may running elastic jobs get more tasks, where the cluster supports it?",
            example="false",
        ),
        Key(
            name="aim",
            shape=choice(Aim),
            meaning="what service levels optimise: the average completion time, or the slowdown",
            example="slowdown",
        ),
        Key(
            name="order",
            shape=Inside(section=ORDER),
            meaning="how the priority of a job is computed",
        ),
        Key(name="share", shape=Inside(section=SHARE), meaning="how past usage counts"),
        Key(
            name="preempt", shape=Inside(section=PREEMPT), meaning="when running jobs are preempted"
        ),
        Key(
            name="bursts",
            shape=ValueList(section=BURST),
            meaning="when jobs of one cluster may move to another; without a rule, they always may",
        ),
    ),
)
