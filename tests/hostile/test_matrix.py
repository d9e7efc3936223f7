"""Who may do what, through which door, to whose job: every combination, and what came of each.

What happened is judged by its effect, as root sees it, and not by what the door said.
"""

import io
from collections.abc import Callable, Iterator
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import product

import pytest

from doors.cli.calling import RememberingDaemon
from hostile.people import ADMIN, BOSS, OTHER, OWNER, ROOT, VIEWER, spec, until
from muster import Client, ClientError
from muster.api.jobs import UpdateDocument
from muster.api.requests import GroupDocument, SubmitDocument
from muster.api.site import TokenAsked
from muster.app.parts import Muster, clock
from muster.controller.messages import Caller
from muster.controller.use_cases.tokens import TokenRequest
from muster.doors.cli.main import main
from muster.doors.cli.screen.screen import Screen
from muster.doors.cli.surroundings import Surroundings
from muster.doors.rest.app import rest_app
from muster.doors.rest.serve import Tcp, serve
from muster.doors.slurm.answering import answered
from muster.doors.slurm.call import Call, Door, Script
from muster.model.cluster import NodeState
from muster.model.job import JobState
from muster.model.launch import Launch
from muster.model.site import Role, Site
from muster.model.value import Duration, Instant, JobId, QueuePath, replace

SECRET = "the-secret-of-the-script"  # noqa: S105 -- it is what must not be seen
NOTED = "written-down"
LATER = Instant(4_000_000_000_000)

PEOPLE: dict[str, Caller] = {
    "root": ROOT,
    "admin": ADMIN,
    "boss": BOSS,
    "owner": OWNER,
    "other": OTHER,
    "viewer": VIEWER,
}
"""boss looks after queue `a`."""

TOKENS = {"owner's viewer token": Role.VIEWER, "owner's token for secret": Role.USER}
WHO = (*PEOPLE, *TOKENS)

QUEUES = ("a/b", "default")
"""Where the owner's job is: with boss, and elsewhere."""

DOORS = ("rest", "cli", "slurm")


OWNERS = ("owner", "other", "root")
"""Whose the job is."""

OF_A_JOB = {"cancel", "hold", "release", "update", "script"}


def may(who: str, action: str, queue: str, owner: str) -> bool:
    """The rights, written down a second time and independently of the code."""
    if who == "root":
        return True
    looks_after = who == "admin" or (who == "boss" and queue.startswith("a"))
    match action:
        case "cancel" | "hold" | "release" | "update":
            return who == owner or looks_after
        case "script":
            return who == owner
        case "submit":
            # A role in one queue is all that boss was given.
            return who in {"admin", "owner", "other"} or (who == "boss" and looks_after)
        case "urgent":
            return looks_after
        case "drain" | "audit":
            return who == "admin"
        case "token for another":
            return False
        case _:
            raise AssertionError(action)


@dataclass(frozen=True, kw_only=True)
class Person:
    """Somebody, as each door knows them: with the same token everywhere."""

    caller: Caller
    client: Client
    connect: Callable[[], Client]


@dataclass(kw_only=True)
class Case:
    """One attempt to do something."""

    muster: Muster
    person: Person
    job: JobId
    queue: str

    def cli(self, *argv: str) -> str:
        around = Surroundings(
            connect=self.person.connect,
            now=lambda: datetime.now(UTC),
            screen=Screen(),
            environ={"PATH": "/bin", "HOME": "/"},
            workdir="/",
        )
        out = io.StringIO()
        with redirect_stdout(out), redirect_stderr(out):
            main(argv, daemon=RememberingDaemon(), surroundings=around)
        return out.getvalue()

    def slurm(self, *argv: str) -> str:
        door = Door(service=self.muster.service, caller=self.person.caller, now=clock())
        script = Script(text="#!/bin/sh\ntrue\n", name="x.sh")
        call = Call(form=1, argv=argv[1:], cwd="/", script=script)
        reply = answered(argv[0], call, door)
        return reply.out + reply.err + repr(reply.then)

    def rest(self, ask: Callable[[Client], object]) -> str:
        try:
            return repr(ask(self.person.client))
        except ClientError as error:
            return str(error)

    @property
    def wish(self) -> SubmitDocument:
        return SubmitDocument(
            name="new", command=("true",), queue=self.queue, groups=(GroupDocument(cpus=0.1),),
            held=True, workdir="/",
        )  # fmt: skip


def act(case: Case, action: str, door: str) -> str:
    """Try it; what was said."""
    job, queue = str(case.job), case.queue
    slurm: dict[str, tuple[str, ...]] = {
        "cancel": ("scancel", job),
        "hold": ("scontrol", "hold", job),
        "release": ("scontrol", "release", job),
        "update": ("scontrol", "update", f"jobid={job}", "name=changed"),
        "script": ("scontrol", "write", "batch_script", job, "-"),
        "submit": ("sbatch", "--hold", "-n1", "-A", queue, "x.sh"),
        "urgent": ("sbatch", "--hold", "-n1", "-A", queue, "--qos=high", "x.sh"),
        "drain": ("scontrol", "update", "nodename=pretend1", "state=drain", "reason=mine"),
        "audit": ("sacctmgr", "-n", "show", "transactions"),
        "token for another": ("scontrol", "token", "username=grace", "lifespan=60"),
    }
    line = ("submit", "--hold", "--queue", queue, "--cpus", "1", "--name", "new")
    cli: dict[str, tuple[str, ...]] = {
        "cancel": ("cancel", job),
        "hold": ("hold", job),
        "release": ("release", job),
        "update": ("update", job, "--name", "changed"),
        "script": ("show", job, "-o", "json"),
        "submit": (*line, "--", "true"),
        "urgent": (*line, "--class", "high", "--", "true"),
        "drain": ("drain", "pretend1", "--reason", "mine"),
        "audit": ("audit", "-o", "json"),
        "token for another": ("tokens", "create", "--user", "grace", "--role", "viewer"),
    }
    rest: dict[str, Callable[[Client], object]] = {
        "cancel": lambda client: client.cancel([case.job]),
        "hold": lambda client: client.hold([case.job]),
        "release": lambda client: client.release([case.job]),
        "update": lambda client: client.update(case.job, UpdateDocument(name="changed")),
        "script": lambda client: client.job(case.job),
        "submit": lambda client: client.submit_document(case.wish),
        "urgent": lambda client: client.submit_document(_urgent(case.wish)),
        "drain": lambda client: client.drain("pretend1", "mine"),
        "audit": lambda client: client.audit(),
        "token for another": lambda client: client.make_token(
            TokenAsked(user="grace", role="viewer", lifetime="1h")
        ),
    }
    if door == "slurm":
        return case.slurm(*slurm[action])
    return case.rest(rest[action]) if door == "rest" else case.cli(*cli[action])


def _urgent(wish: SubmitDocument) -> SubmitDocument:
    return replace(wish, job_class="high")


def happened(muster: Muster, case: Case, action: str, said: str, before: tuple[int, int]) -> bool:
    """Did it really happen, as root sees it?"""
    record = muster.journal.record
    job = record.jobs.get(case.job)
    match action:
        case "cancel":
            return job is None
        case "hold":
            return job is not None and job.state is JobState.HELD
        case "release":
            return job is not None and job.state is JobState.PENDING
        case "update":
            return job is not None and job.spec.name == "changed"
        case "script":
            return SECRET in said
        case "submit" | "urgent":
            return record.next_job > before[0]
        case "drain":
            return any(node.state is NodeState.DRAINING for node in record.nodes.values())
        case "audit":
            # Slurm shows changes of the rules; the others all that is new.
            return NOTED in said or "subject" in said
        case "token for another":
            return len(record.tokens) > before[1]
        case _:
            raise AssertionError(action)


ACTIONS = (
    "cancel",
    "hold",
    "release",
    "update",
    "script",
    "submit",
    "urgent",
    "drain",
    "audit",
    "token for another",
)


@pytest.fixture(scope="module")
def people(muster: Muster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Person]]:
    """Each of them over TCP with a token; root is at the socket."""
    path = tmp_path_factory.mktemp("doors") / "s"
    serving = serve(rest_app(muster.service, clock), path=path, tcp=Tcp(host="127.0.0.1", port=0))
    url = f"http://127.0.0.1:{serving.port}"
    found = {who: _person(muster, who, url) for who in WHO if who != "root"}
    found["root"] = Person(
        caller=ROOT, client=Client(f"unix:{path}"), connect=lambda: Client(f"unix:{path}")
    )
    # Something that only the audit log has.
    muster.service.apply(ROOT, _changed, describe=lambda _: NOTED).result()
    yield found
    for each in found.values():
        each.client.close()
    serving.close()


def _changed(site: Site) -> Site:
    return replace(site, images_on_host=not site.images_on_host)


def _person(muster: Muster, who: str, url: str) -> Person:
    name = who.partition("'")[0]
    role = TOKENS.get(who, Role.ADMIN)
    queue = QueuePath("secret") if "for secret" in who else None
    wish = TokenRequest(
        user=PEOPLE[name].user, role=role, queue=queue, lifetime=Duration(3_600_000)
    )
    secret = muster.service.make_token(ROOT, wish).result().secret
    return Person(
        caller=muster.service.queries.people.caller_of(secret, "slurm"),
        client=Client(url, token=secret),
        connect=lambda: Client(url, token=secret),
    )


def _target(muster: Muster, action: str, queue: str, owner: str) -> JobId:
    launch = Launch(script=f"#!/bin/sh\n# {SECRET}\n", workdir="/", stdout="/dev/null")
    wish = spec(owner, queue=QueuePath(queue), launch=launch, begin_at=LATER)
    held = action in {"release", "cancel"}
    return muster.service.submit(ROOT, wish, held=held).result().jobs[0]


def test_every_combination_is_as_the_rights_say(muster: Muster, people: dict[str, Person]) -> None:
    unexpected: list[str] = []
    for who, action, queue, door, owner in product(WHO, ACTIONS, QUEUES, DOORS, OWNERS):
        if action not in OF_A_JOB and owner != OWNERS[0]:
            continue
        job = _target(muster, action, queue, owner)
        case = Case(muster=muster, person=people[who], job=job, queue=queue)
        before = (muster.journal.record.next_job, len(muster.journal.record.tokens))
        said = act(case, action, door)
        is_so = happened(muster, case, action, said, before)
        if is_so != may(who, action, queue, owner):
            what = f"{who}, {action} of {owner}'s, {queue}, {door}"
            unexpected.append(f"{what}: {is_so}: {said[:160]}")
        muster.service.undrain(ROOT, next(iter(muster.journal.record.nodes))).result()
        muster.service.cancel(ROOT, tuple(muster.journal.record.jobs)).result()

    until(lambda: muster.journal.record.jobs, lambda jobs: not jobs)
    assert not unexpected, "\n".join(unexpected)
