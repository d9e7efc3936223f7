"""Talking to slurmrestd: who asks, what an error means, and what only the commands can do."""

import base64
import json
import os
import pwd
import socketserver
import threading
from collections.abc import Generator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest

from muster.backends.attempts import Kill, Resume, Send
from muster.backends.slurm.rest import Rest, RestAccess
from muster.backends.slurm.submission import Submission
from muster.backends.slurm.wire import SlurmDownError, SlurmNotYetError, SlurmRefusedError
from muster.model.value import UserName, replace

Json = dict[str, Any]

ME = UserName(pwd.getpwuid(os.getuid()).pw_name)
BATCH = Submission(
    options=("--job-name=a",), script="#!/bin/sh\n", args=(), env={}, workdir="/", umask=None
)


class Pretended:
    """What is answered, in this order for each question, and who asked for what."""

    def __init__(self) -> None:
        self.answers: dict[str, list[tuple[int, Json | str]]] = {}
        self.speaks = "v0.0.38"
        self.asked: list[str] = []
        self.users: list[str] = []
        self.tokens: list[str] = []
        self.sent: list[Json] = []

    def says(self, asked: str, *answers: tuple[int, Json | str]) -> None:
        self.answers[asked] = list(answers)

    def answer(self, asked: str) -> tuple[int, Json | str]:
        if asked == "GET /openapi/v3":
            return 200, {"paths": {f"/slurm/{self.speaks}/jobs": {}}}
        said = self.answers.get(asked, [(200, {})])
        return said.pop(0) if len(said) > 1 else said[0]


@contextmanager
def pretended(path: Path | None = None) -> Generator[tuple[Pretended, str]]:
    """At a port of loopback, or at a socket."""
    made = Pretended()
    handler = _handler(made)
    if path is None:
        server: socketserver.BaseServer = HTTPServer(("127.0.0.1", 0), handler)
        url = f"http://127.0.0.1:{server.server_address[1]}"
    else:
        server, url = socketserver.UnixStreamServer(str(path), handler), f"unix:{path}"
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield made, url
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def _handler(made: Pretended) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def _serve(self) -> None:
            length = int(self.headers.get("Content-Length") or 0)
            made.sent.append(json.loads(self.rfile.read(length) or b"{}"))
            asked = f"{self.command} {self.path}"
            made.asked.append(asked)
            made.users.append(self.headers.get("X-SLURM-USER-NAME") or "")
            made.tokens.append(self.headers.get("X-SLURM-USER-TOKEN") or "")
            code, said = made.answer(asked)
            self.send_response(code)
            self.end_headers()
            self.wfile.write((said if isinstance(said, str) else json.dumps(said)).encode())

        do_GET = do_POST = do_DELETE = _serve  # noqa: N815 -- as the library calls them

        def log_message(self, format: str, *args: object) -> None:
            """Nobody reads it."""

    return Handler


def token_of(user: str) -> str:
    claims = base64.urlsafe_b64encode(json.dumps({"sun": user, "exp": 4_000_000_000}).encode())
    return f"head.{claims.decode().rstrip('=')}.sign"


def refusal(number: int, text: str) -> Json:
    return {"errors": [{"error_number": number, "error": text}]}


def test_who_asks_is_whom_the_token_is_of_and_it_is_read_again(tmp_path: Path) -> None:
    file = tmp_path / "token"
    with pretended() as (server, url):
        rest = Rest(RestAccess(url=url, token_file=str(file)))
        for user in ("slurm", "root"):
            file.write_text(f"SLURM_JWT={token_of(user)}\n", encoding="ascii")
            rest.jobs()

    assert server.users == ["slurm", "slurm", "root"]
    assert server.tokens[-1] == token_of("root")


def test_a_program_prints_the_token_and_is_not_asked_again_while_it_holds(tmp_path: Path) -> None:
    program, calls = tmp_path / "program", tmp_path / "calls"
    program.write_text(f"#!/bin/sh\necho >> {calls}\necho {token_of('slurm')}\n", encoding="ascii")
    program.chmod(0o700)
    with pretended() as (server, url):
        rest = Rest(RestAccess(url=url, token_command=str(program)))
        rest.jobs()
        rest.jobs()

    assert calls.read_text(encoding="ascii") == "\n"
    assert set(server.users) == {"slurm"}


def test_it_answers_at_a_socket_as_well(tmp_path: Path) -> None:
    with pretended(tmp_path / "socket") as (server, url):
        assert Rest(RestAccess(url=url)).jobs() == ()

    assert server.asked == ["GET /openapi/v3", "GET /slurm/v0.0.38/jobs"]


def test_a_job_is_submitted_as_its_user_and_must_be_theirs(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text(token_of("root"), encoding="ascii")
    with pretended() as (server, url):
        rest = Rest(RestAccess(url=url, token_file=str(file)))
        server.says("POST /slurm/v0.0.38/job/submit", (200, {"errors": [], "job_id": 7}))
        server.says("GET /slurm/v0.0.38/job/7", (200, {"jobs": [{"user_id": os.getuid()}]}))
        taken = rest.submit(((BATCH, ME),))
        server.says("GET /slurm/v0.0.38/job/7", (200, {"jobs": [{"user_id": 99}]}))
        stranger = rest.submit(((BATCH, ME),))

    assert taken == ["7"]
    assert server.users[server.asked.index("POST /slurm/v0.0.38/job/submit")] == ME
    assert isinstance(stranger[0], SlurmRefusedError)
    assert "the same names and numbers" in str(stranger[0])
    assert server.asked[-1] == "DELETE /slurm/v0.0.38/job/7"


def test_a_job_does_not_find_our_commands_of_slurms_names(tmp_path: Path) -> None:
    (tmp_path / "srun").write_text("#!/usr/bin/python -m muster\n", encoding="ascii")
    batch = replace(BATCH, env={"PATH": f"{tmp_path}:/usr/bin"})
    with pretended() as (server, url):
        server.says("POST /slurm/v0.0.38/job/submit", (200, {"job_id": 7}))
        Rest(RestAccess(url=url)).submit(((batch, ME),))

    sent = server.sent[server.asked.index("POST /slurm/v0.0.38/job/submit")]
    assert sent["job"]["environment"]["PATH"] == "/usr/bin"


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (2_042, "Job is in held state, pending scheduler release"),
        (2_015, "Required node not available (down, drained or reserved)"),
    ],
)
def test_what_is_only_a_warning_does_not_undo_a_submission(number: int, text: str) -> None:
    taken = {**refusal(number, text), "job_id": 7}
    with pretended() as (server, url):
        server.says("POST /slurm/v0.0.38/job/submit", (200, taken))

        assert Rest(RestAccess(url=url)).submit(((BATCH, ME),)) == ["7"]


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        ((401, "Authentication failure"), SlurmDownError),
        ((502, "<html>"), SlurmDownError),
        ((500, refusal(-1, "Unspecified error")), SlurmDownError),
        ((500, refusal(1_007, "Protocol authentication error")), SlurmDownError),
        ((500, refusal(0, "Unable to contact slurm controller (connect failure)")), SlurmDownError),
        ((500, refusal(2_014, "Requested node configuration is not available")), SlurmNotYetError),
        ((500, refusal(2_000, "Invalid partition name specified")), SlurmRefusedError),
        ((400, refusal(9_001, "Failure during parsing")), SlurmRefusedError),
    ],
)
def test_what_an_error_means_for_a_submission(
    answer: tuple[int, Json | str], error: type[Exception]
) -> None:
    with pretended() as (server, url):
        server.says("POST /slurm/v0.0.38/job/submit", answer)

        assert type(Rest(RestAccess(url=url)).submit(((BATCH, ME),))[0]) is error


def test_who_does_not_listen_is_down_and_is_named() -> None:
    with pretended() as (_, url):
        pass

    with pytest.raises(SlurmDownError, match=url):
        Rest(RestAccess(url=url, answer_s=2)).jobs()


def test_a_signal_is_sent_again_to_a_job_that_just_begins() -> None:
    asked = "DELETE /slurm/v0.0.38/job/7?signal=10"
    with pretended() as (server, url):
        server.says(asked, (500, refusal(2_020, "Job can not be altered now")), (200, {}))

        Rest(RestAccess(url=url)).do("7", Send(signal=10, first_only=False))

    assert server.asked.count(asked) == 2


def test_what_only_the_commands_can_do_is_refused_without_them() -> None:
    with pretended() as (_, url):
        rest = Rest(RestAccess(url=url))
        for deed in (Resume(), Send(signal=10, first_only=True)):
            with pytest.raises(SlurmRefusedError, match="--conf"):
                rest.do("7", deed)
        with pytest.raises(SlurmRefusedError, match="suspending"):
            rest.suspend("7")


def test_a_job_that_waits_is_cancelled_without_a_signal() -> None:
    with pretended() as (server, url):
        Rest(RestAccess(url=url)).do("7", Kill())

    assert server.asked[-1] == "DELETE /slurm/v0.0.38/job/7"


def test_a_slurmrestd_that_speaks_none_of_our_versions_is_told() -> None:
    with pretended() as (server, url):
        server.speaks = "v0.0.35"

        with pytest.raises(SlurmDownError, match=r"v0\.0\.38 to v0\.0\.42"):
            Rest(RestAccess(url=url)).jobs()
