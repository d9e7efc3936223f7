"""The keys of pools, and of what is reserved in them."""

from muster.doors.config.kinds import (
    GPUS,
    INSTANT,
    MONEY,
    NAME,
    QUEUE_PATH,
    SPAN_ABOVE_ZERO,
    TRUTH,
    USER,
    ZONE,
    choice,
)
from muster.doors.config.shapes import Key, Many, Section
from muster.model.cluster import AmountReserved, Every, NodesReserved, Pool
from muster.model.value import ClusterName, PoolName

POOL = Section(
    title="A pool: `pools.*`",
    noun="pool",
    makes=(Pool,),
    blank=Pool(name=PoolName(""), cluster=ClusterName("")),
    named="name",
    keys=(
        Key(
            name="cluster",
            shape=NAME,
            required=True,
            meaning="the cluster that the pool belongs to",
            example="local",
        ),
        Key(
            name="levels",
            shape=Many(each=NAME),
            meaning="the names of the topology levels of its nodes, coarsest first",
            example="[zone, rack]",
        ),
        Key(
            name="default_time",
            shape=SPAN_ABOVE_ZERO,
            optional=True,
            meaning="the time limit of jobs that request none",
            example="1h",
        ),
        Key(
            name="max_time",
            shape=SPAN_ABOVE_ZERO,
            optional=True,
            meaning="the longest time limit in this pool",
            example="7d",
        ),
        Key(
            name="spot",
            shape=TRUTH,
            meaning="the provider can take its nodes back at any time",
            example="true",
        ),
        Key(
            name="accepts",
            shape=TRUTH,
            meaning="whether users may submit jobs that name it",
            example="false",
        ),
        Key(
            name="starts",
            shape=TRUTH,
            meaning="whether jobs start in it; running jobs continue in any case",
            example="false",
        ),
        Key(
            name="gpu_hour",
            field="gpu_hour_micros",
            shape=MONEY,
            meaning="the price of one GPU for one hour, in your currency",
            example="2.50",
        ),
        Key(
            name="users",
            shape=Many(each=USER),
            meaning="who may use it; without users and groups, everyone may",
            example="[ada, grace]",
        ),
        Key(
            name="groups",
            shape=Many(each=NAME),
            meaning="members of these system groups (see `id`) may use it too",
            example="[nlp, vision]",
        ),
        Key(
            name="queues",
            shape=Many(each=QUEUE_PATH),
            meaning="the queues whose jobs may use it, with their child queues; if empty, all",
            example="[acme/nlp]",
        ),
        Key(
            name="classes",
            shape=Many(each=NAME),
            meaning="the classes whose jobs may use it; if empty, all",
            example="[high]",
        ),
    ),
)

RESERVATION = Section(
    title="Reservations: `reservations[]`",
    noun="reservation",
    makes=(NodesReserved, AmountReserved),
    keys=(
        Key(
            name="name",
            shape=NAME,
            required=True,
            meaning="its name, which must be unique",
            example="maintenance",
        ),
        Key(
            name="nodes",
            shape=Many(each=NAME),
            meaning="reserve these whole nodes; or reserve an amount with `pool` and `gpus`",
            example="[n1, n2]",
        ),
        Key(
            name="pool",
            shape=NAME,
            meaning="the pool in which the amount is reserved",
            example="dgx",
        ),
        Key(
            name="gpus",
            field="gpu_milli",
            shape=GPUS,
            meaning="how many GPUs of that pool",
            example="8",
        ),
        Key(
            name="queue",
            field="for_queue",
            shape=QUEUE_PATH,
            optional=True,
            meaning="the queue that may use it; nodes reserved without a queue or users stay empty",
            example="acme",
        ),
        Key(
            name="users",
            field="for_users",
            shape=Many(each=USER),
            meaning="the users who may use it; with a queue, only in that queue",
            example="[ada, bob]",
        ),
        Key(
            name="by_name",
            shape=TRUTH,
            meaning="only jobs that request it by name may use it",
            example="true",
        ),
        Key(
            name="flags",
            shape=Many(each=NAME),
            meaning="its Slurm flags, shown in lists",
            example="[MAINT]",
        ),
        Key(
            name="from",
            field="begins_at",
            shape=INSTANT,
            required=True,
            meaning="when it begins",
            example="2026-12-01T08:00:00Z",
        ),
        Key(
            name="to",
            field="ends_at",
            shape=INSTANT,
            required=True,
            meaning="when it ends; jobs that requested it by name end then",
            example="2026-12-01T18:00:00Z",
        ),
        Key(
            name="every",
            shape=choice(Every),
            optional=True,
            meaning="how often it repeats; without this key, once",
            example="weekday",
        ),
        Key(
            name="zone",
            shape=ZONE,
            optional=True,
            meaning="the time zone in which it repeats at the same time of day; by default UTC",
            example="Europe/Berlin",
        ),
        Key(
            name="flexible",
            shape=TRUTH,
            meaning="jobs that request it by name may start before it and run on after it",
            example="true",
        ),
    ),
)
