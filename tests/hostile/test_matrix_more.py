"""Who sees what a job is and writes, who is its user, and who changes the rules: every combination.

The same people, doors and jobs as in `test_matrix`. What is shown is judged by words that only the
job has; what is changed, by its effect; what takes a job that runs, by whether it was refused.
"""

from collections.abc import Callable, Iterator
from itertools import product
from pathlib import Path

import pytest
from websockets.exceptions import ConnectionClosed

from hostile.people import PATIENCE_S, ROOT, spec, until
from hostile.test_matrix import DOORS, LATER, OWNERS, QUEUES, WHO, Case, Person, people
from muster import Client
from muster.api.alerts import SilenceAsked
from muster.api.pages import RehearsalAsked
from muster.api.site import QuotaAsked
from muster.app.parts import Muster
from muster.model.cluster import NodeState
from muster.model.launch import Launch
from muster.model.site import Site
from muster.model.value import JobId, QueuePath

__all__ = ["people"]

HIDDEN = "hidden-value"
FOLDER = "/srv/nowhere-else"
MORE, SAME = "\n  another: {}", "same.yaml"
SHOWN = ("environment", "command", "folder")
TAKES_A_RUNNING_JOB = ("logs", "usage", "requeue", "suspend", "resume", "signal")
AS_ITS_USER = ("attach", "steps", "send files")
OF_RULES = ("quota", "rules", "same rules", "silence", "undrain", "grant", "reserve", "rehearse")
REFUSED = (
    "belongs to",
    "takes the role",
    "denied",
    "Invalid user id",
    "cannot submit",
    "privilege",
)
NOWHERE = {
    # What no command of this door can do or show.
    ("environment", "slurm"),
    ("logs", "slurm"),
    ("usage", "slurm"),
    ("attach", "slurm"),
    ("attach", "cli"),
    ("steps", "rest"),
    ("steps", "cli"),
    ("send files", "rest"),
    ("send files", "cli"),
    ("silence", "slurm"),
    ("rehearse", "slurm"),
    ("grant", "rest"),
    ("grant", "cli"),
    ("reserve", "rest"),
    ("reserve", "cli"),
}
"""`muster attach` needs a terminal, and sits down at the same socket as a client of REST."""


def may(who: str, action: str, queue: str, owner: str) -> bool:
    """The rights, written down a second time and independently of the code."""
    if who == "root":
        return True
    cares = who == "admin" or (who == "boss" and queue.startswith("a"))
    match action:
        case "environment" | "command" | "attach" | "steps" | "send files":
            return who == owner
        case "folder" | "logs" | "usage" | "requeue" | "suspend" | "resume" | "signal":
            return who == owner or cares
        case "rehearse":
            return who in {"admin", "owner", "other"} or cares
        case "quota" | "silence":
            return cares
        case "same rules":
            # Whether it changes something is known only after it was read.
            return who in {"admin", "boss"}
        case "rules" | "undrain" | "grant" | "reserve":
            return who == "admin"
        case _:
            raise AssertionError(action)


def slurms(case: Case, action: str) -> tuple[str, ...]:
    job, queue = str(case.job), case.queue
    lines: dict[str, tuple[str, ...]] = {
        "command": ("sacct", "-j", job, "-o", "JobID,SubmitLine%100"),
        "folder": ("scontrol", "show", "job", job),
        "requeue": ("scontrol", "requeue", job),
        "suspend": ("scontrol", "suspend", job),
        "resume": ("scontrol", "resume", job),
        "signal": ("scancel", "-s", "USR1", job),
        "steps": ("srun", "--jobid", job, "hostname"),
        "send files": ("sbcast", "--jobid", job, "/etc/hostname", "/tmp/x"),
        "quota": ("sacctmgr", "-i", "modify", "account", queue, "set", "GrpTRES=gres/gpu=3"),
        "rules": ("sacctmgr", "-i", "add", "account", "another"),
        "same rules": ("sacctmgr", "-i", "modify", "user", "viewer", "set", "adminlevel=none"),
        "grant": ("sacctmgr", "-i", "modify", "user", "viewer", "set", "adminlevel=admin"),
        "undrain": ("scontrol", "update", "nodename=pretend1", "state=resume"),
        "reserve": (
            "scontrol",
            "create",
            "reservation",
            "reservationname=mine",
            "user=root",
            "starttime=2040-01-01T00:00:00",
            "duration=60",
            "nodes=pretend1",
        ),
    }
    return lines[action]


def clis(case: Case, action: str, rules: str) -> tuple[str, ...]:
    job, queue = str(case.job), case.queue
    shows = ("show", job, "-o", "json")
    lines: dict[str, tuple[str, ...]] = {
        **dict.fromkeys(SHOWN, shows),
        "logs": ("logs", job),
        "usage": ("diagnose", job),
        "requeue": ("requeue", job),
        "suspend": ("suspend", job),
        "resume": ("resume", job),
        "signal": ("cancel", "--signal", "USR1", job),
        "quota": ("quota", "set", queue, "--pool", "local", "--limit", "3"),
        "rules": ("apply", "-f", rules),
        "same rules": ("apply", "-f", str(Path(rules).with_name(SAME))),
        "silence": ("silence", "add", "alertname=x", "--queue", queue, "--for", "1h", "--why", "y"),
        "undrain": ("resume", "pretend1"),
        "rehearse": ("whatif", "submit", "--queue", queue, "--cpus", "0.1", "--", "true"),
    }
    return lines[action]


def rests(case: Case, action: str, rules: str) -> Callable[[Client], object]:
    job, queue = case.job, case.queue
    lines: dict[str, Callable[[Client], object]] = {
        **dict.fromkeys(SHOWN, lambda client: client.job(job)),
        "logs": lambda client: list(client.log(job)),
        "usage": lambda client: client.efficiency(job),
        "requeue": lambda client: client.requeue([job]),
        "suspend": lambda client: client.suspend([job]),
        "resume": lambda client: client.resume([job]),
        "signal": lambda client: client.signal([job], "USR1"),
        "attach": lambda client: seated(client, job),
        "quota": lambda client: client.set_quota(QuotaAsked(queue=queue, pool="local", limit="3")),
        "rules": lambda client: client.apply(rules),
        "same rules": lambda client: client.apply(rules.replace(MORE, "")),
        "silence": lambda client: client.make_silence(
            SilenceAsked(tests=("alertname=x",), lasts="1h", comment="y", queue=queue)
        ),
        "undrain": lambda client: client.undrain("pretend1"),
        "rehearse": lambda client: client.rehearse(RehearsalAsked(submit=case.wish)),
    }
    return lines[action]


def seated(client: Client, job: JobId) -> str:
    """What one is told who sits down at its terminal."""
    with client.attach(job) as connection:
        try:
            return repr(connection.recv(PATIENCE_S))
        except ConnectionClosed as closed:
            return closed.rcvd.reason if closed.rcvd is not None else ""


def act(case: Case, action: str, door: str, rules: str) -> str:
    """Try it; what was said."""
    if door == "slurm":
        return case.slurm(*slurms(case, action))
    if door == "cli":
        return case.cli(*clis(case, action, rules))
    return case.rest(rests(case, action, Path(rules).read_text(encoding="utf-8")))


def happened(muster: Muster, action: str, said: str, before: Site) -> bool:
    """Did it really happen, as root sees it?"""
    record = muster.journal.record
    match action:
        case "environment" | "command":
            return HIDDEN in said
        case "folder":
            return FOLDER in said
        case "quota" | "rules" | "grant" | "reserve":
            return record.site != before
        case "silence":
            return bool(silences(muster))
        case "undrain":
            return all(node.state is not NodeState.DRAINING for node in record.nodes.values())
        case _:
            return not any(word in said for word in REFUSED)


@pytest.fixture
def rules(people: dict[str, Person], tmp_path: Path) -> str:
    """The site's file with a class more."""
    text = people["root"].client.site()
    path = tmp_path / "cluster.yaml"
    path.with_name(SAME).write_text(text, encoding="utf-8")
    path.write_text(text.replace("\nclasses:\n", f"\nclasses:{MORE}\n"), encoding="utf-8")
    return str(path)


def target(muster: Muster, queue: str, owner: str) -> JobId:
    launch = Launch(
        script="#!/bin/sh\n",
        workdir=FOLDER,
        stdout="/dev/null",
        env={"KEY": HIDDEN},
        submit_line=f"sbatch --export=KEY={HIDDEN} job.sh",
    )
    wish = spec(owner, queue=QueuePath(queue), launch=launch, begin_at=LATER)
    return muster.service.submit(ROOT, wish).result().jobs[0]


def silences(muster: Muster) -> list[str]:
    return [each.id for each in muster.service.queries.alerts.silences(ROOT)]


def tidied(muster: Muster, before: Site) -> None:
    """As it was, but for the number of the next job."""
    record = muster.journal.record
    for silence in silences(muster):
        muster.service.end_silence(ROOT, silence).result()
    if record.site != before:
        muster.service.apply(ROOT, lambda _: before, describe=lambda _: "").result()
    muster.service.undrain(ROOT, next(iter(record.nodes))).result()
    muster.service.cancel(ROOT, tuple(record.jobs)).result()
    until(lambda: record.jobs, lambda jobs: not jobs)


def cases() -> Iterator[tuple[str, str, str, str, str]]:
    of_jobs = (*SHOWN, *TAKES_A_RUNNING_JOB, *AS_ITS_USER)
    for who, action, queue, door in product(WHO, (*of_jobs, *OF_RULES), QUEUES, DOORS):
        if (action, door) in NOWHERE:
            continue
        for owner in OWNERS if action in of_jobs else OWNERS[:1]:
            yield who, action, queue, door, owner


def test_every_combination_is_as_the_rights_say(
    muster: Muster, people: dict[str, Person], rules: str
) -> None:
    unexpected: list[str] = []
    node = next(iter(muster.journal.record.nodes))
    before = muster.journal.record.site
    for who, action, queue, door, owner in cases():
        job = target(muster, queue, owner)
        if action == "undrain":
            muster.service.drain(ROOT, node, "").result()
        case = Case(muster=muster, person=people[who], job=job, queue=queue)
        said = act(case, action, door, rules)
        is_so = happened(muster, action, said, before)
        if is_so != may(who, action, queue, owner):
            what = f"{who}, {action} of {owner}'s, {queue}, {door}"
            unexpected.append(f"{what}: {is_so}: {said[:160]}")
        tidied(muster, before)

    assert not unexpected, f"{len(unexpected)}\n" + "\n".join(unexpected)
