"""A small world in documents: two nodes, three queues, some jobs."""

from doors.cli.canned import Request
from muster.api.jobs import (
    AlternativeDocument,
    AttemptDocument,
    ExplanationDocument,
    JobDocument,
    JobLine,
    JobPage,
    KnownTimeDocument,
    LaunchDocument,
    LinePage,
    ReasonDocument,
    ShareDocument,
    TaskDocument,
    TurnDocument,
)
from muster.api.pages import (
    AuditPage,
    ClassPage,
    EventPage,
    NodePage,
    QueuePage,
    TokenPage,
    UserPage,
)
from muster.api.requests import SubmittedDocument
from muster.api.site import (
    AuditDocument,
    ClassDocument,
    DeviceDocument,
    EventDocument,
    MeDocument,
    NodeDocument,
    QueueDocument,
    QuotaDocument,
    RehearsalDocument,
    SiteChange,
    StatusDocument,
    TokenDocument,
    UserDocument,
)
from muster.model.explanation import FewerGpus
from muster.model.value import replace

RUNNING = JobDocument(
    id=17,
    name="train",
    user="alice",
    queue="acme/nlp",
    job_class="normal",
    state="running",
    reason=None,
    submitted_at="2026-11-15T10:58:00Z",
    started_at="2026-11-15T10:59:00Z",
    time_limit=7_200,
    attempt=2,
    task_count=2,
    cpus=8,
    memory_mib=32_768,
    gpus=4,
    nodes=("pretend1", "pretend2"),
    cluster="local",
    pretend=True,
    labels={"team": "speech"},
    gpu_seconds=240,
)
WAITING = JobDocument(
    id=18,
    name="a rather long name for a job that sweeps",
    user="bob",
    queue="acme/vision",
    job_class="normal",
    state="pending",
    reason=ReasonDocument(kind="no_room", text="needs 8 GPUs on one node; the largest has 4"),
    submitted_at="2026-11-15T08:00:00Z",
    expected_start="2026-11-15T11:30:00Z",
    cpus=1,
    gpus=8,
    priority=5,
)
MEMBER = replace(
    WAITING,
    id=21,
    name="sweep",
    array=20,
    array_index=3,
    gpus=0.25,
    reason=ReasonDocument(kind="held", text="held by bob"),
    state="held",
    expected_start=None,
)
ENDED = JobDocument(
    id=12,
    name="probe",
    user="alice",
    queue="default",
    job_class="normal",
    state="failed",
    reason=ReasonDocument(kind="exited", text="exit code 3"),
    submitted_at="2026-11-14T09:00:00Z",
    started_at="2026-11-14T09:00:10Z",
    ended_at="2026-11-14T10:30:10Z",
    attempt=1,
    exit_code=3,
    gpus=2,
    nodes=("pretend1",),
    pretend=True,
    gpu_seconds=10_800,
    lost_gpu_seconds=1_800,
)


def listed(request: Request) -> JobPage:
    """As the server chooses: by state, user and array; ended ones only where they are asked for."""
    states, users = request.query.get("state"), request.query.get("user")
    arrays = request.query.get("array")
    known = (RUNNING, WAITING, MEMBER, *([ENDED] if "ended" in request.query else []))
    return JobPage(
        jobs=tuple(
            job
            for job in known
            if (states is None or job.state in states)
            and (users is None or job.user in users)
            and (arrays is None or str(job.array) in arrays)
        )
    )


DETAILED = replace(
    RUNNING,
    tasks=(
        TaskDocument(
            group="main",
            index=0,
            node="pretend1",
            pool="default",
            cpus=4,
            memory_mib=16_384,
            gpus=2,
            devices=(
                ShareDocument(device="pretend1-gpu0", slice=None, enforced="hardware"),
                ShareDocument(device="pretend1-gpu1", slice="mps:25%", enforced="driver"),
            ),
        ),
    ),
    attempts=(
        AttemptDocument(
            number=1,
            nodes=("pretend1",),
            started_at="2026-11-15T10:58:10Z",
            ended_at="2026-11-15T10:58:40Z",
            reason=ReasonDocument(kind="preempted", text="made room for job 16"),
            gpu_seconds=120,
            lost_gpu_seconds=120,
            cpu_seconds=31.5,
            max_memory_mib=1_536,
        ),
    ),
    launch=LaunchDocument(
        command=("--epochs", "10"),
        script='#!/bin/sh\n#MUSTER --gpus 2\npython train.py "$@"\n',
        image=None,
        env={"PATH": "/bin"},
        workdir="/home/alice",
        stdout="train-%j.out",
        stderr=None,
    ),
)

EXPLAINED = ExplanationDocument(
    job=18,
    state="pending",
    kind="no_room",
    text="needs 8 GPUs on one node; the largest has 4",
    blockers=(17, 16),
    expected_start="2026-11-15T11:30:00Z",
    no_estimate=None,
    alternatives=(
        AlternativeDocument(
            text="With 4 GPUs instead of 8 it would start now.",
            starts_now=True,
            expected_start=None,
        ),
        AlternativeDocument(
            text="With a time limit of 1h it is expected to start in 10m.",
            starts_now=False,
            expected_start="2026-11-15T11:10:00Z",
        ),
    ),
    turn=TurnDocument(
        points=14_250_000,
        own_first=True,
        job_class=10_000_000,
        fair_share=4_000_000,
        age=260_000,
        queue=0,
        size=0,
        short=0,
        service=0,
        priority=-10_000,
    ),
    time=KnownTimeDocument(
        text="about 25m (learned from 12 jobs); at most 1h, by which room is promised",
        expected_s=1_500,
        high_s=3_000,
        samples=12,
        like="jobs",
        limit_s=3_600,
        first_from="2026-11-29T11:00:00Z",
    ),
)


def device(node: str, index: int, *, used_milli: int = 0) -> DeviceDocument:
    return DeviceDocument(
        id=f"{node}-gpu{index}",
        index=index,
        model="A100-40GB",
        memory_mib=40_960,
        healthy=index == 0,
        reason="" if index == 0 else "XID 79: fell off the bus",
        mig=("3g.20gb", "1g.5gb") if used_milli else None,
        used_milli=used_milli,
        jobs=(17,) if used_milli else (),
    )


NODES = NodePage(
    nodes=(
        NodeDocument(
            id="pretend1",
            cluster="local",
            pool="default",
            state="up",
            reason="",
            pretend=True,
            cpus=16,
            cpus_used=4.5,
            memory_mib=65_536,
            memory_used_mib=16_384,
            gpus=2,
            gpus_used=0.5,
            gpu_models=("A100-40GB",),
            labels={"rack": "r1"},
            jobs=(17,),
            devices=(device("pretend1", 0, used_milli=500), device("pretend1", 1)),
        ),
        NodeDocument(
            id="pretend2",
            cluster="local",
            pool="default",
            state="draining",
            reason="new power supply",
            pretend=True,
            cpus=16,
            cpus_used=0,
            memory_mib=65_536,
            memory_used_mib=0,
            gpus=0,
            gpus_used=0,
            gpu_models=(),
            labels={},
            jobs=(),
            devices=(),
        ),
    )
)


def queue(
    path: str, *, quotas: tuple[QuotaDocument, ...] = (), private: bool = False
) -> QueueDocument:
    return QueueDocument(
        path=path,
        weight=1,
        priority=0,
        default_class=None,
        max_jobs=None,
        running=1,
        waiting=2,
        gpus_used=4,
        share=0.5,
        used_share=0.25,
        quotas=quotas,
        may_submit=(),
        private=private,
    )


QUEUES = QueuePage(
    queues=(
        queue("acme"),
        queue(
            "acme/nlp",
            quotas=(
                QuotaDocument(scope="gpu", unit="GPUs", used=4, guaranteed=2, limit=8, borrowed=2),
                QuotaDocument(
                    scope="memory pool=big",
                    unit="MiB",
                    used=32_768,
                    guaranteed=65_536,
                    limit=None,
                    borrowed=0,
                ),
            ),
        ),
        queue("default"),
        queue("secret", private=True),
    )
)
CLASSES = ClassPage(
    classes=(
        ClassDocument(
            name="urgent",
            priority=100,
            preempts=("normal",),
            preemptible=False,
            preempt_mode="requeue",
            grace=0,
            max_time=3_600,
            spot_only=False,
            may_use=("ann", "bob"),
            queues=("acme/nlp",),
        ),
        ClassDocument(
            name="normal",
            priority=0,
            preempts=(),
            preemptible=True,
            preempt_mode="checkpoint",
            grace=90,
            max_time=None,
            spot_only=False,
            may_use=("everyone",),
        ),
    )
)
USERS = UserPage(
    users=(UserDocument(name="alice", roles=("admin",), default_queue="acme/nlp"),),
    everyone="user",
)
TOKEN = TokenDocument(
    id="3fa9",
    user="alice",
    role="user",
    queue=None,
    made_at="2026-11-15T08:00:00Z",
    expires_at="2026-12-15T08:00:00Z",
    revoked=False,
)
STATUS = StatusDocument(
    version="0.1.0",
    leading=True,
    store="SQLite at /var/lib/muster/muster.db",
    last_event=2,
    jobs={"running": 1, "pending": 1, "held": 1},
    nodes={"up": 1, "draining": 1},
    gpus=8,
    gpus_used=4.5,
    pretend=True,
    plan_ms=3,
    planned_at="2026-11-15T10:59:58Z",
    problems=(),
)
ME = MeDocument(user="alice", door="cli", roles=("admin",))
CHANGE = SiteChange(
    changes=("+ queue acme/new", "~ queue acme/nlp limit 8 -> 16", "- class old"),
    applied=True,
    cautions=("acme/nlp may now use more than the pool has",),
)
REHEARSAL = RehearsalDocument(
    text="It would wait.",
    starts=(),
    waits=(22,),
    preempted=(17,),
    explanation="needs 8 GPUs on one node; the largest has 4",
    expected_start="2026-11-15T11:30:00Z",
    alternatives=(
        AlternativeDocument(
            text="With 4 GPUs instead of 8 it would start now.",
            starts_now=True,
            expected_start=None,
            change=FewerGpus(group="main", gpus=4),
        ),
    ),
)
AUDIT = AuditPage(
    entries=(
        AuditDocument(
            at="2026-11-15T10:00:00Z",
            user="alice",
            door="cli",
            action="drain",
            subject="node pretend2",
            detail="new power supply",
        ),
    )
)
EVENTS = EventPage(
    events=(
        EventDocument(
            number=41,
            kind="job_submitted",
            at="2026-11-15T10:58:00Z",
            job=17,
            text="Submitted by alice to acme/nlp.",
            fact={},
        ),
        EventDocument(
            number=42,
            kind="node_seen",
            at="2026-11-15T10:58:01Z",
            job=None,
            text="Node pretend1 was seen.",
            fact={},
        ),
    ),
    next=42,
)


def line_of(job: JobDocument) -> JobLine:
    """The job as the server lists it in short."""
    marked = " (pretend)" if job.pretend else ""
    why = job.reason.text if job.reason is not None else ""
    return JobLine(
        id=job.id,
        array=job.array,
        array_index=job.array_index,
        name=job.name,
        user=job.user,
        queue=job.queue,
        state=job.state,
        since=job.started_at or job.submitted_at,
        gpus=job.gpus,
        where=",".join(job.nodes) + marked if job.nodes else why,
    )


def listed_in_short(request: Request) -> LinePage:
    return LinePage(lines=tuple(line_of(job) for job in listed(request).jobs))


ROUTES: dict[tuple[str, str], object] = {
    ("GET", "/v1/status"): STATUS,
    ("GET", "/v1/me"): ME,
    ("GET", "/v1/jobs"): listed,
    ("GET", "/v1/jobs/lines"): listed_in_short,
    ("POST", "/v1/jobs"): SubmittedDocument(id=30, ids=(30,)),
    ("GET", "/v1/jobs/12"): ENDED,
    ("GET", "/v1/jobs/17"): DETAILED,
    ("GET", "/v1/jobs/18"): WAITING,
    ("GET", "/v1/jobs/30"): replace(WAITING, id=30, queue="default"),
    ("GET", "/v1/jobs/18/explanation"): EXPLAINED,
    ("GET", "/v1/jobs/17/events"): EVENTS,
    ("GET", "/v1/events"): EVENTS,
    ("GET", "/v1/nodes"): NODES,
    ("POST", "/v1/nodes/pretend1/drain"): NODES.nodes[0],
    ("POST", "/v1/nodes/pretend2/resume"): NODES.nodes[1],
    ("GET", "/v1/queues"): QUEUES,
    ("GET", "/v1/classes"): CLASSES,
    ("GET", "/v1/users"): USERS,
    ("GET", "/v1/tokens"): TokenPage(tokens=(TOKEN,)),
    ("POST", "/v1/tokens"): replace(TOKEN, secret="muster-secret"),  # noqa: S106  made up
    ("DELETE", "/v1/tokens/3fa9"): replace(TOKEN, revoked=True),
    ("PUT", "/v1/site"): CHANGE,
    ("POST", "/v1/quotas"): CHANGE,
    ("POST", "/v1/rehearsals"): REHEARSAL,
    ("GET", "/v1/audit"): AUDIT,
}
