"""One kept connection to slurmrestd over its socket: as lean as a client can be."""

import json
import socket
from typing import Any

from bench.slurm.configuring import Layout

PATIENCE_S = 120.0
JOBS = "/slurm/v0.0.38/jobs"
SUBMIT = "/slurm/v0.0.38/job/submit"

HELD = 2_042
"""slurmrestd says this of a job that it took in as held; it is no failure."""


class SlurmRest:
    """Asks one thing after the other."""

    def __init__(self, layout: Layout) -> None:
        self._path = layout.rest_socket
        self._socket = self._connected()
        self._buffer = b""

    def close(self) -> None:
        """Hang up."""
        self._socket.close()

    def submit(self, request: bytes) -> int:
        """Send a request that `submission` made; the id that the job got."""
        answer = json.loads(self.ask(request))
        failed = [each for each in answer["errors"] if each["error_code"] != HELD]
        if failed:
            raise RuntimeError(f"slurmrestd: {failed}")
        return answer["job_id"]

    def jobs(self) -> list[dict[str, Any]]:
        """Every job, as documents."""
        return json.loads(self.ask(_request("GET", JOBS, b"")))["jobs"]

    def ask(self, request: bytes) -> bytes:
        """The body of the answer."""
        try:
            self._socket.sendall(request)
            return self._answer()
        except (BrokenPipeError, ConnectionResetError):
            self._socket.close()
            self._socket, self._buffer = self._connected(), b""
            self._socket.sendall(request)
            return self._answer()

    def _answer(self) -> bytes:
        head = b""
        while not head:
            before, separator, after = self._buffer.partition(b"\r\n\r\n")
            if separator:
                head, self._buffer = before, after
            else:
                self._receive()
        length = content_length(head)
        parts, size = [self._buffer], len(self._buffer)
        while size < length:
            part = self._socket.recv(1 << 20)
            if not part:
                raise ConnectionResetError
            parts.append(part)
            size += len(part)
        whole = b"".join(parts)
        self._buffer = whole[length:]
        return whole[:length]

    def _receive(self) -> None:
        part = self._socket.recv(1 << 16)
        if not part:
            raise ConnectionResetError
        self._buffer += part

    def _connected(self) -> socket.socket:
        made = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        made.settimeout(PATIENCE_S)
        made.connect(self._path)
        return made


def submission(
    script: str, *, held: bool = False, array: str | None = None, gpus: int = 1
) -> bytes:
    """A request for one job with GPUs, whole, so that sending it again costs nothing."""
    job: dict[str, Any] = {
        "name": "bench",
        "tasks": 1,
        "gres": f"gpu:{gpus}",
        "current_working_directory": "/tmp",  # noqa: S108 -- nothing is written there
        "environment": {"PATH": "/usr/bin:/bin"},
        "standard_output": "/dev/null",
        "time_limit": 60,
    }
    if held:
        job["hold"] = True
    if array is not None:
        job["array"] = array
    return _request("POST", SUBMIT, json.dumps({"job": job, "script": script}).encode())


def content_length(head: bytes) -> int:
    """How long the body is that follows this head."""
    for line in head.split(b"\r\n")[1:]:
        name, _, value = line.partition(b":")
        if name.strip().lower() == b"content-length":
            return int(value)
    return 0


def _request(method: str, path: str, body: bytes) -> bytes:
    head = (
        f"{method} {path} HTTP/1.1\r\nHost: localhost\r\nConnection: keep-alive\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body
