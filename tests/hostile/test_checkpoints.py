"""Where a job says that its checkpoints are, its supervisor looks without coming to harm."""

import os
import time
from pathlib import Path

import pytest

from hostile.sizes import memory_kib
from local.here import Here, Wanted
from muster.backends.base import Stop
from muster.backends.checkpoints import CheckpointPlace, candidates
from muster.model.event import JobCheckpointed, JobStarted
from muster.model.job import Cancelled, Exited, TimedOut
from muster.model.launch import Checkpointing, Launch
from muster.model.value import Duration, JobId, UserName

LOOPS = "mkdir ck; cd ck; for n in $(seq 1 60); do ln -s . $n; done; cd .."
STOP = Stop(job=JobId(1), attempt=1, why=Cancelled(by=UserName("root")), grace=Duration(500))
as_root = pytest.mark.skipif(os.getuid() != 0, reason="only root runs jobs of others")


def looping(text: str, pattern: str = "ck/*/*/*/*/*/*") -> Launch:
    return Launch(argv=("sh", "-c", f"{LOOPS}; {text}"), checkpoint=Checkpointing(path=pattern))


def test_links_that_lead_nowhere_do_not_stop_a_job_from_being_cancelled(here: Here) -> None:
    here.run(looping("touch there; sleep 600"))
    here.until((here.work / "there").exists)
    here.until(lambda: here.heard != [])

    begun = time.monotonic()
    here.backend.do(STOP)

    assert here.ends().why == STOP.why
    assert time.monotonic() - begun < 8
    assert memory_kib(here.spawner()) < 64 << 10


def test_nor_do_they_keep_it_beyond_its_time(here: Here) -> None:
    here.run(looping("trap 'exit 0' TERM; sleep 600 & wait"), Wanted(limit_ms=1_500))

    assert here.ends().why == TimedOut(limit=Duration(1_500))


def test_nor_do_they_fill_the_supervisors_memory(here: Here) -> None:
    here.run(looping("sleep 600"))
    here.sees(JobStarted)
    before = memory_kib(here.supervisor())
    deadline = time.monotonic() + 3

    here.until(lambda: time.monotonic() > deadline)

    assert memory_kib(here.supervisor(), "VmHWM") - before < 16 << 10


@as_root
def test_what_the_user_may_not_see_is_not_seen(here: Here) -> None:
    secret = here.home / "secret"
    secret.mkdir(mode=0o700)
    here.work.chmod(0o777)
    launch = Launch(
        argv=("sh", "-c", "while ! test -e go; do sleep 0.02; done"),
        checkpoint=Checkpointing(path=str(secret / "model.pt")),
    )
    here.run(launch, Wanted(user="nobody"))
    here.sees(JobStarted)

    # The user's own file, written while the job runs, in a folder that they can no longer enter.
    (secret / "model.pt").write_text("weights", encoding="utf-8")
    os.chown(secret / "model.pt", 65_534, -1)
    (here.work / "go").touch()

    assert here.ends().why == Exited(code=0)
    assert [each for each in here.heard if isinstance(each, JobCheckpointed)] == []


@as_root
def test_a_user_still_sees_their_own(here: Here) -> None:
    here.work.chmod(0o777)
    here.run(
        Launch(
            argv=("sh", "-c", "echo weights > model.pt"),
            checkpoint=Checkpointing(path="model.pt"),
        ),
        Wanted(user="nobody"),
    )

    assert here.sees(JobCheckpointed).path == str(here.work / "model.pt")


def test_a_look_ends_after_so_many_names(tmp_path: Path) -> None:
    for number in range(40):
        (tmp_path / str(number)).symlink_to(".")
    place = CheckpointPlace(path=f"{tmp_path}/*/*/*/*/*/*/*/*/*", uid=os.getuid(), since_ms=0)

    begun = time.process_time()
    found = candidates(place)

    assert found == []
    assert time.process_time() - begun < 5


def test_of_very_many_checkpoints_the_newest_few_are_kept(tmp_path: Path) -> None:
    for number in range(300):
        path = tmp_path / f"{number}.pt"
        path.write_text("weights", encoding="utf-8")
        os.utime(path, (1_000 + number, 1_000 + number))
    place = CheckpointPlace(path=f"{tmp_path}/*.pt", uid=os.getuid(), since_ms=0)

    found = candidates(place)

    assert found[0].path == str(tmp_path / "299.pt")
    assert len(found) == 64


def test_a_checkpoint_whose_name_is_no_text_harms_nobody(here: Here) -> None:
    text = "import os\nos.close(os.open(b'model-\\xff.pt', os.O_CREAT | os.O_WRONLY))\n"
    text += "open(b'model-\\xff.pt', 'w').write('weights')\n"

    here.run(
        Launch(argv=("/usr/bin/env", "python3", "-c", text), checkpoint=Checkpointing(path="*.pt"))
    )

    assert here.ends().why == Exited(code=0)
    assert here.sees(JobCheckpointed).path == str(here.work / "model-?.pt")
