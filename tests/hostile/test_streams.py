"""What is open ends when the token that opened it is good no more."""

import socket
from collections.abc import Iterator

import pytest
from websockets.exceptions import ConnectionClosedError

from doors.rest.running import Daemon, running, shell, started, until
from muster import ApiError, Client
from muster.api.site import TokenAsked, TokenDocument
from muster.settings import Listen


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.fixture(scope="module")
def place() -> Iterator[tuple[Daemon, str]]:
    listen = Listen(host="127.0.0.1", port=free_port())
    with running(listen) as daemon:
        yield daemon, f"http://127.0.0.1:{listen.port}"


def made_token(daemon: Daemon) -> TokenDocument:
    with daemon.client() as local:
        return local.make_token(TokenAsked(role="user", lifetime="1h"))


def revoke(daemon: Daemon, token: TokenDocument) -> None:
    with daemon.client() as local:
        local.revoke_token(token.id)


def test_revoking_ends_a_stream_of_events(place: tuple[Daemon, str]) -> None:
    daemon, url = place
    token = made_token(daemon)
    with Client(url, token=token.secret) as remote:
        stream = remote.events(after=0)
        next(stream)
        revoke(daemon, token)

        with pytest.raises(ApiError, match="revoked"):
            list(stream)


def test_revoking_ends_a_log_that_is_followed(place: tuple[Daemon, str]) -> None:
    daemon, url = place
    token = made_token(daemon)
    with Client(url, token=token.secret) as remote:
        out = str(daemon.home.with_name(f"{daemon.home.name}-%j"))
        job = remote.submit_document(shell("echo begun; sleep 600", stdout=out)).id
        started(remote, job)
        stream = iter(remote.follow_log(job))
        assert next(stream).startswith(b"begun")
        revoke(daemon, token)

        list(stream)

    with daemon.client() as local:
        local.cancel([job])


def test_revoking_ends_a_terminal(place: tuple[Daemon, str]) -> None:
    daemon, url = place
    token = made_token(daemon)
    with Client(url, token=token.secret) as remote:
        job = remote.submit_document(shell("cat", terminal=(24, 80))).id
        started(remote, job)
        with remote.attach(job) as terminal:
            revoke(daemon, token)
            with pytest.raises(ConnectionClosedError):
                list(terminal)

        assert terminal.close_code == 1008
        assert "token" in (terminal.close_reason or "")

    with daemon.client() as local:
        entries = until(lambda: local.audit(limit=50).entries, bool)
        assert (f"job {job}", token.id) in [
            (each.subject, each.token) for each in entries if each.action == "attach"
        ]
        local.cancel([job])
