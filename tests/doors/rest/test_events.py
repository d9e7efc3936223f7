import itertools
import socket
import threading
from collections.abc import Iterator
from contextlib import closing

import pytest

from doors.rest.running import Daemon, running, shell, until
from muster import ApiError, Client
from muster.api.site import EventDocument


def test_the_log_of_a_job_tells_its_life(client: Client) -> None:
    job = client.submit_document(shell("true")).id
    client.wait(job)

    kinds = [event.kind for event in client.job_events(job).events]

    assert kinds == ["job_submitted", "job_placed", "job_started", "job_ended"]


def test_what_a_job_runs_is_not_in_the_log(client: Client) -> None:
    job = client.submit_document(shell("true", env={"PASSWORD": "hunter2"}, held=True)).id

    (submitted,) = client.job_events(job).events

    assert "hunter2" not in str(submitted.fact)
    client.cancel([job])


def test_pages_of_the_log_follow_each_other_without_gap(client: Client) -> None:
    begin = newest(client)
    client.cancel(client.submit_document(shell("true", array="0-4", held=True)).ids)

    numbers: list[int] = []
    page = client.event_page(after=begin, limit=3)
    while page.events:
        numbers.extend(event.number for event in page.events)
        page = client.event_page(after=page.next, limit=3)

    assert numbers == list(range(begin + 1, begin + 1 + len(numbers)))
    assert len(numbers) >= 10


def test_a_stream_that_begins_in_the_past_goes_on_into_the_present(client: Client) -> None:
    before = newest(client)
    first = client.submit_document(shell("true", held=True)).id

    with closing(client.events(before)) as events:
        seen = list(take_until(events, first, "job_submitted"))
        client.cancel([first])
        seen += take_until(events, first, "job_ended", "cancel_asked")

    numbers = [event.number for event in seen]
    assert numbers == list(range(before + 1, numbers[-1] + 1))


def test_a_stream_has_only_what_is_asked_for(client: Client) -> None:
    others = client.submit_document(shell("true", held=True)).id
    before = client.job_events(others).next
    job = client.submit_document(shell("true", held=True)).id
    client.cancel([others, job])

    with closing(client.events(before, job=job)) as events:
        of_job = list(itertools.islice(events, 2))
    with closing(client.events(before, user="root", queue="default")) as events:
        of_user = list(itertools.islice(events, 3))

    assert {event.job for event in of_job} == {job}
    assert {event.job for event in of_user} == {others, job}


def test_many_listen_and_each_learns_everything_once(daemon: Daemon, client: Client) -> None:
    before = newest(client)
    last = client.submit_document(shell("true", array="0-99", held=True)).ids[-1]
    seen: dict[int, list[int]] = {}

    def listen(name: int) -> None:
        with daemon.client() as own, closing(own.events(before)) as events:
            seen[name] = [event.number for event in take_until(events, last, "cancel_asked")]

    listeners = [threading.Thread(target=listen, args=(name,)) for name in range(8)]
    for listener in listeners:
        listener.start()
    client.cancel(range(last - 99, last + 1))
    for listener in listeners:
        listener.join(30)

    assert len(seen) == 8
    for numbers in seen.values():
        assert numbers == list(range(before + 1, numbers[-1] + 1))


def test_a_stream_goes_on_when_the_server_is_started_again() -> None:
    with running() as daemon, daemon.client() as client:
        before = client.event_page(limit=1).next
        first = client.submit_document(shell("true", held=True)).id
        with closing(client.events(before)) as events:
            seen = list(take_until(events, first, "job_submitted"))

            daemon.stop()
            daemon.start()
            second = client.submit_document(shell("true", held=True)).id
            seen += take_until(events, second, "job_submitted")

    numbers = [event.number for event in seen]
    assert numbers == list(range(before + 1, numbers[-1] + 1))


def test_a_server_that_ends_is_not_held_up_by_those_who_listen() -> None:
    with running() as daemon, daemon.client() as client:
        job = client.submit_document(shell("sleep 60")).id
        until(lambda: client.job(job).state, lambda state: state == "running")
        events, log = client.events(0), client.follow_log(job)
        next(events)

        daemon.stop()

        assert not daemon.socket.exists()
        events.close()
        log.close()
        daemon.start()


def test_a_listener_who_does_not_read_is_let_go_and_harms_nobody(
    daemon: Daemon, client: Client
) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as deaf:
        deaf.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
        deaf.settimeout(30)
        deaf.connect(str(daemon.socket))
        deaf.sendall(b"GET /v1/events/stream HTTP/1.1\r\nhost: x\r\n\r\n")
        deaf.recv(1)

        ids = client.submit_document(shell("true", array="0-11999", held=True)).ids
        client.cancel(ids)

        # It hears what was on its way, and then that the server has ended.
        while deaf.recv(1 << 20):
            pass
    assert client.jobs().jobs == ()


def test_a_strange_place_in_the_log_is_refused(client: Client) -> None:
    with pytest.raises(ApiError) as refused, closing(client.events(-5)) as events:
        next(events)

    assert refused.value.status == 400


def newest(client: Client) -> int:
    job = client.submit_document(shell("true", held=True)).id
    client.cancel([job])
    return client.job_events(job).next


def take_until(events: Iterator[EventDocument], job: int, *kinds: str) -> list[EventDocument]:
    seen: list[EventDocument] = []
    for event in events:
        seen.append(event)
        if event.job == job and event.kind in kinds:
            return seen
    raise AssertionError("the stream ended")
