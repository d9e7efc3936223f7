"""The keys of people, and of the file as a whole."""

from muster.doors.config.kinds import NAME, QUEUE_PATH, ROLES, SPAN_ABOVE_ZERO, TRUTH, USER, choice
from muster.doors.config.of_classes import CEILING, CLASS
from muster.doors.config.of_machines import POOL, RESERVATION
from muster.doors.config.of_policy import ORDER, POLICY, PREEMPT, SHARE
from muster.doors.config.of_queues import QUEUE, QUOTA
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
from muster.model.site import Role, Site, User
from muster.model.value import UserName

USERS = Section(
    title="Somebody: `users.*`",
    noun="user",
    makes=(User,),
    blank=User(name=UserName("")),
    named="name",
    keys=(
        Key(
            name="roles",
            field="grants",
            shape=Many(each=ROLES),
            meaning="`viewer`, `user`, `queue_admin` or `admin`; for one queue and those below "
            "it with a colon",
            example='["queue_admin:acme/nlp"]',
        ),
        Key(
            name="default_queue",
            shape=QUEUE_PATH,
            optional=True,
            meaning="the queue of jobs that name none",
            example="acme/nlp",
        ),
    ),
)

HISTORY = Section(
    title="What is remembered: `history`",
    noun="history",
    makes=(),
    blank=Site(),
    keys=(
        Key(
            name="keep",
            field="keep_history",
            shape=SPAN_ABOVE_ZERO,
            optional=True,
            meaning="ended jobs and their events are forgotten after this time; `none` keeps them",
            example="90d",
        ),
    ),
)

CONTAINERS = Section(
    title="Images: `containers`",
    noun="containers",
    makes=(),
    blank=Site(),
    keys=(
        Key(
            name="images_on_host",
            shape=TRUTH,
            meaning="where no container tool is found, run the command without its image",
            example="true",
        ),
    ),
)

SITE = Section(
    title="The file",
    noun="site",
    makes=(Site,),
    blank=Site(),
    keys=(
        Key(name="queues", shape=Branches(), meaning="who shares what, as a tree"),
        Key(name="classes", shape=NamedMapping(section=CLASS), meaning="how urgent jobs can be"),
        Key(name="pools", shape=NamedMapping(section=POOL), meaning="nodes of one kind and price"),
        Key(
            name="users",
            shape=NamedMapping(section=USERS, name=USER),
            meaning="people with more, or less, than `everyone` may",
        ),
        Key(
            name="everyone",
            shape=choice(Role),
            meaning="what users of this machine may do who are not listed under `users`",
            example="viewer",
        ),
        Key(
            name="default_queue",
            shape=QUEUE_PATH,
            meaning="the queue of jobs that name none, of users that have none",
            example="acme/nlp",
        ),
        Key(
            name="default_pool",
            shape=NAME,
            optional=True,
            meaning="the pool of jobs that come through Slurm's commands and name no partition",
            example="dgx",
        ),
        Key(name="policy", shape=Inside(section=POLICY), meaning="the rules of choosing"),
        Key(
            name="reservations",
            shape=ValueList(section=RESERVATION),
            meaning="capacity that is kept for a time",
        ),
        Key(name="history", shape=Aside(section=HISTORY), meaning="what is remembered"),
        Key(name="containers", shape=Aside(section=CONTAINERS), meaning="how images are run"),
    ),
)

SECTIONS = (
    SITE,
    QUEUE,
    QUOTA,
    CLASS,
    CEILING,
    POOL,
    USERS,
    POLICY,
    ORDER,
    SHARE,
    PREEMPT,
    RESERVATION,
    HISTORY,
    CONTAINERS,
)
"""All of them, in the order of the reference page."""
