"""What a job wrote is opened with the rights of its user, and nothing else is said of the files."""

import os
import threading
from pathlib import Path

import pytest

from local.here import Here, Wanted, run_of
from muster.backends.base import OutputQuery, Run
from muster.backends.local.isolation.users import local_user, opening_as
from muster.model.errors import UnknownError
from muster.model.launch import Launch

pytestmark = pytest.mark.skipif(os.getuid() != 0, reason="only root opens files as somebody else")


def answer(here: Here, path: Path) -> str:
    """What a user reads who says that their output is there."""
    run = run_of(Launch(argv=("true",), stdout=str(path), workdir="/"), Wanted(user="nobody"))
    try:
        return here.backend.output(query(run)).content.decode()
    except UnknownError as error:
        return str(error).replace(str(path), "THERE")


def query(run: Run) -> OutputQuery:
    return OutputQuery(job=run.job, launch=run.launch, attempt=1, nodes=())


@pytest.fixture
def secrets(home: Path) -> Path:
    """A folder of root's with everything in it that a user would like to know of."""
    folder = home / "secrets"
    folder.mkdir(mode=0o700)
    (folder / "file").write_text("secret", encoding="utf-8")
    (folder / "folder").mkdir()
    os.mkfifo(folder / "pipe")
    # A file of the user's own, where they could not have put it, nor read it now.
    (folder / "moved").write_text("mine", encoding="utf-8")
    os.chown(folder / "moved", 65_534, -1)
    return folder


def test_the_answer_is_the_same_whether_or_not_there_is_a_file(here: Here, secrets: Path) -> None:
    named = ("file", "folder", "pipe", "moved", "missing", "missing/deeper", "file/deeper")

    answers = {answer(here, secrets / name) for name in named}
    answers.add(answer(here, Path("/nonexistent/file")))

    assert len(answers) == 1
    assert "secret" not in answers.pop().replace("secrets", "")


def test_a_link_of_the_users_leads_no_further_than_the_user_could_go(
    here: Here, secrets: Path
) -> None:
    here.work.chmod(0o777)
    (here.work / "way").symlink_to(secrets)

    assert "mine" not in answer(here, here.work / "way" / "moved")
    assert answer(here, here.work / "way" / "moved") == answer(here, secrets / "missing")


def test_what_the_user_wrote_is_shown(here: Here) -> None:
    here.work.chmod(0o777)
    (here.work / "out").write_text("hello", encoding="utf-8")
    os.chown(here.work / "out", 65_534, -1)
    (here.work / "out").chmod(0o600)

    assert answer(here, here.work / "out") == "hello"


def test_only_the_thread_that_reads_has_the_users_rights(secrets: Path) -> None:
    found: list[str] = []
    is_inside, may_leave = threading.Event(), threading.Event()

    def reads() -> None:
        with opening_as(local_user("nobody")):
            is_inside.set()
            may_leave.wait(10)
            try:
                (secrets / "file").read_text(encoding="utf-8")
            except PermissionError:
                found.append("denied")

    thread = threading.Thread(target=reads)
    thread.start()
    is_inside.wait(10)
    meanwhile = (secrets / "file").read_text(encoding="utf-8")
    may_leave.set()
    thread.join()

    assert (found, meanwhile) == (["denied"], "secret")
    assert os.getgroups() == sorted(os.getgroups())
    assert (secrets / "file").read_text(encoding="utf-8") == "secret"
