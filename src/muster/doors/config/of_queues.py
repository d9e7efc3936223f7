"""The keys of queues and of their quota."""

from muster.doors.config.kinds import INTEGER, LABEL, NAME, POSITIVE, PROFILE, USER, WHOLE, choice
from muster.doors.config.shapes import Branches, Key, Many, Metered, Section, ValueList
from muster.model.queue import Meter, Queue, Quota, Scope, WhenFull
from muster.model.value import QueuePath

QUOTA = Section(
    title="One line of quota: `queues.*.quotas[]`",
    noun="quota",
    makes=(Quota, Scope),
    blank=Quota(),
    keys=(
        Key(
            name="meter",
            field="scope.meter",
            shape=choice(Meter),
            meaning="what is counted: GPUs, instances of a MIG profile, CPU cores, or host memory",
            example="memory",
        ),
        Key(
            name="profile",
            field="scope.profile",
            shape=PROFILE,
            optional=True,
            meaning="which MIG profile, with `meter: mig`",
            example="1g.5gb",
        ),
        Key(
            name="pool",
            field="scope.pool",
            shape=NAME,
            optional=True,
            meaning="count only what lies in this pool",
            example="dgx",
        ),
        Key(
            name="model",
            field="scope.model",
            shape=LABEL,
            optional=True,
            meaning="count only what is on GPUs of this model",
            example="A100-40GB",
        ),
        Key(
            name="guaranteed",
            shape=Metered(),
            meaning="always theirs when they need it, lent to others while they do not",
            example="16",
        ),
        Key(
            name="limit",
            shape=Metered(),
            optional=True,
            meaning="never more than this in all, lent or not",
            example="60%",
        ),
        Key(
            name="lend_limit",
            shape=Metered(),
            optional=True,
            meaning="of an unused guarantee, how much others may have; all of it unless told",
            example="8",
        ),
        Key(
            name="borrow_limit",
            shape=Metered(),
            optional=True,
            meaning="how far above the guarantee they may go; to the limit unless told",
            example="8",
        ),
    ),
)

QUEUE = Section(
    title="A queue: `queues.*`",
    noun="queue",
    makes=(Queue,),
    blank=Queue(path=QueuePath("")),
    named="path",
    keys=(
        Key(
            name="weight",
            shape=POSITIVE,
            meaning="its part of what is left over, beside its siblings",
            example="3",
        ),
        Key(
            name="priority",
            shape=INTEGER,
            meaning="whose turn it is: the part of the queue itself in that sum",
            example="10",
        ),
        Key(
            name="quotas",
            shape=ValueList(section=QUOTA),
            meaning="how much it may have, line by line; what no line names is not bounded",
        ),
        Key(
            name="may_submit",
            shape=Many(each=USER),
            meaning="who may submit; empty lets in whoever the nearest queue above lets in",
            example="[ada, grace]",
        ),
        Key(
            name="default_class",
            shape=NAME,
            optional=True,
            meaning="the class of jobs that name none; else that of the queue above, else `normal`",
            example="high",
        ),
        Key(
            name="max_jobs",
            shape=WHOLE,
            optional=True,
            meaning="how many jobs it and those below may run at once",
            example="200",
        ),
        Key(
            name="max_submitted",
            shape=WHOLE,
            optional=True,
            meaning="how many unfinished jobs it and those below may have; more are refused",
            example="10000",
        ),
        Key(
            name="when_full",
            shape=choice(WhenFull),
            meaning="what becomes of a job over the limit: it waits, or it is refused",
            example="refuse",
        ),
        Key(
            name="queues",
            field="",
            shape=Branches(),
            meaning="the queues below it",
        ),
    ),
)
