import threading
from pathlib import Path
from typing import Any

import pytest
from websockets.exceptions import ConnectionClosedError

from doors.rest.running import shell, started, until
from muster import ApiError, Client
from muster.api.requests import SubmitDocument
from muster.model.value import replace


def test_what_a_job_wrote_is_read_whole_or_in_part(client: Client, tmp_path: Path) -> None:
    job = client.submit_document(writer("printf 0123456789", tmp_path)).id
    client.wait(job)

    assert b"".join(client.log(job)) == b"0123456789"
    assert b"".join(client.log(job, offset=4)) == b"456789"
    assert b"".join(client.log(job, offset=-3)) == b"789"


def test_a_large_log_comes_whole(client: Client, tmp_path: Path) -> None:
    job = client.submit_document(writer("head -c 3000000 /dev/zero", tmp_path)).id
    client.wait(job)

    assert sum(map(len, client.log(job))) == 3_000_000


def test_following_a_log_ends_with_the_job(client: Client, tmp_path: Path) -> None:
    go = tmp_path / "go"
    text = f"echo one; until [ -e {go} ]; do sleep 0.02; done; echo two"
    job = client.submit_document(writer(text, tmp_path)).id

    with client.follow_log(job) as parts:
        first = next(parts)
        go.touch()
        rest = b"".join(parts)

    assert (first, rest) == (b"one\n", b"two\n")


def test_a_log_can_be_followed_before_its_job_starts(client: Client, tmp_path: Path) -> None:
    job = client.submit_document(writer("echo at last", tmp_path, held=True)).id
    read: list[bytes] = []
    reader = threading.Thread(target=lambda: read.extend(client.follow_log(job)))

    reader.start()
    client.release([job])
    reader.join(30)

    assert b"".join(read) == b"at last\n"


def test_a_client_that_hangs_up_while_following_harms_no_other(
    client: Client, tmp_path: Path
) -> None:
    job = client.submit_document(writer("echo one; sleep 60", tmp_path)).id
    parts = client.follow_log(job)
    next(parts)

    parts.close()

    assert started(client, job).state == "running"
    client.cancel([job])


def test_errors_go_to_their_own_file_when_one_is_named(client: Client, tmp_path: Path) -> None:
    document = writer("echo out; echo err >&2", tmp_path, stderr=str(tmp_path / "err.%j"))
    job = client.submit_document(document).id
    client.wait(job)

    assert b"".join(client.log(job)) == b"out\n"
    assert b"".join(client.log(job, stderr=True)) == b"err\n"


def test_a_job_that_never_ran_has_nothing_to_read(client: Client, tmp_path: Path) -> None:
    job = client.submit_document(writer("true", tmp_path, held=True)).id

    with pytest.raises(ApiError) as refused:
        list(client.log(job))

    assert refused.value.status == 404
    client.cancel([job])


def test_nobody_follows_a_job_that_never_was(client: Client) -> None:
    with pytest.raises(ApiError) as refused:
        client.follow_log(876_543)

    assert refused.value.status == 404


def test_the_terminal_of_a_job_shows_what_it_writes_and_takes_what_is_typed(
    client: Client,
) -> None:
    document = shell("stty size; read line; echo got $line", terminal=(24, 80))
    job = client.submit_document(document).id
    started(client, job)

    with client.attach(job) as terminal:
        terminal.send('{"rows": 30, "columns": 90}')
        terminal.send(b"hello\n")
        shown = b"".join(part for part in terminal if isinstance(part, bytes))

    assert b"got hello" in shown
    assert terminal.close_reason == "exit 0"


def test_a_job_without_a_terminal_says_so(client: Client) -> None:
    job = client.submit_document(shell("sleep 60")).id
    started(client, job)

    with client.attach(job) as terminal, pytest.raises(ConnectionClosedError):
        next(iter(terminal))

    assert terminal.close_code == 1008
    client.cancel([job])
    until(lambda: client.job(job).state, lambda state: state == "cancelled")


def writer(text: str, folder: Path, **fields: Any) -> SubmitDocument:
    return replace(shell(text), stdout=str(folder / "out.%j"), **fields)
