"""Who is who in these tests, and what they ask for."""

import time
from collections.abc import Callable
from typing import TypeVar

from muster.app.parts import Muster
from muster.controller.messages import Caller
from muster.controller.use_cases.tokens import NewToken, TokenRequest
from muster.model.cluster import Pool
from muster.model.history import AuditEntry
from muster.model.job import Ask, JobSpec, TaskGroup
from muster.model.launch import Launch
from muster.model.queue import JobClass, Queue
from muster.model.site import Grant, Role, Site, User
from muster.model.value import (
    ClassName,
    ClusterName,
    Duration,
    JobId,
    PoolName,
    QueuePath,
    UserName,
    replace,
)

T = TypeVar("T")

PATIENCE_S = 30
HOUR = Duration(3_600_000)


def caller(name: str, *, root: bool = False) -> Caller:
    return Caller(user=UserName(name), door="test", root=root)


ROOT = caller("root", root=True)
ADMIN = caller("admin")
BOSS = caller("boss")
OWNER = caller("owner")
OTHER = caller("other")
VIEWER = caller("viewer")


def _user(name: str, *grants: Grant) -> User:
    return User(name=UserName(name), grants=grants)


_CLASSES = (
    JobClass(name=ClassName("low")),
    JobClass(name=ClassName("normal"), priority=100),
    JobClass(name=ClassName("high"), priority=1_000, preempts=(ClassName("low"),)),
    JobClass(name=ClassName("urgent"), priority=500, may_use=(UserName("owner"),)),
    JobClass(name=ClassName("team"), priority=500, queues=(QueuePath("a"),)),
    JobClass(name=ClassName("open"), priority=500, may_use=(UserName("everyone"),)),
    JobClass(name=ClassName("steady"), priority=100, preemptible=False),
    JobClass(name=ClassName("patient"), priority=50, may_decline=(UserName("owner"),)),
)
_PATHS = ("default", "a", "a/b", "secret", "secret/deep")

SITE = Site(
    queues={
        QueuePath(path): Queue(path=QueuePath(path), private=path == "secret") for path in _PATHS
    },
    classes={each.name: each for each in _CLASSES},
    pools={PoolName("local"): Pool(name=PoolName("local"), cluster=ClusterName("local"))},
    users={
        each.name: each
        for each in (
            _user("admin", Grant(role=Role.ADMIN)),
            _user("boss", Grant(role=Role.QUEUE_ADMIN, queue=QueuePath("a"))),
            _user("viewer", Grant(role=Role.VIEWER)),
            _user("insider", Grant(role=Role.VIEWER, queue=QueuePath("secret"))),
        )
    },
    default_queue=QueuePath("default"),
)
"""boss looks after `a`; `secret` is private, and insider has a role there. Others are everyone."""


def spec(user: str = "owner", **fields: object) -> JobSpec:
    """A request that runs nothing harmful."""
    plain = JobSpec(
        name="plain",
        user=UserName(user),
        queue=QueuePath("a"),
        job_class=ClassName(""),
        groups=(TaskGroup(each=Ask(cpu_milli=100)),),
        launch=Launch(
            argv=("sleep", "60"),
            env={"KEY": "hidden-value"},
            workdir="/",
            stdout="/dev/null",
            submit_line="sbatch --export=KEY=hidden-value job.sh",
        ),
    )
    return replace(plain, **fields)


def submitted(muster: Muster, held: bool = True, **fields: object) -> JobId:
    """A job of the owner's."""
    return muster.service.submit(ROOT, spec(**fields), held=held).result().jobs[0]  # pyright: ignore[reportArgumentType]


def token(muster: Muster, who: Caller, role: Role, queue: str | None = None) -> NewToken:
    where = None if queue is None else QueuePath(queue)
    wish = TokenRequest(user=who.user, role=role, queue=where, lifetime=HOUR)
    return muster.service.make_token(who, wish).result()


def with_token(muster: Muster, new: NewToken) -> Caller:
    return muster.service.queries.people.caller_of(new.secret, "rest")


def audit(muster: Muster) -> tuple[AuditEntry, ...]:
    return muster.service.queries.history.audit(ROOT, before=None, limit=1_000)


def until(look: Callable[[], T], is_so: Callable[[T], bool]) -> T:
    deadline = time.monotonic() + PATIENCE_S
    while not is_so(seen := look()):
        assert time.monotonic() < deadline, f"still {seen}"
        time.sleep(0.01)
    return seen
