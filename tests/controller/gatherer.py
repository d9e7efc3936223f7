"""A server that gathers logs, as strict as Loki and an OTLP receiver are, and as bad as it is told.

with gatherer() as loki:
    loki.answers = [(429, {"Retry-After": "1"}), (204, {})]   # then the last one again
    ...
    loki.lines            # [(labels, text, metadata)] of what was taken
"""

import json
import re
from collections.abc import Generator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Condition, Event, Thread
from typing import Any

_LABEL = re.compile(r"[a-zA-Z_][a-zA-Z0-9_]*")
MOST_LABELS = 15
"""Loki's max_label_names_per_series; more are answered with 400."""

_REFUSED: tuple[int, dict[str, str]] = (400, {})

Line = tuple[dict[str, str], str, dict[str, str]]


class Gatherer:
    """Where it is, how it answers, and what it took. hangs: it answers only when this is set."""

    def __init__(self) -> None:
        self.answers: list[tuple[int, dict[str, str]]] = [(204, {})]
        self.hangs: Event | None = None
        self.requests = 0
        self.headers: list[dict[str, str]] = []
        self.lines: list[Line] = []
        self.metrics: list[dict[str, Any]] = []
        self.faults: list[str] = []
        self._changed = Condition()
        gatherer = self

        class Answer(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                status, headers = gatherer.take(self.path, dict(self.headers), body)
                self.send_response(status)
                for name, value in {"Content-Length": "0", **headers}.items():
                    self.send_header(name, value)
                self.end_headers()

            def log_message(self, format: str, *args: object) -> None:
                del format, args

        class Server(ThreadingHTTPServer):
            daemon_threads = True

            def handle_error(self, request: object, client_address: object) -> None:
                """Whoever gave up waiting for a hanging server closed the connection."""

        self._server = Server(("127.0.0.1", 0), Answer)
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()

    def close(self) -> None:
        if self.hangs is not None:
            self.hangs.set()
        self._server.shutdown()
        self._server.server_close()

    def take(self, path: str, headers: dict[str, str], body: bytes) -> tuple[int, dict[str, str]]:
        if self.hangs is not None:
            self.hangs.wait(30)
        with self._changed:
            self.requests += 1
            self.headers.append(headers)
            answer = self.answers[0] if len(self.answers) == 1 else self.answers.pop(0)
            if answer[0] < 300:
                try:
                    self._take(path, json.loads(body))
                except (ValueError, KeyError, TypeError, AssertionError) as fault:
                    self.faults.append(f"{path}: {fault!r}")
                    answer = _REFUSED
            self._changed.notify_all()
        return answer

    def awaits(self, count: int) -> list[Line]:
        """The lines, once there are so many of them."""
        with self._changed:
            came = self._changed.wait_for(lambda: len(self.lines) >= count or self.faults, 20)
            assert came, f"{len(self.lines)} of {count} lines came in {self.requests} requests"
            assert not self.faults, self.faults
            return list(self.lines)

    def awaits_text(self, text: str) -> Line:
        """The line that holds this text."""
        with self._changed:
            came = self._changed.wait_for(
                lambda: any(text in line[1] for line in self.lines) or self.faults, 30
            )
            assert came, f"`{text}` is not in {[line[1] for line in self.lines][-20:]}"
            assert not self.faults, self.faults
            return next(line for line in self.lines if text in line[1])

    def awaits_metrics(self) -> list[dict[str, Any]]:
        with self._changed:
            assert self._changed.wait_for(lambda: self.metrics or self.faults, 20)
            assert not self.faults, self.faults
            return list(self.metrics)

    def awaits_requests(self, count: int) -> None:
        with self._changed:
            assert self._changed.wait_for(lambda: self.requests >= count, 20), self.requests

    def _take(self, path: str, body: Any) -> None:
        match path:
            case "/loki/api/v1/push":
                for stream in body["streams"]:
                    self._take_stream(stream)
            case "/v1/logs":
                for resource in body["resourceLogs"]:
                    self._take_resource(resource)
            case "/v1/metrics":
                for resource in body["resourceMetrics"]:
                    for scope in resource["scopeMetrics"]:
                        self.metrics.extend(scope["metrics"])
            case _:
                raise ValueError("no such path")

    def _take_stream(self, stream: Any) -> None:
        labels = stream["stream"]
        assert 0 < len(labels) <= MOST_LABELS, labels
        for name, value in labels.items():
            assert _LABEL.fullmatch(name), name
            assert isinstance(value, str), name
            assert value, name
        for entry in stream["values"]:
            at, text, metadata = entry
            assert isinstance(at, str), entry
            assert int(at) > 10**18, entry
            assert all(isinstance(each, str) for each in metadata.values()), entry
            self.lines.append((labels, text, metadata))

    def _take_resource(self, resource: Any) -> None:
        labels = _words(resource["resource"]["attributes"])
        for scope in resource["scopeLogs"]:
            for record in scope["logRecords"]:
                assert int(record["timeUnixNano"]) > 10**18, record
                self.lines.append(
                    (labels, record["body"]["stringValue"], _words(record["attributes"]))
                )


def _words(attributes: Any) -> dict[str, str]:
    return {each["key"]: each["value"]["stringValue"] for each in attributes}


@contextmanager
def gatherer() -> Generator[Gatherer]:
    made = Gatherer()
    try:
        yield made
    finally:
        made.close()
