"""One user who asks for everything at once, slowly or not at all, keeps others from nothing."""

import asyncio
import os
import resource
import socket
import time
from collections.abc import Generator, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import pytest

from doors.rest.running import Daemon, as_uid, running, shell
from hostile.test_streams import free_port
from muster import ApiError, Client
from muster.api.site import TokenAsked
from muster.controller.queries.questions import Questions
from muster.doors.rest.connections import (
    AMONG_OTHERS,
    ASKED_AT_ONCE,
    MOST_OF_ONE_PEER,
    MOST_REFUSED_LATER,
    OTHERS_S,
    REFUSED_AFTER_S,
    UID,
    Connections,
    Crowd,
    Peer,
)
from muster.doors.rest.peers import BODY_S, HEAD_S, MOST_HEAD
from muster.doors.rest.problems import trouble
from muster.doors.rest.turns import MOST_WAITING, OF_ONE_USER, Turns
from muster.model.errors import BusyError
from muster.model.value import UserName
from muster.settings import Listen

needs_root = pytest.mark.skipif(os.getuid() != 0, reason="only root can be somebody else")

FLOODER = 65_534
ADA, BOB = UserName("ada"), UserName("bob")


@pytest.fixture(scope="module")
def place() -> Iterator[tuple[Daemon, int]]:
    listen = Listen(host="127.0.0.1", port=free_port())
    with running(listen) as daemon:
        yield daemon, listen.port


def connected(path: Path) -> socket.socket:
    made = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    made.connect(str(path))
    made.settimeout(HEAD_S + 20)
    return made


def answer(open_socket: socket.socket) -> bytes:
    """All that comes until the other end hangs up."""
    received = b""
    with suppress(ConnectionResetError):
        while part := open_socket.recv(65_536):
            received += part
    return received


@contextmanager
def silent(path: Path, count: int) -> Generator[list[socket.socket]]:
    with ExitStack() as stack:
        yield [stack.enter_context(connected(path)) for _ in range(count)]


@needs_root
def test_fifteen_hundred_silent_connections_stop_nobody(place: tuple[Daemon, int]) -> None:
    daemon, _ = place
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    told, tell = os.pipe()
    leave, left = os.pipe()
    flooder = os.fork()
    if flooder == 0:
        os.setgid(FLOODER)
        os.setuid(FLOODER)
        with silent(daemon.socket, 1_500) as several:
            os.write(tell, str(len(several)).encode())
            os.close(left)
            os.read(leave, 1)
        os._exit(0)
    try:
        assert int(os.read(told, 16)) == 1_500
        with daemon.client() as client:
            job = client.submit_document(shell("true", held=True)).id
            assert client.job(job).state == "held"
            client.cancel([job])
    finally:
        for end in (left, leave, told, tell):
            os.close(end)
        os.waitpid(flooder, 0)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_who_says_nothing_or_drips_a_head_is_let_go(place: tuple[Daemon, int]) -> None:
    daemon, _ = place
    with connected(daemon.socket) as mute, connected(daemon.socket) as slow:
        began = time.monotonic()
        slow.sendall(b"GET /v1/me HTTP/1.1\r\nhost: x\r\nx-a: ")
        assert b"408" in answer(slow)
        assert answer(mute) == b""

    assert HEAD_S - 1 < time.monotonic() - began < HEAD_S + 15
    assert BODY_S < 120


@pytest.mark.parametrize(
    "head",
    [
        b"x-a: " + b"a" * 2 * MOST_HEAD,
        b"x-a: b\r\n" * MOST_HEAD,
    ],
    ids=["one", "many"],
)
def test_a_head_is_bounded(place: tuple[Daemon, int], head: bytes) -> None:
    daemon, _ = place
    with connected(daemon.socket) as client:
        client.sendall(b"GET /v1/me HTTP/1.1\r\nhost: x\r\n")
        with suppress(BrokenPipeError, ConnectionResetError):
            client.sendall(head)
        assert b" 431 " in answer(client)[:60] or not head


def test_a_long_question_within_the_bound_is_answered(place: tuple[Daemon, int]) -> None:
    daemon, _ = place
    ids = "&".join(f"id={each}" for each in range(5_000))
    with connected(daemon.socket) as client:
        client.sendall(
            f"GET /v1/jobs?{ids} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n".encode()
        )
        assert answer(client).startswith(b"HTTP/1.1 200 ")


@pytest.mark.parametrize("token", ["", "authorization: Bearer mst_00000000_wrong\r\n"])
def test_a_token_is_looked_at_before_the_body_is_read(
    place: tuple[Daemon, int], token: str
) -> None:
    _, port = place
    head = f"POST /v1/jobs HTTP/1.1\r\nhost: x\r\n{token}content-length: 8000000\r\n\r\n"
    with socket.create_connection(("127.0.0.1", port), timeout=HEAD_S) as client:
        began = time.monotonic()
        client.sendall(head.encode())
        told = client.recv(65_536)

    assert told.startswith(b"HTTP/1.1 401 ")
    assert b"connection: close" in told.lower()
    assert time.monotonic() - began < HEAD_S


def test_rights_are_looked_at_before_anything_is_parsed(place: tuple[Daemon, int]) -> None:
    daemon, port = place
    with daemon.client() as local:
        viewer = local.make_token(TokenAsked(role="viewer", lifetime="1h"))
        user = local.make_token(TokenAsked(role="user", lifetime="1h"))
    bomb = "a: " + "[" * 1_000_000
    for secret, path in ((viewer.secret, "/v1/jobs"), (user.secret, "/v1/site")):
        method = "POST" if path == "/v1/jobs" else "PUT"
        head = (
            f"{method} {path} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {secret}\r\n"
            f"content-length: {len(bomb)}\r\n\r\n"
        )
        with socket.create_connection(("127.0.0.1", port), timeout=HEAD_S) as client:
            client.sendall(head.encode())
            assert client.recv(65_536).startswith(b"HTTP/1.1 403 ")
    with Client(f"http://127.0.0.1:{port}", token=user.secret) as remote:
        with pytest.raises(ApiError) as refused:
            remote.apply(bomb)
        assert refused.value.status == 403


def test_a_body_that_never_comes_is_not_waited_for_by_others(place: tuple[Daemon, int]) -> None:
    daemon, _ = place
    head = b"POST /v1/jobs HTTP/1.1\r\nhost: x\r\ncontent-length: 8000000\r\n\r\n{"
    with ExitStack() as stack:
        for _ in range(ASKED_AT_ONCE - 1):
            stack.enter_context(connected(daemon.socket)).sendall(head)
        with daemon.client() as client:
            assert client.me().user


@needs_root
def test_more_requests_than_may_be_worked_on_are_all_answered(place: tuple[Daemon, int]) -> None:
    daemon, _ = place

    def flood() -> str:
        request = b"GET /v1/me HTTP/1.1\r\nhost: x\r\n\r\n"
        with silent(daemon.socket, 200) as several:
            for each in several:
                each.sendall(request)
            answers = [each.recv(65_536)[:12] for each in several]
        return str(answers.count(b"HTTP/1.1 200"))

    assert as_uid(FLOODER, flood) == "200"


@pytest.mark.parametrize(
    "body", [b'{"x\xc1":1}', b"[" * 200_000, b'{"a":' * 50_000, b"\xff\xfe", b"1e400", b""]
)
def test_what_is_no_json_is_a_bad_request(place: tuple[Daemon, int], body: bytes) -> None:
    daemon, _ = place
    head = f"POST /v1/jobs HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-length: {len(body)}"
    with connected(daemon.socket) as client:
        client.sendall(f"{head}\r\n\r\n".encode() + body)
        assert answer(client).startswith(b"HTTP/1.1 4")


@needs_root
def test_who_has_too_many_connections_is_told_so_after_a_while(place: tuple[Daemon, int]) -> None:
    daemon, _ = place

    def flood() -> str:
        # Those beyond the limit, and one of them that hangs up meanwhile.
        with silent(daemon.socket, MOST_OF_ONE_PEER + 3) as several:
            began = time.monotonic()
            several[-1].close()
            said = [answer(each) for each in several[MOST_OF_ONE_PEER:-1]]
            late = time.monotonic() - began > REFUSED_AFTER_S / 2
        return f"{late} {sum(each.startswith(b'HTTP/1.1 503') for each in said)}"

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    try:
        assert as_uid(FLOODER, flood) == "True 2"
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


# The parts.


def test_those_who_are_told_later_leave_room_for_others() -> None:
    connections = Connections(most=40)
    for _ in range(10):
        connections.enter((UID, 1))

    kept = [connections.refuse_later() for _ in range(20)]

    assert sum(kept) == 7
    assert all(connections.enter((UID, user)) is not None for user in range(2, 25))
    connections.refused()
    assert MOST_REFUSED_LATER <= 1_000


def test_one_peer_has_no_more_than_a_quarter_of_all_connections() -> None:
    connections = Connections(most=40)

    taken = [connections.enter((UID, 1)) for _ in range(20)]

    assert sum(each is not None for each in taken) == 10
    assert connections.enter((UID, 2)) is not None
    for _ in range(10):
        connections.leave((UID, 1))
    assert connections.enter((UID, 1)) is not None
    assert MOST_OF_ONE_PEER <= 1_000


def test_who_waits_begins_when_another_is_done_in_their_order() -> None:
    peer, begun = Peer(None, at_once=1, crowd=Crowd(lambda: 0.0)), list[int]()

    def first() -> None:
        begun.append(1)

    def second() -> None:
        begun.append(2)

    assert peer.ask(first)
    assert not peer.ask(first)
    assert not peer.ask(second)
    peer.give_up(first)
    peer.done()

    assert begun == [2]
    assert not peer.is_idle
    peer.done()
    assert peer.is_idle


def asked_by(peer: Peer, times: int) -> int:
    """How many of so many requests are worked on now."""
    return sum(peer.ask(lambda: None) for _ in range(times))


def test_who_asks_alone_has_more_at_once_than_who_asks_among_others() -> None:
    now_s = [0.0]
    connections = Connections(most=400, clock=lambda: now_s[0])
    flooder, polite = connections.enter((UID, 1)), connections.enter((UID, 2))
    assert flooder is not None
    assert polite is not None

    assert asked_by(flooder, 100) == ASKED_AT_ONCE
    assert asked_by(polite, 1) == 1
    for _ in range(ASKED_AT_ONCE):
        flooder.done()
    polite.done()

    assert flooder.at_once == AMONG_OTHERS
    now_s[0] += 2 * OTHERS_S
    flooder.done()
    assert flooder.at_once == ASKED_AT_ONCE


def test_nobody_waits_for_ever_when_others_come_and_go() -> None:
    now_s, begun = [0.0], list[int]()
    connections = Connections(most=400, clock=lambda: now_s[0])
    one, other = connections.enter((UID, 1)), connections.enter((UID, 2))
    assert one is not None
    assert other is not None
    at_once = sum(one.ask(lambda n=n: begun.append(n)) for n in range(100))

    for turn in range(100):
        if turn % 7 == 0:
            assert other.ask(lambda: None)
            other.done()
        now_s[0] += 0.3
        one.done()

    assert begun == list(range(at_once, 100))
    assert one.at_once > 0
    other.ask(lambda: None)
    other.done()
    assert one.ask(lambda: None)


def test_costly_questions_are_answered_user_by_user() -> None:
    turns, order = Turns(at_once=1), list[str]()

    async def ask(user: UserName) -> None:
        async with turns.of(user):
            order.append(user)
            await asyncio.sleep(0)

    async def all_ask() -> None:
        await asyncio.gather(*(ask(ADA) for _ in range(20)), ask(BOB))

    asyncio.run(all_ask())

    assert order.index("bob") <= 2
    assert len(order) == 21


def test_one_user_has_a_few_costly_questions_at_once() -> None:
    turns, most = Turns(), [0, 0]

    async def ask() -> None:
        async with turns.of(ADA):
            most[0] += 1
            most[1] = max(most)
            await asyncio.sleep(0)
            most[0] -= 1

    async def all_ask() -> None:
        await asyncio.gather(*(ask() for _ in range(20)))

    asyncio.run(all_ask())

    assert most == [0, OF_ONE_USER]


def test_who_gives_up_waiting_leaves_no_trace() -> None:
    turns = Turns(at_once=1)

    async def hold(until: asyncio.Event) -> None:
        async with turns.of(ADA):
            await until.wait()

    async def scene() -> None:
        until = asyncio.Event()
        holds = asyncio.create_task(hold(until))
        waits = [asyncio.create_task(hold(until)) for _ in range(3)]
        await asyncio.sleep(0)
        waits[0].cancel()
        until.set()
        await asyncio.gather(holds, *waits[1:])
        async with turns.of(BOB):
            pass

    asyncio.run(asyncio.wait_for(scene(), 5))


def test_too_much_is_sent_away_with_the_time_to_come_back() -> None:
    questions = Questions()
    with questions.asked_by(ADA), questions.asked_by(ADA):
        with pytest.raises(BusyError) as busy, questions.asked_by(ADA):
            pass
        with questions.asked_by(BOB):
            found = trouble(busy.value)

    assert found.status == 429
    assert any(name == b"retry-after" for name, _ in found.headers)
    assert MOST_WAITING <= 1_000
