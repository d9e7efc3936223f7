"""The keys of job classes."""

from muster.doors.config.kinds import (
    CPUS,
    GPUS,
    INTEGER,
    MEMORY,
    NAME,
    QUEUE_PATH,
    SPAN,
    SPAN_ABOVE_ZERO,
    TRUTH,
    USER,
    WHOLE,
    choice,
)
from muster.doors.config.shapes import Inside, Key, Many, Section
from muster.model.idle import IdleAction, IdleRule
from muster.model.queue import Ceiling, JobClass, PreemptMode
from muster.model.value import ClassName

CEILING = Section(
    title="Limits at one time: `classes.*.per_user`, `classes.*.per_queue`",
    noun="ceiling",
    makes=(Ceiling,),
    blank=Ceiling(),
    keys=(
        Key(
            name="gpus",
            field="gpu_milli",
            shape=GPUS,
            optional=True,
            meaning="GPUs, parts of a GPU included",
            example="8",
        ),
        Key(
            name="cpus",
            field="cpu_milli",
            shape=CPUS,
            optional=True,
            meaning="CPU cores",
            example="64",
        ),
        Key(
            name="memory",
            field="memory_mib",
            shape=MEMORY,
            optional=True,
            meaning="host memory",
            example="512G",
        ),
        Key(
            name="jobs",
            shape=WHOLE,
            optional=True,
            meaning="jobs that hold resources",
            example="4",
        ),
        Key(
            name="submitted",
            shape=WHOLE,
            optional=True,
            meaning="jobs that are not over, those that wait included",
            example="1000",
        ),
    ),
)

IDLE = Section(
    title="Jobs that do not use their GPUs: `classes.*.on_idle`",
    noun="rule",
    makes=(IdleRule,),
    blank=IdleRule(),
    keys=(
        Key(
            name="after",
            shape=SPAN_ABOVE_ZERO,
            optional=True,
            meaning="all its GPUs have been idle for so long; nothing is done if left out",
            example="2h",
        ),
        Key(
            name="warn_before",
            shape=SPAN,
            meaning="so long before, its user is told by mail",
            example="30m",
        ),
        Key(
            name="do",
            shape=choice(IdleAction),
            meaning="what is done then; `lower`: others may have its place before all else",
            example="requeue",
        ),
        Key(
            name="spares_interactive",
            shape=TRUTH,
            meaning="are jobs with a terminal and one GPU left alone for eight hours?",
            example="false",
        ),
    ),
)

CLASS = Section(
    title="A job class: `classes.*`",
    noun="class",
    makes=(JobClass,),
    blank=JobClass(name=ClassName("")),
    named="name",
    keys=(
        Key(
            name="priority",
            shape=INTEGER,
            meaning="how urgent its jobs are; only a higher class preempts a lower one",
            example="1000",
        ),
        Key(
            name="preempts",
            shape=Many(each=NAME),
            meaning="the classes whose jobs it may preempt",
            example="[low]",
        ),
        Key(
            name="preemptible",
            shape=TRUTH,
            meaning="may its jobs be preempted?",
            example="false",
        ),
        Key(
            name="preempt_mode",
            shape=choice(PreemptMode),
            meaning="what happens to a preempted job, unless the job sets its own mode",
            example="checkpoint",
        ),
        Key(
            name="grace",
            shape=SPAN,
            meaning="how long a preempted job has to stop",
            example="2m",
        ),
        Key(
            name="min_run",
            shape=SPAN,
            meaning="none of its jobs is preempted before it has run this long",
            example="10m",
        ),
        Key(
            name="max_time",
            shape=SPAN_ABOVE_ZERO,
            optional=True,
            meaning="the longest time limit that its jobs may request",
            example="2d",
        ),
        Key(
            name="spot_only",
            shape=TRUTH,
            meaning="its jobs run only in spot pools",
            example="true",
        ),
        Key(
            name="per_user",
            shape=Inside(section=CEILING),
            meaning="the most that its jobs may hold at one time for one user",
            example="{gpus: 8}",
        ),
        Key(
            name="per_queue",
            shape=Inside(section=CEILING),
            meaning="the most that its jobs may hold at one time in one queue, not its children",
            example="{jobs: 4}",
        ),
        Key(
            name="may_use",
            shape=Many(each=USER),
            meaning="who may ask for it, or `everyone`; if this and `queues` are empty, everyone "
            "may, except for a class that preempts others, is not preemptible or has a higher "
            "priority than the queue's default class: that takes a queue_admin",
            example="[ada, grace]",
        ),
        Key(
            name="queues",
            shape=Many(each=QUEUE_PATH),
            meaning="the queues, with their child queues, in which everyone may ask for it",
            example="[acme/production]",
        ),
        Key(
            name="may_decline",
            shape=Many(each=USER),
            meaning="who may submit jobs of it that are not preemptible, or `everyone`; a "
            "queue_admin always may",
            example="[ada]",
        ),
        Key(
            name="on_idle",
            shape=Inside(section=IDLE),
            meaning="what becomes of jobs that hold GPUs and do not use them",
            example="{after: 2h, do: cancel}",
        ),
    ),
)
