"""Seeing, changing and being somebody are three rights; and what was tried is written down."""

from collections.abc import Callable

import pytest

from hostile.people import (
    ADMIN,
    BOSS,
    OTHER,
    OWNER,
    ROOT,
    VIEWER,
    audit,
    spec,
    submitted,
    token,
    until,
    with_token,
)
from muster.app.parts import Muster
from muster.controller.messages import Caller
from muster.controller.use_cases.refusals import AT_ONCE, EVERY_S, Refusals
from muster.controller.use_cases.tokens import TokenRequest
from muster.model.errors import ForbiddenError, RefusedError, UnknownError
from muster.model.job import JobSpec
from muster.model.queue import Queue
from muster.model.site import Role, Site
from muster.model.value import ClassName, Duration, Instant, JobId, QueuePath, replace

STRANGERS = [BOSS, ADMIN, OTHER, VIEWER]


@pytest.mark.parametrize("who", STRANGERS, ids=lambda who: who.user)
def test_only_its_user_and_root_use_a_jobs_terminal_and_start_steps_in_it(
    muster: Muster, who: Caller
) -> None:
    job = submitted(muster)

    with pytest.raises(ForbiddenError):
        muster.service.attach(who, job)
    with pytest.raises(ForbiddenError):
        muster.service.queries.attempts.attach(who, job)
    with pytest.raises(ForbiddenError):
        muster.service.queries.attempts.step_address(who, job)


@pytest.mark.parametrize("who", [OWNER, ROOT], ids=lambda who: who.user)
def test_its_user_and_root_may_be_it(muster: Muster, who: Caller) -> None:
    job = submitted(muster)

    # It does not run: that is another answer than that it is not theirs.
    with pytest.raises(UnknownError):
        muster.service.attach(who, job)


def test_attaching_is_written_down_before_it_happens(muster: Muster) -> None:
    job = submitted(muster)
    with pytest.raises(UnknownError):
        muster.service.attach(ROOT, job)

    assert ("root", "attach", f"job {job}") in [
        (each.user, each.action, each.subject) for each in audit(muster)
    ]


def test_who_looks_after_a_queue_sees_where_a_job_runs_and_not_what(muster: Muster) -> None:
    job = submitted(muster)
    jobs = muster.service.queries.jobs

    for who in (BOSS, ADMIN):
        launch = jobs.detail(who, job).launch
        assert launch is not None
        assert (launch.workdir, launch.stdout) == ("/", "/dev/null")
        assert (launch.argv, launch.env, launch.script) == ((), {}, None)
        assert launch.submit_line is None
        assert jobs.launches(who, [jobs.detail(who, job).view.job]) == {job: launch}
    for who in (OTHER, VIEWER):
        assert jobs.detail(who, job).launch is None
        assert jobs.launches(who, [jobs.detail(who, job).view.job]) == {}
    for who in (OWNER, ROOT):
        launch = jobs.detail(who, job).launch
        assert launch is not None
        assert launch.env == {"KEY": "hidden-value"}
        assert launch.submit_line is not None


@pytest.mark.parametrize("who", STRANGERS, ids=lambda who: who.user)
def test_only_root_submits_for_others(muster: Muster, who: Caller) -> None:
    with pytest.raises(ForbiddenError, match="cannot submit for owner"):
        muster.service.submit(who, spec("owner")).result()


@pytest.mark.parametrize("who", [ADMIN, BOSS, OTHER, VIEWER], ids=lambda who: who.user)
@pytest.mark.parametrize("victim", ["owner", "root"])
def test_only_root_makes_tokens_for_others(muster: Muster, who: Caller, victim: str) -> None:
    wish = TokenRequest(
        user=type(who.user)(victim), role=Role.VIEWER, queue=None, lifetime=Duration(1_000)
    )
    with pytest.raises(ForbiddenError):
        muster.service.make_token(who, wish).result()

    assert muster.service.make_token(ROOT, wish).result().token.user == victim


# What a token can do.


def test_a_token_never_outlives_what_it_was_made_with(muster: Muster) -> None:
    first = token(muster, OWNER, Role.USER)
    wish = TokenRequest(user=OWNER.user, role=Role.USER, queue=None, lifetime=Duration(10**12))

    second = muster.service.make_token(with_token(muster, first), wish).result()

    assert second.token.expires_at == first.token.expires_at
    assert second.token.made_with == first.token.id
    muster.service.revoke(OWNER, first.token.id).result()
    with pytest.raises(ForbiddenError, match="revoked"):
        with_token(muster, second)


@pytest.mark.parametrize(
    ("role", "queue", "wanted", "where"),
    [
        (Role.VIEWER, None, Role.USER, None),
        (Role.USER, "a", Role.USER, None),
        (Role.USER, "a/b", Role.USER, "a"),
        (Role.USER, "a", Role.USER, "default"),
        (Role.USER, None, Role.ADMIN, None),
    ],
)
def test_a_token_never_exceeds_what_it_was_made_with(
    muster: Muster, role: Role, queue: str | None, wanted: Role, where: str | None
) -> None:
    maker = with_token(muster, token(muster, OWNER, role, queue))

    with pytest.raises(ForbiddenError):
        token(muster, maker, wanted, where)


@pytest.mark.parametrize(
    ("role", "queue"), [(Role.VIEWER, None), (Role.USER, "a"), (Role.USER, None)]
)
def test_a_token_revokes_itself_and_nothing_greater(
    muster: Muster, role: Role, queue: str | None
) -> None:
    lesser = token(muster, ADMIN, role, queue)
    greater = token(muster, ADMIN, Role.ADMIN)
    who = with_token(muster, lesser)

    with pytest.raises(ForbiddenError):
        muster.service.revoke(who, greater.token.id).result()
    muster.service.revoke(who, lesser.token.id).result()

    assert with_token(muster, greater)


def test_a_viewers_token_revokes_no_other_not_even_its_like(muster: Muster) -> None:
    one, other = token(muster, OWNER, Role.VIEWER), token(muster, OWNER, Role.VIEWER)

    with pytest.raises(ForbiddenError):
        muster.service.revoke(with_token(muster, one), other.token.id).result()


def test_the_tokens_of_one_user_are_limited_in_number(fresh: Muster) -> None:
    for _ in range(100):
        token(fresh, OWNER, Role.VIEWER)

    with pytest.raises(RefusedError, match="Revoke those that are not used"):
        token(fresh, OWNER, Role.VIEWER)
    assert token(fresh, OTHER, Role.VIEWER)


def test_the_audit_names_the_token(fresh: Muster) -> None:
    key = token(fresh, OWNER, Role.USER)
    who = with_token(fresh, key)
    job = fresh.service.submit(who, spec("owner"), held=True).result().jobs[0]
    with pytest.raises(ForbiddenError):
        fresh.service.drain(who, next(iter(fresh.journal.record.nodes)), "").result()

    entries = until(lambda: audit(fresh), lambda seen: seen[0].action == "refused")
    by_action = {each.action: each.token for each in entries}
    assert by_action["submit"] == key.token.id
    assert by_action["refused"] == key.token.id
    assert any(each.subject == f"job {job}" for each in entries)


# What is written down.


def test_what_apply_and_update_changed_is_written_down(fresh: Muster) -> None:
    job = submitted(fresh)
    fresh.service.update(OWNER, job, lambda old: replace(old, name="renamed")).result()

    def more(site: Site) -> Site:
        path = QueuePath("new")
        return replace(site, queues={**site.queues, path: Queue(path=path)})

    fresh.service.apply(ROOT, more, describe=lambda diff: f"{len(diff.after.queues)}").result()

    details = {each.action: each.detail for each in audit(fresh)}
    assert details["update"] == "name: plain -> renamed"
    assert details["apply"] == "6"


def test_refusals_are_written_down(fresh: Muster) -> None:
    job = submitted(fresh)

    fresh.service.cancel(OTHER, (job,)).result()

    entries = until(lambda: audit(fresh), lambda seen: seen[0].action == "refused")
    assert (entries[0].user, entries[0].subject) == ("other", "cancel")
    assert f"job {job}" in entries[0].detail


def test_a_flood_of_refusals_leaves_a_bounded_trace(fresh: Muster) -> None:
    for each in range(300):
        with pytest.raises(ForbiddenError):
            fresh.service.drain(
                OTHER, type(next(iter(fresh.journal.record.nodes)))(f"n{each}"), ""
            ).result()
    fresh.service.drain(ROOT, next(iter(fresh.journal.record.nodes)), "").result()

    refused = [each for each in audit(fresh) if each.action == "refused"]
    assert len(refused) <= AT_ONCE + 1


def test_after_a_flood_an_entry_says_how_much_was_left_out() -> None:
    now_s = [0.0]
    refusals = Refusals(lambda: now_s[0])
    for each in range(AT_ONCE + 5):
        refusals.entry(OTHER, "try", f"no {each}")
    now_s[0] += EVERY_S

    entry = refusals.entry(OTHER, "try", "no")
    assert entry is not None
    assert "5 more" in entry(Instant(0)).detail
    assert refusals.entry(OTHER, "try", "again") is None
    assert refusals.entry(OWNER, "try", "no") is not None


# Who may use a class.


@pytest.mark.parametrize(
    ("who", "name", "queue", "allowed"),
    [
        (OWNER, "low", "a", True),
        (OWNER, "normal", "a", True),
        (OWNER, "high", "a", False),
        (OWNER, "steady", "a", False),
        (OWNER, "urgent", "a", True),
        (OTHER, "urgent", "a", False),
        (OTHER, "team", "a/b", True),
        (OTHER, "team", "default", False),
        (OTHER, "open", "default", True),
        (BOSS, "high", "a", True),
        (ADMIN, "high", "default", True),
    ],
)
def test_a_class_says_who_may_use_it(
    muster: Muster, who: Caller, name: str, queue: str, allowed: bool
) -> None:
    wish = spec(who.user, job_class=ClassName(name), queue=QueuePath(queue))
    held = muster.service.submit(who, spec(who.user, queue=QueuePath(queue)), held=True)
    job: JobId = held.result().jobs[0]

    def change_class() -> None:
        muster.service.update(who, job, lambda old: replace(old, job_class=wish.job_class)).result()

    if allowed:
        muster.service.submit(who, wish, held=True).result()
        change_class()
        return
    with pytest.raises(ForbiddenError, match="may not use class"):
        muster.service.submit(who, wish, held=True).result()
    with pytest.raises(ForbiddenError, match="may not use class"):
        muster.service.queries.plan.rehearse(who, spec=wish)
    with pytest.raises(ForbiddenError, match="may not use class"):
        change_class()


def test_the_class_that_a_queue_gives_needs_no_right(fresh: Muster) -> None:
    def urgent(site: Site) -> Site:
        queue = replace(site.queues[QueuePath("a")], default_class=ClassName("high"))
        return replace(site, queues={**site.queues, queue.path: queue})

    fresh.service.apply(ROOT, urgent, describe=lambda _: "").result()

    assert fresh.service.submit(OWNER, spec(), held=True).result().jobs


@pytest.mark.parametrize(
    ("who", "name", "allowed"),
    [
        (OWNER, "normal", False),
        (OWNER, "patient", True),
        (OTHER, "patient", False),
        (BOSS, "normal", True),
    ],
)
def test_a_class_says_who_may_decline_to_be_preempted(
    muster: Muster, who: Caller, name: str, allowed: bool
) -> None:
    wish = spec(who.user, job_class=ClassName(name), preemptible=False)

    if allowed:
        assert muster.service.submit(who, wish, held=True).result().jobs
        return
    with pytest.raises(ForbiddenError, match="can be preempted"):
        muster.service.submit(who, wish, held=True).result()


# What a job was given in one queue, or in one class, is not taken along to another.


def to(**fields: object) -> Callable[[JobSpec], JobSpec]:
    return lambda old: replace(old, **fields)


def test_a_class_is_not_taken_along_to_a_queue_where_one_may_not_use_it(muster: Muster) -> None:
    wish = spec("other", job_class=ClassName("team"))
    job = muster.service.submit(OTHER, wish, held=True).result().jobs[0]

    muster.service.update(OTHER, job, to(queue=QueuePath("a/b"))).result()
    with pytest.raises(ForbiddenError, match="may not use class team in default"):
        muster.service.update(OTHER, job, to(queue=QueuePath("default"))).result()


def test_declining_to_be_preempted_is_not_taken_along_to_another_class(muster: Muster) -> None:
    wish = spec(job_class=ClassName("patient"), preemptible=False)
    job = muster.service.submit(OWNER, wish, held=True).result().jobs[0]

    with pytest.raises(ForbiddenError, match="can be preempted"):
        muster.service.update(OWNER, job, to(job_class=ClassName("normal"))).result()
    changed = muster.service.update(
        OWNER, job, to(job_class=ClassName("normal"), preemptible=True)
    ).result()
    assert changed.spec.job_class == "normal"


def test_a_raised_priority_is_not_taken_along_to_another_queue(muster: Muster) -> None:
    job = muster.service.submit(OWNER, spec(), held=True).result().jobs[0]
    muster.service.update(BOSS, job, to(priority=50)).result()

    muster.service.update(OWNER, job, to(name="still-50")).result()
    with pytest.raises(ForbiddenError, match="priority above 0"):
        muster.service.update(OWNER, job, to(queue=QueuePath("default"))).result()
    muster.service.update(OWNER, job, to(queue=QueuePath("default"), priority=0)).result()
