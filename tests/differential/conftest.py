"""Both systems for the whole run: each plays the sessions once, in order, and the tests compare."""

import dataclasses
import os
import shutil
import tempfile
from collections.abc import Generator, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest

from bench.slurm.configuring import Look
from bench.slurm.installing import NoSlurmError, missing
from bench.slurm.lab import laboratory
from differential import sessions
from differential.scenario import prepare
from differential.side import Side
from doors.slurm.house import house
from muster.model.value import replace

RECORD = "RECORD_SLURM"
"""With this variable set, what the real Slurm says becomes what is expected of Muster."""

Answers = dict[str, str]
"""By the id of the case."""

LOOK = Look(
    cluster="local",
    partition="local",
    node="pretend",
    shape=(
        "CPUs=64 Boards=1 SocketsPerBoard=1 CoresPerSocket=64 ThreadsPerCore=1 RealMemory=524288"
        " Feature=gpu.model=A100-40GB,muster/pretend"
    ),
    settings={
        "MinJobAge": 36_000,
        # Muster refuses what can never run, and accounts and classes that do not exist.
        "EnforcePartLimits": "ALL",
        "AccountingStorageEnforce": "associations,limits,qos",
        "SchedulerParameters": "batch_sched_delay=0,sched_interval=1,bf_interval=1",
        # What Muster keeps of every job.
        "AccountingStoreFlags": "job_comment,job_env,job_script",
    },
)
"""Slurm is made to look like Muster with pretend nodes, so that what differs is a difference."""

FAIR = replace(
    LOOK,
    settings={
        **LOOK.settings,
        "PriorityType": "priority/multifactor",
        "PriorityWeightAge": 1_000_000,
        "PriorityWeightAssoc": 1_000_000,
        "PriorityWeightFairshare": 4_000_000,
        "PriorityWeightQOS": 10_000_000,
    },
)
"""The same with the order of jobs that the site below asks for. Else Slurm takes them as they
come, as tests can."""

LOOKS = {"15-shares": FAIR}
"""Sessions that are not played on the usual Slurm."""

SITE = """\
pools: {local: {cluster: local, default_time: 1h}}
queues: {root: {}}
classes: {normal: {}}
default_queue: root
policy: {order: {short: 0, age_full: 7d}}
"""
"""Slurm knows nothing of what jobs are expected to take, and counts age by weeks."""


STRANGER = "nobody"
"""Somebody to whom none of the jobs belong: `stranger COMMAND` is run as this user."""


MAIL_PROGRAM = """\
#!/bin/sh
env > "{mails}/$3 $SLURM_JOB_MAIL_TYPE"
echo "$2" >> "{mails}/$3"
"""


@pytest.fixture(scope="session")
def ours(request: pytest.FixtureRequest) -> Iterator[Answers]:
    """What Muster answers."""
    with house(nodes=4, gpus="8xA100-40GB", rules=SITE) as found:
        found.muster("down")
        found.muster("up", "--mail-program", _mail_program(found.root))
        side = _side("muster", found.root, found.environ)
        key = found.muster("tokens", "create", "--user", STRANGER, "--role", "user", "-o", "name")
        side.has_tool("stranger", f'MUSTER_TOKEN={key.strip()} exec "$@"')
        yield _played(side, _chosen(request))


@pytest.fixture(scope="session")
def theirs(request: pytest.FixtureRequest) -> Answers:
    """What a real Slurm answers."""
    answers: Answers = {}
    for look in (LOOK, FAIR):
        names = [name for name in _chosen(request) if LOOKS.get(name, LOOK) is look]
        if names:
            with _real_slurm(look) as side:
                answers |= _played(side, names)
    if os.environ.get(RECORD):
        _record(answers)
    return answers


@contextmanager
def _real_slurm(look: Look) -> Generator[Side]:
    if lacking := missing():
        pytest.skip(f"no real Slurm here ({', '.join(lacking)}): run tests/differential/install.sh")
    if os.geteuid() != 0:
        pytest.skip("a real Slurm is started by root alone")
    root = Path(tempfile.mkdtemp(prefix="slurm-muster-"))
    try:
        # The stranger too works there.
        root.chmod(0o755)
        (root / "work").mkdir()
        look = replace(look, settings={**look.settings, "MailProg": _mail_program(root)})
        with laboratory(nodes=4, gpus_per_node=8, look=look, rest=False) as lab:
            side = _side("slurm", root, lab.environ)
            as_stranger = f"setpriv --reuid={STRANGER} --regid=nogroup --clear-groups"
            side.has_tool("stranger", f'exec {as_stranger} "$@"')
            yield side
    except NoSlurmError as error:
        pytest.skip(f"a real Slurm does not start here: {error}")
    finally:
        shutil.rmtree(root, ignore_errors=True)


def _side(name: str, root: Path, environ: Mapping[str, str]) -> Side:
    return Side(name=name, root=root, environ={**environ, "MAILS": str(root / "mails")})


def _mail_program(root: Path) -> str:
    """It writes down what it was given, where `mails` of our tools reads it."""
    (root / "mails").mkdir()
    path = root / "mail"
    path.write_text(MAIL_PROGRAM.format(mails=root / "mails"), encoding="utf-8")
    path.chmod(0o755)
    return str(path)


def _played(side: Side, names: Iterable[str]) -> Answers:
    prepare(side)
    cases = (case for name in names for case in sessions.read(name))
    return {case.id: side.answered(case) for case in cases}


def _chosen(request: pytest.FixtureRequest) -> list[str]:
    """The sessions of which a test was asked for: one alone need not wait for all."""
    calls = (getattr(item, "callspec", None) for item in request.session.items)
    # Others' tests have cases of their own.
    cases = (call.params.get("case") for call in calls if call)
    wanted = {case.session for case in cases if isinstance(case, sessions.Case)}
    return [name for name in sessions.names() if name in wanted]


def _record(answers: Answers) -> None:
    for name in sessions.names():
        cases = sessions.read(name)
        if all(case.id in answers for case in cases):
            sessions.write(
                name, [dataclasses.replace(case, answer=answers[case.id]) for case in cases]
            )
