"""The keys of the rules by which jobs are chosen."""

from muster.doors.config.kinds import INTEGER, SPAN, SPAN_ABOVE_ZERO, TRUTH, WHOLE, choice
from muster.doors.config.shapes import Inside, Key, Section
from muster.model.policy import (
    Aim,
    OrderWeights,
    Packing,
    Policy,
    PreemptPolicy,
    Preference,
    SharePolicy,
)

ORDER = Section(
    title="Whose turn it is: `policy.order`",
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
            meaning="the weight of having used less than one's share",
            example="4000",
        ),
        Key(
            name="age",
            shape=WHOLE,
            meaning="the weight of having waited; it grows by this much every `age_full`",
            example="1000",
        ),
        Key(
            name="size",
            shape=INTEGER,
            meaning="the weight of each GPU asked for; below zero lets small jobs go first",
            example="-10",
        ),
        Key(
            name="short",
            shape=WHOLE,
            meaning="the weight of being expected to take little GPU-time, learned from the past",
            example="8000",
        ),
        Key(
            name="service",
            shape=WHOLE,
            meaning="the weight of having had little GPU-time, by levels learned from the past",
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
            meaning="how long a job waits for one full weight of age",
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
            meaning="past use counts half as much after this time",
            example="3d",
        ),
        Key(
            name="lookahead",
            shape=SPAN,
            meaning="what is held now counts as use for this time to come",
            example="2h",
        ),
    ),
)

PREEMPT = Section(
    title="Making room: `policy.preempt`",
    noun="preempt",
    makes=(PreemptPolicy,),
    blank=PreemptPolicy(),
    keys=(
        Key(
            name="by_class",
            shape=TRUTH,
            meaning="may a class stop jobs of the classes that it names?",
            example="false",
        ),
        Key(
            name="reclaim",
            shape=TRUTH,
            meaning="may a queue take back what it lent of its guarantee?",
            example="false",
        ),
        Key(
            name="by_service",
            shape=TRUTH,
            meaning="may a job stop others of its class that had more GPU-time?",
            example="true",
        ),
        Key(
            name="tries",
            shape=WHOLE,
            meaning="for how many waiting jobs one plan looks for others to stop",
            example="12",
        ),
        Key(
            name="candidates",
            shape=WHOLE,
            meaning="among how many of the cheapest running jobs it looks",
            example="1000",
        ),
        Key(
            name="min_run",
            shape=SPAN,
            meaning="nobody is stopped before it ran this long",
            example="5m",
        ),
        Key(
            name="waited_percent",
            shape=WHOLE,
            meaning="by service nobody is stopped before it ran for so much of the time it waited",
            example="25",
        ),
        Key(
            name="restart_cost",
            shape=SPAN,
            meaning="what starting over costs a job that does not say",
            example="2m",
        ),
    ),
)

POLICY = Section(
    title="The rules of choosing: `policy`",
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
            meaning="which cluster first, when a job does not say: by order, or the cheapest",
            example="price",
        ),
        Key(
            name="default_time",
            shape=SPAN_ABOVE_ZERO,
            optional=True,
            meaning="the limit of jobs without one, in pools without a default",
            example="12h",
        ),
        Key(
            name="backfill_depth",
            shape=WHOLE,
            meaning="how many blocked jobs get a date and a promise of room",
            example="32",
        ),
        Key(
            name="backfill_horizon",
            shape=WHOLE,
            meaning="how many running jobs are looked at to find that date",
            example="8000",
        ),
        Key(
            name="backfill_expected",
            shape=TRUTH,
            meaning="where a job has no limit, is it taken to end when jobs like it do?",
            example="true",
        ),
        Key(
            name="repartition",
            shape=TRUTH,
            meaning="may GPUs be cut anew with MIG, where the cluster can?",
            example="false",
        ),
        Key(
            name="grow",
            shape=TRUTH,
            meaning="may running elastic jobs get more tasks, where the cluster can?",
            example="false",
        ),
        Key(
            name="aim",
            shape=choice(Aim),
            meaning="where service counts: should completion be early on average, or slowdown low?",
            example="slowdown",
        ),
        Key(name="order", shape=Inside(section=ORDER), meaning="whose turn it is"),
        Key(name="share", shape=Inside(section=SHARE), meaning="how past use counts"),
        Key(name="preempt", shape=Inside(section=PREEMPT), meaning="when running jobs are stopped"),
    ),
)
