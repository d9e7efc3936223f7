"""The keys of people, and of the file as a whole."""

from muster.doors.config.kinds import (
    FILE_PATH,
    INTERVAL,
    MEMORY,
    NAME,
    NODE_URL,
    POSITIVE,
    QUEUE_PATH,
    ROLES,
    SELECTOR,
    SPAN_ABOVE_ZERO,
    TRUTH,
    URL,
    USER,
    WHOLE,
    choice,
)
from muster.doors.config.of_alerts import ALERTS, JOB_ROUTE, RECEIVER, ROUTE
from muster.doors.config.of_classes import CEILING, CLASS, IDLE
from muster.doors.config.of_machines import POOL, RESERVATION
from muster.doors.config.of_policy import BURST, ORDER, POLICY, PREEMPT, SHARE
from muster.doors.config.of_queues import QUEUE, QUOTA
from muster.doors.config.of_sinks import SINK
from muster.doors.config.shapes import (
    Aside,
    Branches,
    Inside,
    Key,
    Many,
    NamedMapping,
    Section,
    ValueList,
)
from muster.model.site import (
    Confinement,
    MeasuredElsewhere,
    Role,
    Site,
    TelemetryRules,
    User,
    UserLimits,
)
from muster.model.value import ClusterName, UserName

USERS = Section(
    title="A user: `users.*`",
    noun="user",
    makes=(User,),
    blank=User(name=UserName("")),
    named="name",
    keys=(
        Key(
            name="roles",
            field="grants",
            shape=Many(each=ROLES),
            meaning="`viewer`, `user`, `queue_admin` or `admin`; add a colon and a queue to limit "
            "the role to that queue and its child queues",
            example='["queue_admin:acme/nlp"]',
        ),
        Key(
            name="default_queue",
            shape=QUEUE_PATH,
            optional=True,
            meaning="the queue of jobs that name none",
            example="acme/nlp",
        ),
        Key(
            name="max_submitted",
            shape=POSITIVE,
            optional=True,
            meaning="how many jobs of theirs may be unfinished at once",
            example="5000",
        ),
    ),
)

HISTORY = Section(
    title="History: `history`",
    noun="history",
    makes=(),
    blank=Site(),
    keys=(
        Key(
            name="keep",
            field="keep_history",
            shape=SPAN_ABOVE_ZERO,
            optional=True,
            meaning="ended jobs and their events are deleted after this time; `none` keeps them",
            example="90d",
        ),
    ),
)

PER_USER = Section(
    title="Limits of every user: `per_user`",
    noun="limit",
    makes=(UserLimits,),
    blank=UserLimits(),
    keys=(
        Key(
            name="max_jobs",
            shape=WHOLE,
            optional=True,
            meaning="how many unfinished jobs one user may have; `none` sets no bound",
            example="10000",
        ),
        Key(
            name="max_submit",
            field="max_submit_mib",
            shape=MEMORY,
            optional=True,
            meaning="how much one user may submit in a day: requests, scripts and variables, as "
            "they are stored; `none` sets no bound",
            example="512M",
        ),
    ),
)

MEASURED_ELSEWHERE = Section(
    title="Who measures a cluster: `telemetry.clusters.*`",
    noun="cluster",
    makes=(MeasuredElsewhere,),
    blank=MeasuredElsewhere(cluster=ClusterName("")),
    named="cluster",
    keys=(
        Key(
            name="prometheus",
            shape=URL,
            meaning="a Prometheus that reads the cluster's dcgm-exporter",
            example="http://prometheus.lab:9090",
        ),
        Key(
            name="exporter",
            shape=NODE_URL,
            meaning="without a Prometheus, the dcgm-exporter of each node, of 200 at most",
            example="http://{node}:9400/metrics",
        ),
        Key(
            name="match",
            shape=SELECTOR,
            meaning="which of its series are of this cluster; all, if nothing is said",
            example='{cluster="lab"}',
        ),
        Key(
            name="token_file",
            shape=FILE_PATH,
            meaning="the file with the token that it asks for",
            example="/etc/muster/prometheus.token",
        ),
    ),
)

TELEMETRY = Section(
    title="What is measured: `telemetry`",
    noun="telemetry",
    makes=(TelemetryRules,),
    blank=TelemetryRules(),
    keys=(
        Key(
            name="interval",
            shape=INTERVAL,
            meaning="how often GPUs, jobs and machines are looked at",
            example="30s",
        ),
        Key(
            name="job_labels",
            shape=TRUTH,
            meaning="metrics of GPUs name the job that has them (`hpc_job`); every job then begins "
            "new series",
            example="true",
        ),
        Key(
            name="metrics_open",
            shape=TRUTH,
            meaning="`/metrics` answers without a token to whoever asks from this machine itself",
            example="true",
        ),
        Key(
            name="clusters",
            shape=NamedMapping(section=MEASURED_ELSEWHERE),
            meaning="clusters whose GPUs somebody else measures, and whom to ask",
            example='{lab: {prometheus: "http://prometheus.lab:9090"}}',
        ),
        Key(
            name="sinks",
            shape=NamedMapping(section=SINK),
            meaning="servers of others to which logs, what jobs write, and metrics are sent",
            example='{loki: {kind: loki, url: "http://loki:3100", sends: [log, output]}}',
        ),
    ),
)

CONTAINERS = Section(
    title="Containers: `containers`",
    noun="containers",
    makes=(),
    blank=Site(),
    keys=(
        Key(
            name="images_on_host",
            shape=TRUTH,
            meaning="if no container tool is installed, run the command without its image, "
            "in queues that do not say otherwise",
            example="true",
        ),
    ),
)

CONFINEMENT = Section(
    title="What keeps jobs apart: `confinement`",
    noun="confinement",
    makes=(Confinement,),
    blank=Confinement(),
    keys=(
        Key(
            name="private_tmp",
            shape=TRUTH,
            meaning="each job has its own `/tmp`, `/dev/shm` and IPC, which are removed when it "
            "ends, and its containers share the last two; jobs of root use those of the machine, "
            "and those with an MPS share its `/dev/shm`",
            example="false",
        ),
        Key(
            name="new_privileges",
            shape=TRUTH,
            meaning="programs with the set-user-id bit, such as `sudo`, work in jobs",
            example="true",
        ),
        Key(
            name="processes",
            shape=POSITIVE,
            optional=True,
            meaning="how many processes and threads a job may have at once; `none` is no limit",
            example="4096",
        ),
        Key(
            name="memory",
            shape=TRUTH,
            meaning="jobs are killed when they use more memory than they asked for (and than 30 "
            "MiB); `false`: what they ask for only counts when they are placed",
            example="false",
        ),
        Key(
            name="memory_per_cpu",
            field="memory_per_cpu_mib",
            shape=MEMORY,
            optional=True,
            meaning="the memory limit of jobs that ask for none, for each of their CPUs; `none`: "
            "the same part of the node's memory as the job has of its CPUs; `0` is no limit",
            example="4G",
        ),
        Key(
            name="memory_per_gpu",
            field="memory_per_gpu_mib",
            shape=MEMORY,
            optional=True,
            meaning="the same for each GPU; the larger of both counts",
            example="64G",
        ),
    ),
)

SITE = Section(
    title="The file",
    noun="site",
    makes=(Site,),
    blank=Site(confinement=Confinement()),
    keys=(
        Key(name="queues", shape=Branches(), meaning="the queue tree: who shares what"),
        Key(
            name="classes",
            shape=NamedMapping(section=CLASS),
            meaning="priorities and limits of kinds of jobs",
        ),
        Key(name="pools", shape=NamedMapping(section=POOL), meaning="nodes of one kind and price"),
        Key(
            name="users",
            shape=NamedMapping(section=USERS, name=USER),
            meaning="users whose rights differ from those of `everyone`",
        ),
        Key(
            name="everyone",
            shape=choice(Role),
            meaning="the role of users of this machine who are not listed under `users`",
            example="viewer",
        ),
        Key(
            name="default_queue",
            shape=QUEUE_PATH,
            meaning="the queue of jobs that name none, for users without a default queue",
            example="acme/nlp",
        ),
        Key(
            name="default_pool",
            shape=NAME,
            optional=True,
            meaning="the pool of jobs submitted with Slurm's commands without a partition",
            example="dgx",
        ),
        Key(name="policy", shape=Inside(section=POLICY), meaning="how the planner chooses jobs"),
        Key(
            name="reservations",
            shape=ValueList(section=RESERVATION),
            meaning="capacity that is reserved for some time",
        ),
        Key(
            name="per_user",
            shape=Inside(section=PER_USER),
            meaning="how much any one user may ask of the installation",
            example="{max_jobs: 10000}",
        ),
        Key(name="history", shape=Aside(section=HISTORY), meaning="how long history is kept"),
        Key(name="containers", shape=Aside(section=CONTAINERS), meaning="how container images run"),
        Key(
            name="confinement",
            shape=Inside(section=CONFINEMENT),
            meaning="what keeps every job to itself",
        ),
        Key(
            name="currency",
            shape=NAME,
            meaning="the currency of prices, as metrics name it",
            example="EUR",
        ),
        Key(
            name="alerts",
            shape=Inside(section=ALERTS),
            meaning="who is told of what is wrong",
        ),
        Key(
            name="telemetry",
            shape=Inside(section=TELEMETRY),
            meaning="what is measured",
            example="{interval: 30s}",
        ),
    ),
)

SECTIONS = (
    SITE,
    QUEUE,
    QUOTA,
    CLASS,
    CEILING,
    IDLE,
    POOL,
    USERS,
    POLICY,
    ORDER,
    SHARE,
    PREEMPT,
    BURST,
    RESERVATION,
    PER_USER,
    HISTORY,
    CONTAINERS,
    CONFINEMENT,
    TELEMETRY,
    ALERTS,
    RECEIVER,
    ROUTE,
    JOB_ROUTE,
    MEASURED_ELSEWHERE,
    SINK,
)
"""All of them, in the order of the reference page."""
