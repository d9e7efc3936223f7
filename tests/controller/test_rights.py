"""Who may do what: a table of roles, places in the tree, and what a token leaves of them."""

import pytest

from controller.desk import SITE, spec
from muster.controller.messages import Caller
from muster.controller.rights import (
    demand,
    demand_change,
    demand_priority,
    grants_of,
    has_role,
    may_change,
    owns,
)
from muster.model.errors import ForbiddenError
from muster.model.job import Job
from muster.model.site import Grant, Role, Token, User
from muster.model.value import Instant, JobId, QueuePath, UserName, replace

VIEWER, USER, QUEUE_ADMIN, ADMIN = Role.VIEWER, Role.USER, Role.QUEUE_ADMIN, Role.ADMIN


def user(name: str, role: Role, queue: str | None = None) -> User:
    where = None if queue is None else QueuePath(queue)
    return User(name=UserName(name), grants=(Grant(role=role, queue=where),))


USERS = {
    each.name: each
    for each in (
        user("viewer", VIEWER),
        user("user", USER),
        user("boss", QUEUE_ADMIN, "a"),
        user("queens", QUEUE_ADMIN),
        user("admin", ADMIN),
        user("local", ADMIN, "a"),
        User(name=UserName("nothing")),
    )
}
RULES = replace(SITE, users=USERS)


def token(role: Role, queue: str | None = None) -> Token:
    return Token(
        id="t",
        user=UserName("x"),
        hashed="",
        role=role,
        queue=None if queue is None else QueuePath(queue),
        made_at=Instant(0),
        expires_at=Instant(1),
    )


def who(name: str, key: Token | None = None, *, root: bool = False) -> Caller:
    return Caller(user=UserName(name), door="test", token=key, root=root)


@pytest.mark.parametrize(
    ("name", "role", "queue", "expected"),
    [
        ("viewer", VIEWER, "a", True),
        ("viewer", USER, "a", False),
        ("user", USER, "a/b", True),
        ("user", USER, None, True),
        ("user", QUEUE_ADMIN, "a", False),
        ("boss", QUEUE_ADMIN, "a", True),
        ("boss", QUEUE_ADMIN, "a/b", True),
        ("boss", QUEUE_ADMIN, "ab", False),
        ("boss", QUEUE_ADMIN, "default", False),
        ("boss", QUEUE_ADMIN, None, False),
        ("boss", USER, "a/b", True),
        ("boss", USER, "default", False),
        ("boss", ADMIN, "a", False),
        ("queens", QUEUE_ADMIN, "default", True),
        ("queens", QUEUE_ADMIN, None, True),
        ("queens", ADMIN, None, False),
        ("admin", ADMIN, None, True),
        ("admin", QUEUE_ADMIN, "a/b", True),
        ("local", ADMIN, "a/b", True),
        ("local", ADMIN, None, False),
        # Who is not listed, or listed without a role, is like everyone.
        ("stranger", USER, "a", True),
        ("stranger", QUEUE_ADMIN, "a", False),
        ("nothing", USER, "a", True),
    ],
)
def test_a_role_counts_where_it_was_granted_and_below(
    name: str, role: Role, queue: str | None, expected: bool
) -> None:
    where = None if queue is None else QueuePath(queue)

    assert has_role(who(name), RULES, role, where) is expected


@pytest.mark.parametrize(
    ("name", "key", "role", "queue", "expected"),
    [
        # A token makes less of somebody ...
        ("admin", token(USER), ADMIN, None, False),
        ("admin", token(USER), USER, "a", True),
        ("admin", token(ADMIN, "a"), ADMIN, None, False),
        ("admin", token(ADMIN, "a"), ADMIN, "a/b", True),
        ("admin", token(ADMIN, "a"), USER, "default", False),
        ("admin", token(VIEWER), USER, "a", False),
        ("boss", token(QUEUE_ADMIN, "a/b"), QUEUE_ADMIN, "a/b", True),
        ("boss", token(QUEUE_ADMIN, "a/b"), QUEUE_ADMIN, "a", False),
        # ... never more.
        ("viewer", token(ADMIN), USER, "a", False),
        ("user", token(ADMIN), ADMIN, None, False),
        ("boss", token(QUEUE_ADMIN), QUEUE_ADMIN, "default", False),
    ],
)
def test_a_token_can_make_less_of_somebody_and_never_more(
    name: str, key: Token, role: Role, queue: str | None, expected: bool
) -> None:
    where = None if queue is None else QueuePath(queue)

    assert has_role(who(name, key), RULES, role, where) is expected


def job_of(name: str, queue: str) -> Job:
    return Job(id=JobId(7), spec=spec(name, queue=queue), submitted_at=Instant(0))


@pytest.mark.parametrize(
    ("name", "key", "owner", "queue", "expected"),
    [
        ("user", None, "user", "a", True),
        ("user", None, "other", "a", False),
        ("user", token(USER, "a"), "user", "a/b", True),
        ("user", token(USER, "a"), "user", "default", False),
        ("user", token(VIEWER), "user", "a", False),
        ("viewer", None, "viewer", "a", False),
        ("boss", None, "other", "a/b", True),
        ("boss", None, "other", "default", False),
        ("boss", token(USER), "other", "a/b", False),
        ("admin", None, "other", "default", True),
        ("admin", token(ADMIN, "a"), "other", "default", False),
    ],
)
def test_a_job_is_changed_by_its_owner_and_by_who_looks_after_its_queue(
    name: str, key: Token | None, owner: str, queue: str, expected: bool
) -> None:
    assert may_change(who(name, key), RULES, job_of(owner, queue)) is expected


def test_the_machines_administrator_may_do_everything() -> None:
    root = who("root", root=True)

    assert grants_of(root, RULES) == (Grant(role=ADMIN),)
    assert has_role(root, RULES, ADMIN)
    assert owns(root, RULES, job_of("somebody", "a"))


def test_everyone_can_be_made_a_viewer() -> None:
    rules = replace(RULES, everyone=VIEWER)

    assert not has_role(who("stranger"), rules, USER, QueuePath("a"))
    assert has_role(who("user"), rules, USER, QueuePath("a"))


def test_who_is_refused_learns_what_it_takes() -> None:
    with pytest.raises(ForbiddenError, match="to drain takes the role admin; user has not got it"):
        demand(who("user"), RULES, ADMIN, to="drain")
    with pytest.raises(ForbiddenError, match="takes the role queue_admin in a; user"):
        demand(who("user"), RULES, QUEUE_ADMIN, QueuePath("a"), to="set the quota")
    with pytest.raises(ForbiddenError, match="they or a queue_admin of a can change it"):
        demand_change(who("user"), RULES, job_of("other", "a"))


def test_one_may_put_ones_jobs_back_and_not_forward() -> None:
    plain = spec(queue="a")
    back, forward = replace(plain, priority=-5), replace(plain, priority=5)
    raised = replace(job_of("user", "a"), spec=forward)

    demand_priority(who("user"), RULES, back, None)
    demand_priority(who("user"), RULES, forward, raised)
    demand_priority(who("root", root=True), RULES, forward, None)
    with pytest.raises(ForbiddenError, match="to give a job a priority above 0 takes the role"):
        demand_priority(who("user"), RULES, forward, job_of("user", "a"))
