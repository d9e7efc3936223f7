"""What doors call, through a whole Muster: real planner, real processes, a store in memory."""

import getpass
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from pathlib import Path
from typing import Any, TypeVar

import pytest

from muster.app.parts import Muster, clock
from muster.controller.messages import Caller, JobQuery, LogQuery
from muster.controller.use_cases.service import Service
from muster.controller.use_cases.tokens import TokenRequest
from muster.controller.world.journal import Command
from muster.doors.config.default import DEFAULT_SITE
from muster.lifecycle.refusal import DeadlineWithoutLimit
from muster.model.cluster import NodeState
from muster.model.errors import ForbiddenError, RefusedError, UnknownError
from muster.model.explanation import FewerGpus
from muster.model.gpu import GpuAsk
from muster.model.job import Ask, Dependency, DependencyKind, JobSpec, JobState, TaskGroup
from muster.model.launch import Launch
from muster.model.plan import Wait
from muster.model.queue import Queue
from muster.model.reason import NoRoom, NotBefore
from muster.model.site import Grant, Role, Site, User
from muster.model.value import Duration, Instant, JobId, NodeId, QueuePath, UserName, replace
from muster.settings import Settings
from muster.stores.base import EventQuery, HistoryQuery, Stored

T = TypeVar("T")

ME = getpass.getuser()
ROOT = Caller(user=UserName(ME), door="test", root=True)
GUEST = Caller(user=UserName("guest"), door="test")
BOSS = Caller(user=UserName("boss"), door="test")
PATHS = tuple(QueuePath(each) for each in ("default", "a", "a/b"))
SITE = replace(
    DEFAULT_SITE,
    queues={path: Queue(path=path) for path in PATHS},
    users={
        GUEST.user: User(name=GUEST.user, grants=(Grant(role=Role.VIEWER),)),
        BOSS.user: User(
            name=BOSS.user, grants=(Grant(role=Role.QUEUE_ADMIN, queue=QueuePath("a")),)
        ),
    },
)


@pytest.fixture
def muster(tmp_path: Path) -> Iterator[Muster]:
    settings = Settings(store="memory:", nodes=1, gpus="2xA100-40GB")
    made = Muster(tmp_path, settings, SITE)
    made.start()
    try:
        until(lambda: len(made.journal.record.nodes), lambda count: count == 1)
        yield made
        live = tuple(made.journal.record.jobs)
        made.service.cancel(ROOT, live).result()
        until(lambda: made.journal.record.jobs, lambda jobs: not jobs)
    finally:
        made.close()


def until(look: Callable[[], T], is_so: Callable[[T], bool]) -> T:
    deadline = time.monotonic() + 30
    while not is_so(seen := look()):
        assert time.monotonic() < deadline, f"still {seen}"
        time.sleep(0.01)
    return seen


def asked(text: str = "sleep 600", gpus: int = 0, **fields: object) -> JobSpec:
    launch = Launch(argv=("sh", "-c", text), workdir="/", stdout="/dev/null")
    spec = JobSpec(
        name="job",
        user=ROOT.user,
        queue=QueuePath("default"),
        groups=(TaskGroup(each=Ask(cpu_milli=1_000, gpus=GpuAsk(count=gpus) if gpus else None)),),
        launch=launch,
    )
    return replace(spec, **fields)


def submitted(muster: Muster, spec: JobSpec) -> JobId:
    return muster.service.submit(ROOT, spec).result().jobs[0]


def state(muster: Muster, job: JobId) -> JobState:
    return muster.service.queries.jobs.detail(ROOT, job).view.job.state


def running(muster: Muster, job: JobId) -> None:
    until(lambda: state(muster, job), lambda seen: seen is JobState.RUNNING)


def test_a_job_is_seen_from_its_beginning_to_its_end(muster: Muster) -> None:
    queries = muster.service.queries
    job = submitted(muster, asked("exit 3", gpus=1))

    until(lambda: state(muster, job), lambda seen: seen is JobState.FAILED)

    detail = queries.jobs.detail(ROOT, job)
    assert detail.view.ended_at is not None
    assert detail.launch == asked("exit 3").launch
    assert [attempt.number for attempt in detail.attempts] == [1]
    assert queries.history.jobs(ROOT, HistoryQuery(jobs=(job,))).jobs[0].job.id == job


def test_others_see_a_job_but_not_what_it_runs_or_writes(muster: Muster) -> None:
    queries = muster.service.queries
    job = submitted(muster, asked())
    running(muster, job)

    assert queries.jobs.detail(GUEST, job).view.job.id == job
    assert queries.jobs.detail(GUEST, job).launch is None
    with pytest.raises(ForbiddenError, match="only they and their administrators"):
        queries.attempts.output(GUEST, LogQuery(job=job))
    with pytest.raises(ForbiddenError):
        queries.attempts.attach(GUEST, job)


def test_what_a_job_writes_can_be_read_in_parts(muster: Muster, tmp_path: Path) -> None:
    out = tmp_path / "out"
    launch = Launch(argv=("sh", "-c", "echo 0123456789; sleep 600"), workdir="/", stdout=str(out))
    job = submitted(muster, asked(launch=launch))
    until(lambda: out.exists() and out.read_bytes(), lambda seen: seen == b"0123456789\n")

    part = muster.service.queries.attempts.output(ROOT, LogQuery(job=job, offset=2, limit=3))
    last = muster.service.queries.attempts.output(ROOT, LogQuery(job=job, offset=-3))

    assert (part.content, part.next, part.where) == (b"234", 5, str(out))
    assert last.content == b"89\n"


def test_what_never_ran_has_written_nothing(muster: Muster) -> None:
    job = muster.service.submit(ROOT, asked(), held=True).result().jobs[0]

    with pytest.raises(UnknownError, match="has not run yet"):
        muster.service.queries.attempts.output(ROOT, LogQuery(job=job))
    with pytest.raises(UnknownError, match="does not run"):
        muster.service.queries.attempts.attach(ROOT, job)


def test_a_part_of_an_array_that_never_ran_goes_by_its_name(muster: Muster) -> None:
    parts = muster.service.submit(ROOT, asked(), indices=(4, 7), held=True).result().jobs

    with pytest.raises(UnknownError, match=f"job {parts[0]}_7 has not run yet"):
        muster.service.queries.attempts.output(ROOT, LogQuery(job=parts[1]))


def test_jobs_are_chosen_and_paged(muster: Muster) -> None:
    queries = muster.service.queries
    jobs = [
        muster.service.submit(
            ROOT, asked(name=f"n{number % 2}", queue=PATHS[number % 3]), held=True
        )
        .result()
        .jobs[0]
        for number in range(6)
    ]

    def chosen(**fields: object) -> list[JobId]:
        page = queries.jobs.page(ROOT, replace(JobQuery(), **fields))
        return [view.job.id for view in page.jobs]

    assert chosen() == jobs
    assert chosen(queues=(QueuePath("a"),)) == [jobs[1], jobs[2], jobs[4], jobs[5]]
    assert chosen(name="n1") == jobs[1::2]
    assert chosen(states=(JobState.RUNNING,)) == []
    assert chosen(users=(UserName("grace"),)) == []
    assert chosen(jobs=(jobs[3], jobs[0], JobId(999))) == [jobs[0], jobs[3]]
    first = queries.jobs.page(ROOT, JobQuery(limit=4))
    assert (len(first.jobs), first.next) == (4, jobs[3])
    assert chosen(after=first.next) == jobs[4:]


def test_a_waiting_job_says_why_and_what_would_help(muster: Muster) -> None:
    queries = muster.service.queries
    first = submitted(muster, asked(gpus=1))
    running(muster, first)
    second = submitted(muster, asked(gpus=2))

    explanation = queries.plan.explain(ROOT, second)

    assert explanation.job == second
    view = queries.jobs.detail(ROOT, second).view
    assert view.wait is not None
    assert isinstance(view.wait.why, NoRoom)


def test_a_waiting_job_says_how_long_it_takes_and_what_that_decides(muster: Muster) -> None:
    queries = muster.service.queries
    limited = replace(asked(gpus=2), time_limit=Duration(60_000))
    running(muster, submitted(muster, asked(gpus=1)))
    with_limit, without = submitted(muster, limited), submitted(muster, asked(gpus=2))

    known = queries.plan.explain(ROOT, with_limit).time
    bet = queries.plan.explain(ROOT, without).time

    assert known is not None
    assert bet is not None
    assert (known.limit, bet.limit) == (60_000, None)
    assert "at most 1m, by which room is promised" in known.text
    assert bet.text.endswith("as it has no time limit, where room is promised")
    policy = muster.journal.record.site.policy
    job = muster.journal.record.jobs[without]
    assert bet.first_from == job.submitted_at + policy.patience


def test_a_rehearsal_changes_nothing(muster: Muster) -> None:
    running(muster, submitted(muster, asked(gpus=2)))
    version = muster.journal.record.version

    waits = muster.service.queries.plan.rehearse(ROOT, spec=asked(gpus=1))
    starts = muster.service.queries.plan.rehearse(ROOT, spec=asked(gpus=0))

    assert waits.wait is not None
    assert waits.alternatives == ()
    assert starts.job in starts.starts
    assert muster.journal.record.version == version
    with pytest.raises(RefusedError):
        muster.service.queries.plan.rehearse(ROOT, spec=asked(gpus=3))


def test_a_rehearsal_of_a_job_that_would_wait_carries_the_change_that_helps(muster: Muster) -> None:
    running(muster, submitted(muster, asked(gpus=1)))

    waits = muster.service.queries.plan.rehearse(ROOT, spec=asked(gpus=2))

    assert [each.change for each in waits.alternatives] == [FewerGpus(group="main", gpus=1)]


def test_a_deadline_needs_a_time_limit_at_once_unless_the_job_is_held(muster: Muster) -> None:
    due = replace(asked(), deadline=Instant(clock() + 600_000))

    with pytest.raises(RefusedError, match="needs a time limit") as refused:
        muster.service.submit(ROOT, due).result()
    held = muster.service.submit(ROOT, due, held=True).result().jobs[0]

    assert refused.value.reason == DeadlineWithoutLimit()
    assert state(muster, held) is JobState.HELD


def test_a_rehearsal_names_the_nodes_now_or_when_others_must_have_left(muster: Muster) -> None:
    limited = replace(asked(gpus=2), time_limit=Duration(60_000))
    running(muster, submitted(muster, limited))

    now = muster.service.queries.plan.rehearse(ROOT, spec=asked(gpus=0))
    later = muster.service.queries.plan.rehearse(ROOT, spec=asked(gpus=2))

    assert [placed.node for placed in now.placements] == ["pretend1"]
    assert later.wait is not None
    assert [placed.node for placed in later.placements] == ["pretend1"]


def test_a_job_that_ends_while_a_request_is_on_its_way_can_still_be_depended_on(
    muster: Muster,
) -> None:
    first = submitted(muster, asked())
    running(muster, first)

    def write_late(command: Command[Any]) -> "Future[Any]":
        muster.service.cancel(ROOT, (first,)).result()
        until(lambda: muster.journal.record.jobs, lambda jobs: first not in jobs)
        return muster.writer.write(command)

    on_its_way = Service(write_late, muster.service.queries)
    after = (Dependency(kind=DependencyKind.AFTER_ANY, job=first),)
    second = on_its_way.submit(ROOT, asked("true", after=after)).result().jobs[0]

    until(lambda: state(muster, second), lambda seen: seen is JobState.COMPLETED)


def test_a_rehearsed_request_can_depend_on_a_job_that_has_ended(muster: Muster) -> None:
    over = submitted(muster, asked("true"))
    until(lambda: state(muster, over), lambda seen: seen is JobState.COMPLETED)
    after = (Dependency(kind=DependencyKind.AFTER_OK, job=over),)

    rehearsed = muster.service.queries.plan.rehearse(ROOT, spec=asked(after=after))

    assert rehearsed.job in rehearsed.starts


def test_an_explanation_waits_for_a_plan_that_knows_the_job_as_it_is(muster: Muster) -> None:
    service, begin_at = muster.service, Instant(clock() + 3_600_000)
    job = service.submit(ROOT, asked(begin_at=begin_at), held=True).result().jobs[0]
    another = submitted(muster, asked(begin_at=begin_at))
    until(lambda: muster.controller.last_plan.waits, lambda waits: {job, another} <= waits.keys())

    service.release(ROOT, (job,)).result()
    explained = service.queries.plan.explain(ROOT, job)

    assert explained.decision == Wait(job=job, why=NotBefore(at=begin_at))


def test_a_drained_node_takes_nothing_new_until_it_is_undrained(muster: Muster) -> None:
    node = NodeId("pretend1")
    drained = muster.service.drain(ROOT, node, "new fans").result()
    job = submitted(muster, asked(gpus=1))

    until(lambda: muster.controller.last_plan.waits, lambda waits: job in waits)
    assert (drained.state, drained.reason) == (NodeState.DRAINING, "new fans")
    assert (drained.drained_by, drained.drained_at is not None) == (ROOT.user, True)
    assert state(muster, job) is JobState.PENDING
    muster.service.undrain(ROOT, node).result()

    running(muster, job)


def test_only_an_admin_drains_and_only_nodes_that_there_are(muster: Muster) -> None:
    with pytest.raises(ForbiddenError):
        muster.service.drain(BOSS, NodeId("pretend1"), "").result()
    with pytest.raises(UnknownError, match="muster nodes"):
        muster.service.drain(ROOT, NodeId("nowhere"), "").result()


def test_rules_are_tried_before_they_are_applied(muster: Muster) -> None:
    service = muster.service

    def more(site: Site) -> Site:
        path = QueuePath("new")
        return replace(site, queues={**site.queues, path: Queue(path=path)})

    tried = service.apply(ROOT, more, dry_run=True).result()
    assert QueuePath("new") in tried.after.queues
    assert QueuePath("new") not in service.queries.site().queues
    service.apply(ROOT, more).result()

    assert QueuePath("new") in service.queries.site().queues


def test_a_queue_admin_divides_what_is_below_their_queue_and_nothing_else(
    muster: Muster,
) -> None:
    service = muster.service

    def weight(path: str) -> Callable[[Site], Site]:
        queue = Queue(path=QueuePath(path), weight=3)
        return lambda site: replace(site, queues={**site.queues, queue.path: queue})

    service.apply(BOSS, weight("a/b")).result()
    for path in ("a", "default"):
        with pytest.raises(ForbiddenError):
            service.apply(BOSS, weight(path)).result()
    with pytest.raises(ForbiddenError):
        service.apply(BOSS, lambda site: replace(site, everyone=Role.ADMIN)).result()

    assert service.queries.site().queues[QueuePath("a/b")].weight == 3


def test_rules_without_a_queue_are_refused(muster: Muster) -> None:
    with pytest.raises(RefusedError, match="no queue"):
        muster.service.apply(ROOT, lambda site: replace(site, queues={})).result()


def test_rules_that_leave_jobs_without_a_queue_say_so(muster: Muster) -> None:
    muster.service.submit(ROOT, asked(queue=QueuePath("a/b")), held=True).result()

    def fewer(site: Site) -> Site:
        kept = {path: queue for path, queue in site.queues.items() if path != "a/b"}
        return replace(site, queues=kept)

    diff = muster.service.apply(ROOT, fewer, dry_run=True).result()

    assert diff.cautions == ("jobs wait in queue a/b, which is gone; move or cancel them",)


def test_a_token_is_somebody_until_it_is_revoked(muster: Muster) -> None:
    service = muster.service
    wish = TokenRequest(
        user=BOSS.user, role=Role.USER, queue=QueuePath("a"), lifetime=Duration(60_000)
    )
    new = service.make_token(BOSS, wish).result()

    found = service.queries.people.caller_of(new.secret, "rest")
    assert (found.user, found.door, found.token) == (BOSS.user, "rest", new.token)
    assert service.queries.people.tokens(BOSS) == (new.token,)
    assert service.queries.people.tokens(GUEST) == ()
    assert service.queries.people.tokens(ROOT) == (new.token,)
    with pytest.raises(ForbiddenError):
        service.revoke(GUEST, new.token.id).result()
    service.revoke(BOSS, new.token.id).result()

    with pytest.raises(ForbiddenError, match="revoked"):
        service.queries.people.caller_of(new.secret, "rest")


@pytest.mark.parametrize(
    ("who", "user", "role"),
    [(GUEST, "guest", Role.USER), (BOSS, "boss", Role.ADMIN), (BOSS, "guest", Role.VIEWER)],
)
def test_nobody_gives_away_more_than_they_have(
    muster: Muster, who: Caller, user: str, role: Role
) -> None:
    wish = TokenRequest(user=UserName(user), role=role, queue=None, lifetime=Duration(60_000))

    with pytest.raises(ForbiddenError):
        muster.service.make_token(who, wish).result()


def test_the_audit_log_is_for_administrators(muster: Muster) -> None:
    muster.service.drain(ROOT, NodeId("pretend1"), "new fans").result()

    entry = muster.service.queries.history.audit(ROOT, before=None, limit=1)[0]

    assert (entry.user, entry.action, entry.subject) == (ROOT.user, "set draining", "node pretend1")
    with pytest.raises(ForbiddenError):
        muster.service.queries.history.audit(BOSS, before=None, limit=1)


def test_who_follows_hears_everything_once_and_in_order(muster: Muster) -> None:
    queries = muster.service.queries
    heard: list[Stored] = []
    leave = queries.history.follow(heard.extend)
    job = submitted(muster, asked("true"))
    until(lambda: state(muster, job), lambda seen: seen is JobState.COMPLETED)

    leave()
    submitted(muster, asked("true"))

    first = heard[0].number
    assert [each.number for each in heard] == list(range(first, first + len(heard)))
    kept = queries.history.events(ROOT, EventQuery(after=first - 1, limit=len(heard)))
    assert tuple(heard) == kept


def test_health_says_who_leads_and_how_long_plans_take(muster: Muster) -> None:
    submitted(muster, asked("true"))

    health = until(muster.service.queries.status.health, lambda seen: seen.planned_at is not None)

    assert (health.leading, health.problems) == (True, ())
    assert health.store.startswith("Memory")
    assert health.planned_at is not None
    assert Instant(0) < health.planned_at <= clock()


def test_a_signal_reaches_the_job(muster: Muster, tmp_path: Path) -> None:
    ready = tmp_path / "ready"
    text = f"trap 'exit 7' USR1; touch {ready}; while :; do sleep 0.05; done"
    job = submitted(muster, asked(text))
    running(muster, job)
    until(ready.exists, bool)

    muster.service.signal(ROOT, (job,), 10).result()

    until(lambda: state(muster, job), lambda seen: seen is JobState.FAILED)
