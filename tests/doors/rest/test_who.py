import os
import pwd
import shutil
import socket
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from doors.rest.running import Daemon, as_uid, running, shell, started
from muster import ApiError, Client, UnreachableError
from muster.api.jobs import JobDocument
from muster.api.site import TokenAsked
from muster.client.speech import Speech
from muster.settings import Listen

needs_root = pytest.mark.skipif(os.getuid() != 0, reason="only root can be somebody else")
needs_openssl = pytest.mark.skipif(not shutil.which("openssl"), reason="openssl makes the key")

NOBODY = 65_534


def read_audit(client: Client) -> object:
    return client.audit()


def drain_node(client: Client) -> object:
    return client.drain("pretend1", "mine")


def apply_rules(client: Client) -> object:
    return client.apply("queues: {default: {}}")


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tls")
    command = (
        "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 "
        "-subj /CN=localhost -addext subjectAltName=DNS:localhost,IP:127.0.0.1 "
        "-keyout key.pem -out cert.pem"
    )
    subprocess.run(  # noqa: S603 -- the words are above
        command.split(),
        cwd=folder,
        check=True,
        capture_output=True,
    )
    return folder / "cert.pem"


@pytest.fixture(scope="module")
def secured(certificate: Path) -> Iterator[tuple[Daemon, str]]:
    key = str(certificate.with_name("key.pem"))
    listen = Listen(host="127.0.0.1", port=free_port(), tls_cert=str(certificate), tls_key=key)
    with running(listen) as daemon:
        yield daemon, f"https://localhost:{listen.port}"


def test_the_kernel_says_who_is_at_the_socket(client: Client) -> None:
    me = client.me()

    assert me.user == pwd.getpwuid(os.getuid()).pw_name
    assert me.roles == ("admin",)


def test_the_door_is_what_the_client_says_if_it_is_one(daemon: Daemon) -> None:
    with daemon.client(door="cli") as command, daemon.client(door="back-door") as strange:
        assert command.me().door == "cli"
        assert strange.me().door == "rest"


@needs_root
def test_another_user_is_known_and_may_do_less(daemon: Daemon, client: Client) -> None:
    roots = client.submit_document(shell("sleep 60", env={"SECRET": "x"})).id

    def look_around() -> str:
        with daemon.client() as own:
            me, job = own.me(), own.job(roots)
            refused = own.cancel([roots]).failed
            return f"{me.user} {me.roles} {job.launch} {len(refused)}"

    answer = as_uid(NOBODY, look_around)

    assert answer == f"{pwd.getpwuid(NOBODY).pw_name} ('user',) None 1"
    client.cancel([roots])


@needs_root
@pytest.mark.parametrize("asking", [read_audit, drain_node, apply_rules])
def test_what_takes_an_administrator_is_forbidden_to_others(
    daemon: Daemon, asking: Callable[[Client], object]
) -> None:
    def try_it() -> str:
        with daemon.client() as own:
            try:
                asking(own)
            except ApiError as refused:
                return str(refused.status)
        return "it was allowed"

    assert as_uid(NOBODY, try_it) == "403"


@needs_root
def test_one_job_of_somebody_else_is_forbidden(daemon: Daemon, client: Client) -> None:
    job = client.submit_document(shell("true", held=True)).id

    def cancel_it() -> str:
        with Speech(daemon.client().address) as own:
            own.send("DELETE", f"/v1/jobs/{job}", None, JobDocument)
        return "it was allowed"

    answer = as_uid(NOBODY, cancel_it)

    assert answer.startswith(f"ApiError: job {job}")
    assert client.job(job).state == "held"
    client.cancel([job])


@needs_root
def test_a_log_is_read_by_its_owner_only(daemon: Daemon, client: Client) -> None:
    job = client.submit_document(shell("echo private")).id
    client.wait(job)

    def read() -> str:
        with daemon.client() as own:
            return b"".join(own.log(job)).decode()

    assert as_uid(NOBODY, read).startswith("ApiError: job")


@needs_openssl
def test_over_tls_a_token_says_who_it_is(secured: tuple[Daemon, str], certificate: Path) -> None:
    daemon, url = secured
    with daemon.client() as local:
        made = local.make_token(TokenAsked(role="user", lifetime="1h"))
    assert made.secret is not None

    with Client(url, token=made.secret, ca=str(certificate)) as remote:
        job = remote.submit_document(shell("exit 4")).id
        over = remote.wait(job)
        seated = remote.submit_document(shell("read line; exit 5", terminal=(24, 80))).id
        started(remote, seated)
        with remote.attach(seated) as terminal:
            terminal.send(b"\n")
            list(terminal)
        with pytest.raises(ApiError) as refused:
            remote.audit()

    assert over.exit_code == 4
    assert terminal.close_reason == "exit 5"
    assert refused.value.status == 403


@needs_openssl
def test_without_a_good_token_nobody_is_let_in(
    secured: tuple[Daemon, str], certificate: Path
) -> None:
    daemon, url = secured
    with daemon.client() as local:
        gone = local.make_token(TokenAsked())
        local.revoke_token(gone.id)

    for secret in (None, "mst_00000000_wrong", gone.secret):
        with Client(url, token=secret, ca=str(certificate)) as remote:
            with pytest.raises(ApiError) as refused:
                remote.me()
            assert refused.value.status == 401


@needs_openssl
def test_a_certificate_that_nobody_vouches_for_is_not_trusted(secured: tuple[Daemon, str]) -> None:
    _, url = secured

    with Client(url) as remote, pytest.raises(UnreachableError) as no:
        remote.me()

    assert "MUSTER_CA" in str(no.value)


def test_where_nobody_answers_the_client_says_what_to_do(tmp_path: Path) -> None:
    with Client(f"unix:{tmp_path}/muster.sock") as client, pytest.raises(UnreachableError) as no:
        client.me()

    assert str(no.value).startswith("Muster does not run here; start it with: muster up")


def test_who_changed_what_is_written_down(daemon: Daemon) -> None:
    with daemon.client(door="cli") as client:
        job = client.submit_document(shell("true", held=True)).id
        client.cancel([job])
        entries = client.audit(limit=5).entries

    assert ("root", "cli", "cancel") in [(each.user, each.door, each.action) for each in entries]


def free_port() -> int:

    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
