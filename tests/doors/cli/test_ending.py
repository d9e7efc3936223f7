"""Exit codes, errors, pipes and interrupts."""

import signal
from pathlib import Path

import pytest

from doors.cli.calling import Caller, muster_process
from doors.cli.canned import CannedServer, Refusal
from muster.api.site import Problem


@pytest.mark.parametrize(
    ("status", "code"), [(400, 1), (422, 1), (401, 5), (403, 5), (404, 4), (409, 1), (503, 1)]
)
def test_the_exit_code_tells_what_kind_of_no_it_was(
    muster: Caller, server: CannedServer, status: int, code: int
) -> None:
    problem = Problem(kind="some", text="No, because.")
    server.answer("GET", "/v1/jobs/lines", Refusal(status=status, problem=problem))

    outcome = muster("ps")

    assert (outcome.code, outcome.out, outcome.err) == (code, "", "muster: No, because.\n")


def test_an_error_points_at_the_line(muster: Caller, server: CannedServer, tmp_path: Path) -> None:
    path = tmp_path / "cluster.yaml"
    path.write_text("queues: 3\n", encoding="utf-8")
    problem = Problem(kind="bad_site", text="queues must be a mapping", where="line 1")
    server.answer("PUT", "/v1/site", Refusal(status=422, problem=problem))

    outcome = muster("apply", "-f", str(path))

    assert outcome.err == "muster: line 1: queues must be a mapping\n"


def test_nobody_answers(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    run = muster_process("ps", home=tmp_path)

    _, err = run.communicate(timeout=20)

    assert run.returncode == 3
    assert "muster up" in err
    assert capsys.readouterr().err == ""


def test_an_unknown_command_gets_a_suggestion(muster: Caller) -> None:
    outcome = muster("cancle")

    assert outcome.code == 2
    assert "There is no command 'cancle'. Did you mean cancel?" in outcome.err


def test_an_unknown_option_gets_a_suggestion(muster: Caller) -> None:
    outcome = muster("ps", "--quee", "x")

    assert outcome.code == 2
    assert "--queue" in outcome.err


def test_a_broken_pipe_is_silent(server: CannedServer) -> None:
    run = muster_process("ps", "-o", "json", server=server)
    assert run.stdout is not None
    run.stdout.close()

    assert run.stderr is not None
    err = run.stderr.read()
    run.stderr.close()

    assert (run.wait(timeout=20), err) == (141, "")


def test_ctrl_c_exits_with_130(server: CannedServer) -> None:
    def never(_: object) -> object:
        run.send_signal(signal.SIGINT)
        assert run.wait(timeout=20) is not None
        return Refusal(status=404, problem=Problem(kind="gone", text="Too late."))

    server.answer("GET", "/v1/status", never)
    run = muster_process("status", server=server)
    out, err = run.communicate(timeout=20)

    assert (run.returncode, out, err) == (130, "", "")


def test_the_version_is_printed_without_a_server(tmp_path: Path) -> None:
    run = muster_process("version", home=tmp_path)

    out, _ = run.communicate(timeout=20)

    assert (run.returncode, out) == (0, "muster 0.1.0\n")
