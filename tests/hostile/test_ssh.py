"""Who logs in to a node lands in their own job there, or is refused. A shell stands for sshd."""

import os
import subprocess
import sys

import pytest

from local.here import Here, Wanted
from muster.model.event import JobStarted
from muster.model.job import Exited

pytestmark = pytest.mark.skipif(os.getuid() != 0, reason="only root moves processes of others")

WAITS = "while ! test -e go; do sleep 0.02; done"


def login(here: Here, user: str, session: str) -> "subprocess.Popen[str]":
    """What sshd does: ask whether the user may come in, and if so run their session."""
    asks = f"{sys.executable} -m muster.backends.local.isolation.ssh {here.home} admin"
    return subprocess.Popen(
        ["/bin/sh", "-c", f"{asks} && {{ {session}; }}"],
        env={**os.environ, "PAM_USER": user},
        stdout=subprocess.PIPE,
        text=True,
    )


def test_a_session_is_in_the_control_groups_of_the_users_newest_job(here: Here) -> None:
    here.work.chmod(0o777)
    for job in (1, 2):
        here.shell(WAITS, Wanted(job=job, user="nobody"))
        here.sees(JobStarted, job)

    with login(here, "nobody", "cat /proc/self/cgroup") as session:
        groups, _ = session.communicate(timeout=20)

    assert session.returncode == 0
    assert "/2.1" in groups
    assert "/1.1" not in groups
    (here.work / "go").touch()
    here.ends(1)
    here.ends(2)


def test_a_session_ends_with_its_job(here: Here) -> None:
    here.work.chmod(0o777)
    here.shell(WAITS, Wanted(user="nobody"))
    here.sees(JobStarted)

    with login(here, "nobody", f"touch {here.work}/in; exec sleep 600") as session:
        here.until((here.work / "in").exists)
        (here.work / "go").touch()
        assert here.ends().why == Exited(code=0)
        assert session.wait(timeout=20) != 0


@pytest.mark.parametrize("user", ["daemon", "", "nobody-of-that-name"])
def test_who_has_no_job_here_is_refused(here: Here, user: str) -> None:
    here.work.chmod(0o777)
    here.shell(WAITS, Wanted(user="nobody"))
    here.sees(JobStarted)

    with login(here, user, "echo in") as session:
        said, _ = session.communicate(timeout=20)

    assert session.returncode == 1
    assert said == "You have no job that runs on this node; start one first.\n"
    (here.work / "go").touch()
    here.ends()


def test_who_had_a_job_is_refused_when_it_is_over(here: Here) -> None:
    here.shell("true", Wanted(user="nobody"))
    here.ends()

    with login(here, "nobody", "echo in") as session:
        said, _ = session.communicate(timeout=20)

    assert "in" not in said.split()
    assert session.returncode == 1


@pytest.mark.parametrize("user", ["root", "admin"])
def test_root_and_those_who_are_named_are_let_in(here: Here, user: str) -> None:
    with login(here, user, "echo in") as session:
        said, _ = session.communicate(timeout=20)

    assert (said, session.returncode) == ("in\n", 0)
