"""`muster run` without a terminal: output as it comes, the job's exit code, Ctrl-C."""

import os
import signal

import pytest

from doors.cli.calling import Caller, muster_process
from doors.cli.canned import CannedServer, Raw, Refusal, Request
from doors.cli.things import ENDED, RUNNING
from muster.api.jobs import JobDocument, ManyDocument, ReasonDocument
from muster.api.pages import EventPage
from muster.api.requests import SubmittedDocument
from muster.api.site import Problem
from muster.model.value import replace

COMPLETED = replace(ENDED, id=30, state="completed", exit_code=0, reason=None)
STREAM = Raw(content=b": still here\n\n", media="text/event-stream")


def will_be(server: CannedServer, *states: JobDocument) -> None:
    """The job as it is seen, time after time; at last it stays as it is."""
    left = list(states)
    server.answer("POST", "/v1/jobs", SubmittedDocument(id=30, ids=(30,)))
    server.answer("GET", "/v1/jobs/30/events", EventPage(events=(), next=7))
    server.answer("GET", "/v1/events/stream", STREAM)
    server.answer("GET", "/v1/jobs/30", lambda _: left.pop(0) if len(left) > 1 else left[0])


def test_what_the_job_writes_is_printed_and_its_code_is_ours(server: CannedServer) -> None:
    failed = replace(ENDED, id=30)
    will_be(server, replace(RUNNING, id=30), failed)
    server.answer("GET", "/v1/jobs/30/log", Raw(content=b"hello\n"))

    run = muster_process("run", "--gpus", "1", "sh", "-c", "echo hello; exit 3", server=server)
    out, err = run.communicate(timeout=20)

    assert (run.returncode, out) == (3, "hello\n")
    assert err == "muster: job 30 failed: exit code 3\n"
    body = server.asked("POST", "/v1/jobs")[0].body
    assert body["command"] == ["sh", "-c", "echo hello; exit 3"]
    assert body["terminal"] is None
    assert server.asked("GET", "/v1/jobs/30/log")[0].query["follow"] == ["true"]


def test_a_job_that_ends_well_says_nothing_of_its_own(server: CannedServer) -> None:
    will_be(server, COMPLETED)
    server.answer("GET", "/v1/jobs/30/log", Raw(content=b""))

    run = muster_process("run", "true", server=server)

    assert run.communicate(timeout=20) == ("", "")
    assert run.returncode == 0


def test_who_pipes_something_in_is_told_that_nobody_reads_it(server: CannedServer) -> None:
    will_be(server, COMPLETED)
    server.answer("GET", "/v1/jobs/30/log", Raw(content=b""))
    reads, writes = os.pipe()
    os.write(writes, b"hello\n")

    run = muster_process("run", "cat", server=server, stdin=reads)
    _, err = run.communicate(timeout=20)
    os.close(reads)
    os.close(writes)

    assert "does not read what is piped in; put it into a file: --input FILE" in err
    assert run.returncode == 0


@pytest.mark.parametrize(
    ("job", "code"),
    [
        (replace(ENDED, exit_code=None, signal=9), 137),
        (replace(ENDED, exit_code=None, state="cancelled"), 1),
        (replace(ENDED, exit_code=0, state="failed"), 1),
        (replace(COMPLETED, id=12), 0),
    ],
)
def test_the_exit_code_is_that_of_a_shell(
    muster: Caller, server: CannedServer, job: JobDocument, code: int
) -> None:
    server.answer("GET", "/v1/jobs/12", job)
    server.answer("GET", "/v1/events/stream", STREAM)

    assert muster("wait", "--quiet", "12").code == code


def test_ctrl_c_while_the_job_waits_cancels_it(server: CannedServer) -> None:
    waiting = replace(
        RUNNING, id=30, state="pending", reason=ReasonDocument(kind="no_room", text="no room")
    )
    will_be(server, waiting)
    server.answer("POST", "/v1/jobs/actions", ManyDocument(done=(30,)))

    def interrupted(_: Request) -> object:
        run.send_signal(signal.SIGINT)
        assert run.wait(timeout=20) is not None
        return Refusal(status=404, problem=Problem(kind="gone", text="Too late."))

    server.answer("GET", "/v1/events/stream", interrupted)
    run = muster_process("run", "true", server=server)
    _, err = run.communicate(timeout=20)

    assert run.returncode == 130
    assert "job 30 cancelled" in err
    assert server.asked("POST", "/v1/jobs/actions")[0].body["action"] == "cancel"


def test_ctrl_c_while_the_job_runs_interrupts_it(server: CannedServer) -> None:
    interrupted = replace(ENDED, id=30, exit_code=None, signal=2)
    will_be(server, replace(RUNNING, id=30), interrupted)
    server.answer("POST", "/v1/jobs/actions", ManyDocument(done=(30,)))

    def log(_: Request) -> object:
        run.send_signal(signal.SIGINT)
        while not server.asked("POST", "/v1/jobs/actions"):
            assert run.poll() is None
        return Raw(content=b"interrupted\n")

    server.answer("GET", "/v1/jobs/30/log", log)
    run = muster_process("run", "sleep", "60", server=server)
    out, _ = run.communicate(timeout=20)

    assert (run.returncode, out) == (130, "interrupted\n")
    assert server.asked("POST", "/v1/jobs/actions")[0].body == {
        "action": "signal",
        "ids": [30],
        "signal": "INT",
    }
