"""The forecaster in a process of its own, so that neither planning nor answers wait for it.

The process keeps its own copy of the world and is sent what changed. If it dies, the next question
starts another one and sends it everything.
"""

import logging
import subprocess
import sys
from collections.abc import Iterator, Sequence
from threading import Lock

from muster.controller.dates.client import (
    Correspondence,
    Past,
    RuledSnapshot,
    SupposedDates,
    supposed_dates,
)
from muster.controller.dates.protocol import DatesReply, JobDate, Lessons, decode_reply, encode
from muster.controller.planner.protocol import read_frame, write_frame
from muster.model.errors import OurBugError
from muster.model.site import Site
from muster.model.snapshot import Snapshot
from muster.model.value import JobId

log = logging.getLogger("muster.dates")


class ProcessForecasts:
    """Asks the forecaster's process. One thread calls; another may close.

    server: the arguments of the Python that is the forecaster's process.
    """

    def __init__(self, server: Sequence[str], past: Past) -> None:
        self._server = server
        self._past = past
        self._process: subprocess.Popen[bytes] | None = None
        self._sent = Correspondence(past)
        self._asking = Lock()

    def dates(self, snapshot: Snapshot, site: Site, news: Lessons) -> Iterator[tuple[JobDate, ...]]:
        """What the process answers, frame by frame."""
        with self._asking:
            process = self._running()
            request = self._sent.request(snapshot, site, news)
            try:
                for reply in _answers(process, encode(request)):
                    if reply.told:
                        yield reply.told
            except BaseException:
                # It is not known what the process knows of the world.
                self._end()
                raise

    def suppose(
        self, usual: RuledSnapshot, changed: RuledSnapshot, job: JobId | None
    ) -> SupposedDates:
        """What the process says of the changed world."""
        with self._asking:
            process = self._running()
            request = self._sent.supposing(usual, changed, job)
            try:
                return supposed_dates(_answers(process, encode(request)))
            except BaseException:
                self._end()
                raise

    def start(self) -> None:
        """Start the process, so that the first who asks need not wait for it."""
        with self._asking:
            self._running()

    @property
    def pid(self) -> int | None:
        """The process, if there is one."""
        return None if self._process is None else self._process.pid

    def close(self) -> None:
        """End the process; who waits for its answer gets an error."""
        process = self._process
        if process is not None:
            process.kill()
        with self._asking:
            self._end()

    def _running(self) -> "subprocess.Popen[bytes]":
        if self._process is not None and self._process.poll() is None:
            return self._process
        if self._process is not None:
            log.warning("the forecaster's process ended; starting another")
            self._end()
        self._sent = Correspondence(self._past)
        self._process = subprocess.Popen(  # noqa: S603 our own Python
            [sys.executable, *self._server], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        return self._process

    def _end(self) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        process.kill()
        process.wait()
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                try:
                    pipe.close()
                except OSError:
                    # What was not written yet has nobody to read it.
                    continue


def _answers(process: "subprocess.Popen[bytes]", request: bytes) -> Iterator[DatesReply]:
    requests, replies = process.stdin, process.stdout
    if requests is None or replies is None:
        raise OurBugError("the forecaster's process has no pipe")
    try:
        write_frame(requests, request)
        while True:
            frame = read_frame(replies)
            if frame is None:
                raise OurBugError("the forecaster's process ended")
            reply = decode_reply(frame)
            yield reply
            if reply.is_last:
                return
    except OSError as error:
        raise OurBugError(f"the forecaster's process ended ({error})") from error
