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
            meaning="the cluster that it belongs to",
            example="local",
        ),
        Key(
            name="levels",
            shape=Many(each=NAME),
            meaning="what the places of its nodes are called, coarsest first",
            example="[zone, rack]",
        ),
        Key(
            name="default_time",
            shape=SPAN_ABOVE_ZERO,
            optional=True,
            meaning="the time limit of jobs that ask for none",
            example="1h",
        ),
        Key(
            name="max_time",
            shape=SPAN_ABOVE_ZERO,
            optional=True,
            meaning="the longest time limit here",
            example="7d",
        ),
        Key(
            name="spot",
            shape=TRUTH,
            meaning="its nodes can be taken away at any time",
            example="true",
        ),
        Key(
            name="accepts",
            shape=TRUTH,
            meaning="jobs that name it may be submitted",
            example="false",
        ),
        Key(
            name="starts",
            shape=TRUTH,
            meaning="jobs start here; what runs goes on in any case",
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
            meaning="who may use it; no users and no groups lets in everybody",
            example="[ada, grace]",
        ),
        Key(
            name="groups",
            shape=Many(each=NAME),
            meaning="who is in these groups of the system may use it too, as `id` says it",
            example="[nlp, vision]",
        ),
        Key(
            name="queues",
            shape=Many(each=QUEUE_PATH),
            meaning="the queues whose jobs may use it, and those below them; empty lets in all",
            example="[acme/nlp]",
        ),
        Key(
            name="classes",
            shape=Many(each=NAME),
            meaning="the classes whose jobs may use it; empty lets in all",
            example="[high]",
        ),
    ),
)

RESERVATION = Section(
    title="Capacity for a time: `reservations[]`",
    noun="reservation",
    makes=(NodesReserved, AmountReserved),
    keys=(
        Key(
            name="name",
            shape=NAME,
            required=True,
            meaning="what it is called; no other has this name",
            example="maintenance",
        ),
        Key(
            name="nodes",
            shape=Many(each=NAME),
            meaning="these nodes, whole; or else an amount: `pool` and `gpus`",
            example="[n1, n2]",
        ),
        Key(
            name="pool",
            shape=NAME,
            meaning="where the amount is",
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
            meaning="who has it; nodes without a queue and users are for nobody",
            example="acme",
        ),
        Key(
            name="users",
            field="for_users",
            shape=Many(each=USER),
            meaning="these users have it; with a queue, in that queue alone",
            example="[ada, bob]",
        ),
        Key(
            name="by_name",
            shape=TRUTH,
            meaning="only jobs that ask for it by its name may use it",
            example="true",
        ),
        Key(
            name="flags",
            shape=Many(each=NAME),
            meaning="the flags it has in Slurm, for lists",
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
            meaning="when it ends; jobs that asked for it by its name end then",
            example="2026-12-01T18:00:00Z",
        ),
        Key(
            name="every",
            shape=choice(Every),
            optional=True,
            meaning="it comes back, from its first time on; none is once",
            example="weekday",
        ),
        Key(
            name="zone",
            shape=ZONE,
            optional=True,
            meaning="by whose calendar it comes back, at the same time of the day; none is UTC",
            example="Europe/Berlin",
        ),
        Key(
            name="flexible",
            shape=TRUTH,
            meaning="jobs that ask for it by its name may begin before it, and stay when it ends",
            example="true",
        ),
    ),
)
