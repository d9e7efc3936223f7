"""A private queue shows strangers that its jobs exist, and not whose they are or what they are."""

import contextlib
import os
import socket
from collections.abc import Iterator

import pytest

from doors.rest.running import Daemon, as_uid, running, shell
from hostile.people import ADMIN, OTHER, OWNER, ROOT, VIEWER, caller, submitted, until
from muster.app.parts import Muster, clock
from muster.controller.messages import Caller, JobQuery
from muster.doors.rest.app import TABLE
from muster.doors.rest.show_site import event_document
from muster.doors.slurm.answering import answered
from muster.doors.slurm.call import Call, Door, Reply
from muster.model.mail import Mail, Occasion
from muster.model.value import JobId, QueuePath, UserName
from muster.model.words import NO_LABELS
from muster.stores.base import EventQuery, HistoryQuery

NAME = "merger-plans"
LABELS = {"customer": "acme-corp"}
SECRETS = (NAME, "acme-corp", "owner", "owner@example.org", "hidden-value")

INSIDER = caller("insider")
SEES = [ROOT, ADMIN, OWNER, INSIDER, VIEWER]
"""viewer and admin have their roles everywhere, by name."""

STRANGERS = [OTHER, caller("nobody-special")]

LISTINGS = (
    "squeue",
    "squeue -a -l",
    "squeue -O jobid,username:40,name:40,comment:40,account:40,command:90,workdir:90",
    "squeue --json",
    "sacct -a -S now-1days -o ALL -P",
    "sacct -a -S now-1days --json",
    "scontrol show job",
    "scontrol -d show job",
    "sprio -l",
    "sshare -a -l",
    "sinfo -N -l",
    "sdiag",
    "scontrol show node",
    "scontrol show assoc_mgr",
)


@pytest.fixture
def job(muster: Muster) -> Iterator[JobId]:
    mail = Mail(on=(Occasion.END,), to="owner@example.org")
    made = submitted(muster, name=NAME, labels=LABELS, queue=QueuePath("secret/deep"), mail=mail)
    yield made
    muster.service.cancel(ROOT, (made,)).result()
    until(lambda: muster.service.queries.jobs.is_live(made), lambda live: not live)


def slurm(muster: Muster, who: Caller, line: str) -> Reply:
    words = line.split()
    door = Door(service=muster.service, caller=who, now=clock())
    return answered(words[0], Call(form=1, argv=tuple(words[1:])), door)


@pytest.mark.parametrize("who", STRANGERS, ids=lambda who: who.user)
def test_a_stranger_sees_no_names_in_what_is_asked(muster: Muster, job: JobId, who: Caller) -> None:
    queries = muster.service.queries
    seen = (
        queries.jobs.page(who, JobQuery()),
        queries.jobs.detail(who, job),
        queries.jobs.find(who, job),
        tuple(queries.jobs.matching(who, JobQuery())),
        queries.history.events(who, EventQuery(job=job)),
    )

    assert queries.jobs.page(who, JobQuery()).jobs
    for secret in SECRETS:
        assert secret not in repr(seen)


@pytest.mark.parametrize("who", SEES, ids=lambda who: who.user)
@pytest.mark.usefixtures("job")
def test_who_has_a_role_there_sees_them(muster: Muster, who: Caller) -> None:
    found = muster.service.queries.jobs.page(who, JobQuery()).jobs[0].job

    assert (found.spec.name, found.spec.user) == (NAME, "owner")
    assert found.spec.labels == LABELS


@pytest.mark.parametrize(
    "query",
    [JobQuery(users=(UserName("owner"),)), JobQuery(name=NAME)],
)
@pytest.mark.usefixtures("job")
def test_a_filter_finds_nothing_that_is_not_shown(muster: Muster, query: JobQuery) -> None:
    assert muster.service.queries.jobs.page(OTHER, query).jobs == ()
    assert muster.service.queries.jobs.page(OWNER, query).jobs


def test_it_is_the_same_when_the_job_is_over(muster: Muster, job: JobId) -> None:
    queries = muster.service.queries
    muster.service.cancel(OWNER, (job,)).result()
    until(lambda: queries.jobs.is_live(job), lambda live: not live)

    everything = queries.history.jobs(OTHER, HistoryQuery())
    assert job in [each.job.id for each in everything.jobs]
    for secret in SECRETS:
        assert secret not in repr(everything)
        assert secret not in repr(queries.jobs.detail(OTHER, job))
        assert secret not in repr(queries.history.events(OTHER, EventQuery(job=job)))
    assert queries.history.jobs(OTHER, HistoryQuery(users=(UserName("owner"),))).jobs == ()
    assert queries.history.jobs(OTHER, HistoryQuery(name=NAME)).jobs == ()


def test_a_refusal_does_not_say_whose_job_it_is(muster: Muster, job: JobId) -> None:
    outcome = muster.service.cancel(OTHER, (job,)).result()

    assert "owner" not in outcome.failed[job].sentence
    for line in (f"scancel {job}", f"scontrol hold {job}", f"scontrol update jobid={job} name=x"):
        assert "owner" not in slurm(muster, OTHER, line).err


@pytest.mark.parametrize("line", LISTINGS)
@pytest.mark.usefixtures("job")
def test_no_slurm_command_shows_them_to_a_stranger(muster: Muster, line: str) -> None:
    told = slurm(muster, OTHER, line)

    for secret in SECRETS:
        assert secret not in told.out + told.err


@pytest.mark.parametrize("line", LISTINGS)
@pytest.mark.usefixtures("job")
def test_what_was_cached_for_its_user_is_not_shown_to_a_stranger(muster: Muster, line: str) -> None:
    slurm(muster, OWNER, line)
    slurm(muster, ROOT, line)

    told = slurm(muster, OTHER, line)

    for secret in SECRETS:
        assert secret not in told.out + told.err


@pytest.mark.parametrize(
    "line",
    [
        f"squeue -h -o %i -n {NAME}",
        "squeue -h -o %i -u owner",
        "sacct -n -X -a -o JobID -u owner",
    ],
)
@pytest.mark.usefixtures("job")
def test_no_slurm_filter_finds_them(muster: Muster, line: str) -> None:
    assert slurm(muster, OTHER, line).out.split() == []


@pytest.mark.usefixtures("job")
def test_no_event_carries_a_command_line(muster: Muster) -> None:
    for stored in muster.service.queries.history.events(ROOT, EventQuery()):
        assert "hidden-value" not in repr(event_document(stored, NO_LABELS))


# Through the wire, with its caches and streams.

needs_root = pytest.mark.skipif(os.getuid() != 0, reason="only root can be somebody else")

RULES = """
queues:
  default: {}
  secret: {private: true}
classes:
  normal: {}
"""
STRANGER_UID = 65_534


@pytest.fixture(scope="module")
def daemon() -> Iterator[Daemon]:
    with running() as found:
        with found.client() as client:
            client.apply(RULES)
        yield found


def every_answer(daemon: Daemon, job: JobId | int) -> list[bytes]:
    """What everything that can be read answers, by the table of routes."""
    answers: list[bytes] = []
    for each in TABLE:
        if each.method != "GET":
            continue
        path = each.path.replace("{id:int}", str(job)).replace("{path:path}", "secret")
        path = path.replace("{id}", "pretend1")
        asked = f"GET {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n"
        with socket.socket(socket.AF_UNIX) as connection:
            connection.connect(str(daemon.socket))
            # A stream does not end: what comes at once is what was before.
            connection.settimeout(1 if path.endswith("/stream") else 60)
            connection.sendall(asked.encode())
            with contextlib.suppress(TimeoutError):
                while received := connection.recv(1 << 16):
                    answers.append(received)
    return answers


@needs_root
def test_no_route_shows_them_to_a_stranger(daemon: Daemon) -> None:
    with daemon.client() as own:
        document = shell("true", held=True, name=NAME, labels=LABELS, queue="secret")
        job = own.submit_document(document).id
        # The lines of root are cached now.
        assert own.jobs().jobs
        assert own.all_lines()

    def look_around() -> str:
        answered = every_answer(daemon, job)
        with daemon.client() as stranger:
            found = (
                stranger.jobs(),
                list(stranger.all_jobs()),
                stranger.job(job),
                stranger.job_events(job),
                stranger.all_lines(),
                stranger.explain(job),
                stranger.queues(),
                list(stranger.nodes()),
                stranger.status(),
                stranger.cancel([job]),
            )
        return repr((found, answered))

    told = as_uid(STRANGER_UID, look_around)

    assert str(job) in told, told
    assert NAME not in told
    assert "acme-corp" not in told
    assert "'root'" not in told
    with daemon.client() as own:
        assert own.job(job).name == NAME
        own.cancel([job])
