"""The keys of queues and of their quota."""

from muster.doors.config.kinds import (
    INTEGER,
    LABEL,
    NAME,
    POSITIVE,
    PROFILE,
    TRUTH,
    USER,
    WHOLE,
    choice,
)
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
            meaning="count only what is in this pool",
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
            meaning="always available to the queue; other queues borrow it while it is unused",
            example="16",
        ),
        Key(
            name="limit",
            shape=Metered(),
            optional=True,
            meaning="the most that the queue may hold, borrowed or not",
            example="60%",
        ),
        Key(
            name="lend_limit",
            shape=Metered(),
            optional=True,
            meaning="how much of an unused guarantee others may borrow; by default all of it",
            example="8",
        ),
        Key(
            name="borrow_limit",
            shape=Metered(),
            optional=True,
            meaning="how far above its guarantee the queue may go; by default up to its limit",
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
            meaning="its share of the rest, relative to its siblings",
            example="3",
        ),
        Key(
            name="priority",
            shape=INTEGER,
            meaning="what the queue adds to the priority of its jobs",
            example="10",
        ),
        Key(
            name="quotas",
            shape=ValueList(section=QUOTA),
            meaning="how much it may hold, line by line; anything that no line names has no limit",
        ),
        Key(
            name="may_submit",
            shape=Many(each=USER),
            meaning="who may submit; if empty, those who may submit to the nearest parent queue",
            example="[ada, grace]",
        ),
        Key(
            name="default_class",
            shape=NAME,
            optional=True,
            meaning="the class of jobs that name none; by default the parent queue's, or `normal`",
            example="high",
        ),
        Key(
            name="max_jobs",
            shape=WHOLE,
            optional=True,
            meaning="how many jobs it and its child queues may run at one time",
            example="200",
        ),
        Key(
            name="max_submitted",
            shape=WHOLE,
            optional=True,
            meaning="how many unfinished jobs it and its child queues may have; more are refused",
            example="10000",
        ),
        Key(
            name="max_submitted_per_user",
            shape=WHOLE,
            optional=True,
            meaning="how many unfinished jobs one user may have in it; more are refused; by "
            "default the parent queue's",
            example="500",
        ),
        Key(
            name="when_full",
            shape=choice(WhenFull),
            meaning="what happens to a job over the limit: it waits, or it is refused",
            example="refuse",
        ),
        Key(
            name="private",
            shape=TRUTH,
            meaning="hide the names, users and labels of its jobs, and those of its child queues, "
            "from people who have no role here and may not submit here",
            example="true",
        ),
        Key(
            name="images_on_host",
            shape=TRUTH,
            optional=True,
            meaning="if no container tool is installed, run the commands of its jobs without their "
            "images; by default as the parent queue, or as `containers` says",
            example="true",
        ),
        Key(
            name="queues",
            field="",
            shape=Branches(),
            meaning="its child queues",
        ),
    ),
)
