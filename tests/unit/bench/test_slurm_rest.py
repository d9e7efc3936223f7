import json
import socket
from pathlib import Path
from threading import Thread

import pytest

from bench.slurm.configuring import Layout, Ports
from bench.slurm.rest import SlurmRest, content_length, submission


def test_the_length_of_a_body_is_found_whatever_the_letters() -> None:
    assert content_length(b"HTTP/1.1 200 OK\r\nCONTENT-length: 12\r\nX: y") == 12
    assert content_length(b"HTTP/1.1 204 No Content") == 0


def test_a_submission_is_a_whole_request() -> None:
    head, _, body = submission("#!/bin/sh\ntrue\n", held=True, array="0-9").partition(b"\r\n\r\n")

    document = json.loads(body)
    assert head.startswith(b"POST /slurm/v0.0.38/job/submit HTTP/1.1\r\n")
    assert content_length(head) == len(body)
    assert document["script"] == "#!/bin/sh\ntrue\n"
    assert (document["job"]["hold"], document["job"]["array"]) == (True, "0-9")


@pytest.mark.parametrize(
    ("errors", "is_taken"),
    [([], True), ([{"error_code": 2042}], True), ([{"error_code": 2017}], False)],
)
def test_a_job_that_is_held_was_taken_in_and_other_errors_are_reported(
    tmp_path: Path, errors: list[dict[str, int]], is_taken: bool
) -> None:
    layout = Layout(
        folder=str(tmp_path),
        machine="iron",
        ports=Ports(slurmctld=1, slurmdbd=2, mariadb=3, slurmd=(4,)),
        gpus_per_node=1,
    )
    answer = json.dumps({"errors": errors, "job_id": 7}).encode()
    (tmp_path / "rest").mkdir()
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(layout.rest_socket)
        listener.listen()
        server = Thread(target=_answer_once, args=(listener, answer))
        server.start()
        client = SlurmRest(layout)
        try:
            if is_taken:
                assert client.submit(submission("true")) == 7
            else:
                with pytest.raises(RuntimeError, match="2017"):
                    client.submit(submission("true"))
        finally:
            client.close()
            server.join()


def _answer_once(listener: socket.socket, body: bytes) -> None:
    connection, _ = listener.accept()
    with connection:
        connection.recv(65_536)
        head = f"HTTP/1.1 200 OK\r\nContent-Length: {len(body)}\r\n\r\n".encode()
        # In two parts, as the network may cut it.
        connection.sendall(head[:20])
        connection.sendall(head[20:] + body)
