"""What keeps a job to itself: processes, memory, privileges, and a /tmp of its own."""

import json
import os
import signal
import subprocess
from pathlib import Path

import pytest

from local.asker import Asker
from local.here import Here, Wanted
from muster.backends.base import Stop
from muster.model.event import JobStarted
from muster.model.job import Cancelled, Exited, LaunchFailed, OutOfMemory
from muster.model.launch import Launch
from muster.model.site import SHARED_TMP, Confinement
from muster.model.value import Duration, JobId, UserName, replace

pytestmark = pytest.mark.skipif(os.getuid() != 0, reason="only root confines jobs of others")

PRIVATE = Confinement()
BY_NOBODY = Wanted(user="nobody", confinement=PRIVATE)
STOP = Stop(job=JobId(1), attempt=1, why=Cancelled(by=UserName("root")), grace=Duration(100))


@pytest.fixture
def open_here(here: Here) -> Here:
    """Everybody may write where the jobs run."""
    here.work.chmod(0o777)
    return here


def private_tmp(here: Here) -> Path:
    """What is behind the /tmp of the first job."""
    written = json.loads((here.folder() / "private-tmp.json").read_text(encoding="utf-8"))
    return Path(written["folder"])


def test_what_a_job_puts_into_tmp_is_seen_by_no_other_and_goes_with_it(open_here: Here) -> None:
    here, name = open_here, f"muster-mine-{os.getpid()}"
    waits = "while ! test -e go; do sleep 0.02; done"

    here.shell(f"echo x | tee /tmp/{name} > /dev/shm/{name}; touch there; {waits}", BY_NOBODY)
    here.until((here.work / "there").exists)
    here.shell(f"cat /tmp/{name} /dev/shm/{name}", replace(BY_NOBODY, job=2))

    assert here.ends(2).why == Exited(code=1)
    assert not Path("/tmp", name).exists()
    assert not Path("/dev/shm", name).exists()
    (here.work / "go").touch()
    assert here.ends(1).why == Exited(code=0)
    open_here.until_gone(lambda: not private_tmp(open_here).exists())


def test_who_looks_for_a_command_of_the_other_tmp_learns_why_it_is_not_there(
    open_here: Here, tmp_path: Path
) -> None:
    command = tmp_path / "command"
    command.write_text("#!/bin/sh\n", encoding="utf-8")

    open_here.run(Launch(argv=(str(command),)), BY_NOBODY)

    why = open_here.ends().why
    assert isinstance(why, LaunchFailed)
    assert "a job has a /tmp and a /dev/shm of its own" in why.text


def test_the_working_folder_and_the_output_are_where_they_were(open_here: Here) -> None:
    """Even in /tmp: in these tests everything is there."""
    launch = Launch(argv=("sh", "-c", "pwd; touch made"), stdout="out")

    open_here.run(launch, BY_NOBODY)

    assert open_here.ends().why == Exited(code=0)
    assert open_here.text("out") == f"{open_here.work}\n"
    assert (open_here.work / "made").owner() == "nobody"


def test_a_script_is_found_by_its_interpreter(open_here: Here) -> None:
    open_here.run(Launch(script="#!/bin/sh\necho $1\n", argv=("one",), stdout="out"), BY_NOBODY)

    assert open_here.ends().why == Exited(code=0)
    assert open_here.text("out") == "one\n"


def test_steps_are_in_the_same_tmp(open_here: Here) -> None:
    here = open_here
    here.shell("mkdir /tmp/inside; touch there; while ! test -e go; do sleep 0.02; done", BY_NOBODY)
    here.until((here.work / "there").exists)

    with Asker(here.folder()) as asker:
        asker.wants()
        asker.hears("created")
        asker.launches("/bin/sh", "-c", "test $(pwd) = /tmp/inside", cwd=Path("/tmp/inside"))
        assert asker.hears("exited")["status"] == 0
    (here.work / "go").touch()
    assert here.ends().why == Exited(code=0)


def test_no_private_tmp_is_left_when_a_supervisor_dies(open_here: Here) -> None:
    open_here.shell("sleep 600", BY_NOBODY)
    open_here.sees(JobStarted)

    open_here.kill_supervisor()

    open_here.ends()
    open_here.until_gone(lambda: not private_tmp(open_here).exists())


def test_a_tree_of_any_depth_is_removed(open_here: Here) -> None:
    deep = "import os\nos.chdir('/tmp')\nfor _ in range(1100): os.mkdir('d'); os.chdir('d')\n"

    open_here.python(deep, BY_NOBODY)

    assert open_here.ends().why == Exited(code=0)
    open_here.until_gone(lambda: not private_tmp(open_here).exists())


def test_a_link_in_the_private_tmp_takes_nothing_else_with_it(open_here: Here) -> None:
    precious = open_here.work / "precious"
    precious.mkdir()
    (precious / "file").touch()

    open_here.shell(f"ln -s {precious} /tmp/link; ln -s / /tmp/root", BY_NOBODY)

    assert open_here.ends().why == Exited(code=0)
    assert (precious / "file").exists()


def test_a_site_can_leave_tmp_shared(open_here: Here) -> None:
    name = f"/tmp/muster-shared-{os.getpid()}"

    open_here.shell(f"touch {name}", Wanted(user="nobody", confinement=SHARED_TMP))

    assert open_here.ends().why == Exited(code=0)
    Path(name).unlink()


@pytest.mark.parametrize(("allowed", "told"), [(False, "1"), (True, "0")])
def test_no_program_makes_a_job_more_than_its_user(
    open_here: Here, allowed: bool, told: str
) -> None:
    launch = Launch(argv=("grep", "NoNewPrivs", "/proc/self/status"), stdout="out")

    open_here.run(launch, replace(BY_NOBODY, confinement=Confinement(new_privileges=allowed)))

    assert open_here.ends().why == Exited(code=0)
    assert open_here.text("out").split() == ["NoNewPrivs:", told]


def test_a_set_user_id_program_stays_the_user(open_here: Here) -> None:
    program = open_here.home / "become"
    subprocess.run(["/bin/cp", "/usr/bin/id", program], check=True)
    program.chmod(0o4755)

    open_here.run(Launch(argv=(str(program), "-u"), stdout="out"), BY_NOBODY)

    assert open_here.ends().why == Exited(code=0)
    assert open_here.text("out") != "0\n"


def test_a_fork_bomb_ends_at_its_limit(open_here: Here) -> None:
    bomb = (
        "import os, time\n"
        "count = 0\n"
        "try:\n"
        "    while count < 500:\n"
        "        if os.fork() == 0:\n"
        "            time.sleep(600)\n"
        "        count += 1\n"
        "except BlockingIOError:\n"
        "    pass\n"
        "open('count', 'w').write(str(count) + '\\n')\n"
    )

    open_here.python(bomb, replace(BY_NOBODY, confinement=Confinement(processes=40)))

    assert open_here.pid_in("count") < 40
    assert open_here.ends().why == Exited(code=0)


def test_a_job_at_its_limit_of_processes_can_still_be_cancelled(open_here: Here) -> None:
    open_here.shell(
        # A shell that cannot fork ends; the one outside goes on without forking.
        "touch there; (while true; do sleep 600 & done); exec sleep 600",
        replace(BY_NOBODY, confinement=Confinement(processes=40)),
    )
    open_here.until((open_here.work / "there").exists)

    open_here.backend.do(STOP)

    assert open_here.ends().why == STOP.why


def test_a_job_that_asks_for_no_memory_has_a_limit_too(open_here: Here) -> None:
    rules = Confinement(memory_per_cpu_mib=600)
    hungry = "import sys\nheld = []\nwhile True: held.append(bytearray(16 << 20))\n"

    open_here.python(hungry, Wanted(user="nobody", cpu_milli=1_000, confinement=rules))

    assert isinstance(open_here.ends().why, OutOfMemory)


def test_what_a_job_keeps_in_its_shared_memory_counts(open_here: Here) -> None:
    rules = Confinement(memory_per_cpu_mib=600)

    open_here.shell(
        "head -c 900000000 /dev/zero > /dev/shm/large",
        Wanted(user="nobody", cpu_milli=1_000, confinement=rules),
    )

    why = open_here.ends().why
    assert why != Exited(code=0)


def test_processes_that_escape_into_sessions_of_their_own_are_ended(open_here: Here) -> None:
    open_here.shell("setsid nohup sleep 600 & echo $! > pid; exec sleep 600", BY_NOBODY)
    pid = open_here.pid_in("pid")

    open_here.backend.do(STOP)

    assert open_here.ends().why == STOP.why
    with pytest.raises(ProcessLookupError):
        os.kill(pid, signal.SIGCONT)


HUNGRY = (
    "import os\n"
    "if os.environ['MUSTER_RANK'] == '1':\n"
    "    held = bytearray(300 << 20)\n"
    "open('done-' + os.environ['MUSTER_RANK'], 'w')\n"
)
HUNGRY_STEP = "held = bytearray(300 << 20); open('done-step', 'w')"
WAITS_TO_GO = "while ! test -e go; do sleep 0.02; done"


def test_each_task_has_its_own_part_of_the_memory(open_here: Here) -> None:
    """The second task may not use what the first one leaves."""
    open_here.python(HUNGRY, Wanted(user="nobody", tasks=2, memory_mib=200))

    assert isinstance(open_here.ends().why, OutOfMemory)
    assert not (open_here.work / "done-1").exists()


def test_tasks_within_their_parts_run(open_here: Here) -> None:
    open_here.python(HUNGRY, Wanted(user="nobody", tasks=2, memory_mib=400))

    assert open_here.ends().why == Exited(code=0)


def test_a_step_has_its_own_part_and_the_job_goes_on(open_here: Here) -> None:
    here = open_here
    here.shell(WAITS_TO_GO, Wanted(user="nobody", memory_mib=1_000))
    here.sees(JobStarted)

    with Asker(here.folder()) as asker:
        asker.wants(memory_mib=100)
        asker.hears("created")
        python = "/usr/bin/env", "python3", "-c", HUNGRY_STEP
        asker.launches(*python, cwd=here.work)
        assert asker.hears("exited")["status"] != 0
        asker.hears("over")
    with Asker(here.folder()) as asker:
        asker.wants(memory_mib=600)
        asker.hears("created")
        asker.launches(*python, cwd=here.work)
        assert asker.hears("exited")["status"] == 0
        asker.hears("over")

    assert (here.work / "done-step").exists()
    (here.work / "go").touch()
    here.ends()
