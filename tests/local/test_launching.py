import os
from pathlib import Path

import pytest

from local.here import Here, Wanted, is_gone
from muster.backends.base import OutputQuery, Run
from muster.model.errors import UnknownError
from muster.model.event import ClusterSeen, JobStarted, NodeSeen
from muster.model.job import Exited, LaunchFailed, Signaled
from muster.model.launch import Launch, Runs
from muster.model.value import NodeId

AS_ROOT = pytest.mark.skipif(os.getuid() != 0, reason="only root can become another user")


def asked(run: Run, **more: int | bool) -> OutputQuery:
    return OutputQuery(
        job=run.job,
        launch=run.launch,
        attempt=run.allocation.attempt,
        nodes=(NodeId("n1"),),
        **more,  # type: ignore[arg-type]
    )


def test_a_command_runs_and_its_output_can_be_read(here: Here) -> None:
    run = here.shell("echo hello; echo trouble >&2")

    ended = here.ends()

    assert ended.why == Exited(code=0)
    assert ended.used is not None
    output = here.backend.output(asked(run))
    assert output.content == b"hello\ntrouble\n"
    assert output.where == str(here.work / "muster-1.out")
    assert here.backend.output(asked(run, offset=output.next)).content == b""
    assert here.backend.output(asked(run, offset=-8)).content == b"trouble\n"


def test_the_cluster_and_its_nodes_are_reported_once(here: Here) -> None:
    here.shell("true")

    here.ends()

    kinds = [type(event) for event in here.heard]
    assert kinds.count(ClusterSeen) == 1
    assert kinds.count(NodeSeen) == 1


def test_a_job_is_started_before_it_ends(here: Here) -> None:
    here.shell("true")

    ended = here.ends()

    started = here.sees(JobStarted)
    assert here.heard.index(started) < here.heard.index(ended)
    assert started.at <= ended.at


def test_a_script_gets_its_arguments(here: Here) -> None:
    here.run(Launch(script='#!/bin/sh\necho "$1-$2"\n', argv=("one", "two words"), stdout="out"))

    here.ends()

    assert here.text("out") == "one-two words\n"


@pytest.mark.parametrize("code", [1, 3, 255])
def test_an_exit_code_is_reported(here: Here, code: int) -> None:
    here.shell(f"exit {code}")

    assert here.ends().why == Exited(code=code)


def test_a_signal_that_nobody_of_ours_sent_is_reported(here: Here) -> None:
    here.shell("kill -SEGV $$")

    assert here.ends().why == Signaled(signal=11)


@pytest.mark.parametrize(
    ("launch", "text"),
    [
        (Launch(argv=("no-such-command",)), "no such command"),
        (Launch(argv=("/etc/passwd",)), "cannot run /etc/passwd: Permission denied"),
        (Launch(script="echo hello\n"), "#!"),
        (Launch(script="#!/no/such/shell\n"), "no such command"),
        (Launch(argv=("true",), workdir="/no/such/folder"), "/no/such/folder"),
        (Launch(argv=("true",), stdout="no/such/folder/out"), "no/such/folder/out"),
        (Launch(argv=("true",), stdin="nothing-there"), "nothing-there"),
        (Launch(), "no command"),
    ],
)
def test_what_cannot_begin_says_why(here: Here, launch: Launch, text: str) -> None:
    here.run(launch)

    why = here.ends().why

    assert isinstance(why, LaunchFailed)
    assert text in why.text


def test_a_folder_for_the_output_may_come_a_little_after_the_job(here: Here) -> None:
    here.run(Launch(argv=("echo", "hello"), stdout="of-job-%j/out"))
    here.until((here.folder() / "begun.json").exists)

    (here.work / "of-job-1").mkdir()

    assert here.ends().why == Exited(code=0)
    assert here.text("of-job-1/out") == "hello\n"


def test_a_job_of_an_unknown_user_is_refused(here: Here) -> None:
    here.shell("true", Wanted(user="nobody-of-that-name"))

    why = here.ends().why

    assert why == LaunchFailed(text="user nobody-of-that-name does not exist on this machine")


@AS_ROOT
def test_processes_and_files_belong_to_the_user(here: Here) -> None:
    here.work.chmod(0o777)

    here.run(
        Launch(script="#!/bin/sh\nid -un; id -Gn; umask; pwd; echo $HOME $USER\n", umask=0o027),
        Wanted(user="daemon"),
    )

    assert here.ends().why == Exited(code=0)
    lines = here.text("muster-1.out").splitlines()
    assert lines == ["daemon", "daemon", "0027", str(here.work), "/usr/sbin daemon"]
    assert (here.work / "muster-1.out").owner() == "daemon"


@AS_ROOT
def test_a_job_cannot_write_where_its_user_may_not(here: Here) -> None:
    here.shell("true", Wanted(user="daemon"))

    why = here.ends().why

    assert isinstance(why, LaunchFailed)
    assert "Permission denied" in why.text


@AS_ROOT
def test_a_link_to_somebody_elses_file_is_not_shown(here: Here) -> None:
    here.work.chmod(0o777)
    run = here.shell("rm muster-1.out; ln -s /etc/shadow muster-1.out", Wanted(user="daemon"))
    here.ends()

    with pytest.raises(UnknownError):
        here.backend.output(asked(run))


@AS_ROOT
def test_a_hard_link_to_somebody_elses_file_is_not_shown(here: Here, home: Path) -> None:
    here.work.chmod(0o777)
    (home / "secret").write_text("secret")
    run = here.shell("true", Wanted(user="daemon"))
    here.ends()
    (here.work / "muster-1.out").unlink()
    os.link(home / "secret", here.work / "muster-1.out")

    with pytest.raises(UnknownError, match=r"no file at .* that is .* own"):
        here.backend.output(asked(run))


def test_files_are_named_by_patterns(here: Here) -> None:
    launch = Launch(
        argv=("/bin/sh", "-c", "echo out; echo err >&2"),
        stdout="%x-%4j-%t.out",
        stderr="%N-%u.err",
    )

    run = here.run(launch, Wanted(job=7, name="fit"))

    here.ends(7)
    assert here.text("fit-0007-0.out") == "out\n"
    assert here.text(f"n1-{run.job.spec.user}.err") == "err\n"
    assert here.backend.output(asked(run, stderr=True)).content == b"err\n"


def test_another_attempt_begins_its_file_again_unless_it_appends(here: Here) -> None:
    for attempt, append in ((1, False), (2, False), (3, True)):
        here.run(
            Launch(argv=("echo", str(attempt)), stdout="out", append=append),
            Wanted(job=attempt),
        )
        here.ends(attempt)

    assert here.text("out") == "2\n3\n"


def test_a_job_reads_its_stdin_and_without_one_there_is_nothing(here: Here) -> None:
    (here.work / "in").write_text("typed\n")

    here.run(Launch(argv=("cat",), stdin="in", stdout="one"), Wanted(job=1))
    here.run(Launch(argv=("cat",), stdout="two"), Wanted(job=2))

    assert here.ends(1).why == here.ends(2).why == Exited(code=0)
    assert here.text("one") == "typed\n"
    assert here.text("two") == ""


def test_four_tasks_know_their_ranks_and_where_to_meet(here: Here) -> None:
    line = "echo $RANK $WORLD_SIZE $LOCAL_RANK $LOCAL_WORLD_SIZE $MASTER_ADDR:$MASTER_PORT"

    here.run(Launch(argv=("sh", "-c", line), stdout="%t.out"), Wanted(tasks=4))

    here.ends()
    lines = [here.text(f"{rank}.out").split() for rank in range(4)]
    assert [line[:4] for line in lines] == [[str(rank), "4", str(rank), "4"] for rank in range(4)]
    assert len({line[4] for line in lines}) == 1
    assert lines[0][4].startswith("127.0.0.1:2")


def test_tasks_that_write_to_one_file_lose_nothing(here: Here) -> None:
    here.run(Launch(argv=("sh", "-c", "echo $RANK"), stdout="out"), Wanted(tasks=4))

    here.ends()

    assert sorted(here.text("out").split()) == ["0", "1", "2", "3"]


def test_one_process_beside_the_first_task_has_no_rank(here: Here) -> None:
    launch = Launch(
        argv=("sh", "-c", "echo ${RANK-none} $MUSTER_TASKS"),
        runs=Runs.FIRST_TASK,
        stdout="out",
    )

    here.run(launch, Wanted(tasks=4))

    here.ends()
    assert here.text("out") == "none 4\n"


def test_a_failing_task_ends_the_others(here: Here) -> None:
    line = "test $RANK = 2 && exit 9; echo $$ > pid-$RANK; exec sleep 600"

    here.shell(line, Wanted(tasks=3))

    assert here.ends().why == Exited(code=9)
    pids = [here.pid_in("pid-0"), here.pid_in("pid-1")] if here.text("pid-1") else []
    assert all(is_gone(pid) for pid in pids)


def test_a_restarted_job_finds_its_checkpoint(here: Here) -> None:
    launch = Launch(argv=("sh", "-c", "echo $MUSTER_CHECKPOINT $MUSTER_RESTARTS"), stdout="out")

    here.run(launch, Wanted(attempt=3, checkpoint="/data/step-7.pt"))

    here.ends()
    assert here.text("out") == "/data/step-7.pt 2\n"
