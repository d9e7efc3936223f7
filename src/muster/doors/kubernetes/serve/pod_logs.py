"""What the containers of a pod wrote: `kubectl logs`, once or as it is written."""

import asyncio
import re
from collections.abc import AsyncIterator, Callable

from muster.controller.messages import LogQuery
from muster.controller.use_cases.service import Service
from muster.doors.kubernetes.objects.errors import StatusError, bad_request, forbidden, not_found
from muster.doors.kubernetes.objects.kinds import POD
from muster.doors.kubernetes.objects.times import stamp
from muster.doors.kubernetes.objects.value import (
    JsonObject,
    labels_of,
    name_of,
    namespace_of,
    part,
    uid_of,
)
from muster.doors.kubernetes.pods.pod_of import TASK_LABEL, job_of_pod
from muster.doors.kubernetes.serve.access import Identity
from muster.doors.kubernetes.serve.call import Query, Target, flag, number, text
from muster.doors.kubernetes.serve.pod_containers import container_asked_for, container_status
from muster.doors.kubernetes.serve.pod_jobs import ROOT, PodJobs
from muster.doors.kubernetes.serve.view import ObjectView
from muster.model.errors import ForbiddenError, MusterError, UnknownError
from muster.model.job import JobState
from muster.model.running import Output
from muster.model.value import Instant, JobId, Value, replace

LOOKS_EVERY_S = 0.2
LAST_LOOKS = 3
"""A pod can be gone a moment before the end of its job is told: its last lines come then."""

CHUNK = 1 << 20
TAIL = 1 << 16
PARTS_OF_A_LINE = 4
NOTHING = Output(content=b"", next=0)
STREAMS = {"": b"", "All": b"", "Stdout": b"stdout", "Stderr": b"stderr"}

_CANNOT_START = {
    "ErrImagePull": "image can't be pulled",
    "ImagePullBackOff": "trying and failing to pull image",
}


class LogWish(Value):
    """Which part of a log is wanted, and how. stream: empty for both.

    is_plain: it is as the job wrote it, and no line says when and into which stream.
    """

    container: str
    previous: bool = False
    follow: bool = False
    timestamps: bool = False
    tail: int | None = None
    since: str = ""
    most_bytes: int | None = None
    stream: bytes = b""
    is_plain: bool = False


class PodLogs:
    """Reads logs of pods for those whom the API let ask."""

    def __init__(self, service: Service, view: ObjectView, clock: Callable[[], Instant]) -> None:
        self._service = service
        self._view = view
        self._clock = clock
        self._jobs = PodJobs(service.queries)

    def stream(self, target: Target, query: Query, identity: Identity) -> "LogStream":
        """What to send; StatusError when there is no such pod or container."""
        pod = self._view.get(POD, target.namespace, target.name)
        if pod is None:
            raise not_found(POD, target.name)
        wish, job = self._wish(pod, query), job_of_pod(pod)
        if job is not None:
            return self._of_job(pod, job, wish, identity)
        if not part(pod, "spec").get("nodeName"):
            return LogStream(lambda _offset, _limit: NOTHING, wish, lambda: True)
        _demand_log(pod, wish)
        return LogStream(self._reader(pod, wish), wish, self._is_over(pod, wish))

    def _of_job(
        self, pod: JsonObject, job: JobId, wish: LogWish, identity: Identity
    ) -> "LogStream":
        """Of a job of another door, which has one log and no containers."""
        if wish.previous:
            raise _no_previous(pod, wish.container)
        if wish.timestamps or wish.since:
            raise bad_request(
                f"job {job} did not come as a pod, so its log has no times: "
                "leave out --timestamps, --since and --since-time"
            )
        plain = replace(wish, is_plain=True)
        read = self._job_reader(pod, job, plain, identity)
        return LogStream(read, plain, self._is_job_over(job))

    def _wish(self, pod: JsonObject, query: Query) -> LogWish:
        container = container_asked_for(pod, query)
        seconds = number(query, "sinceSeconds")
        since = text(query, "sinceTime")
        if seconds is not None:
            since = stamp(Instant(self._clock() - seconds * 1_000))
        return LogWish(
            container=container,
            previous=flag(query, "previous"),
            follow=flag(query, "follow"),
            timestamps=flag(query, "timestamps"),
            tail=number(query, "tailLines"),
            since=since,
            most_bytes=number(query, "limitBytes"),
            stream=STREAMS.get(text(query, "stream"), b""),
        )

    def _reader(self, pod: JsonObject, wish: LogWish) -> "Read":
        """Reads a part of the log: so much, from there on (below zero: from the end)."""
        found = self._jobs.of(pod)

        def read(offset: int, limit: int) -> Output:
            if found is None:
                return NOTHING
            asked = LogQuery(
                job=found.job,
                task=found.task,
                container=wish.container,
                previous=wish.previous,
                offset=offset,
                limit=limit,
            )
            try:
                return self._service.queries.attempts.output(ROOT, asked)
            except UnknownError as error:
                if wish.previous:
                    raise _no_previous(pod, wish.container) from error
                return NOTHING

        return read

    def _job_reader(self, pod: JsonObject, job: JobId, wish: LogWish, identity: Identity) -> "Read":
        """Reads what a job of another door wrote, with the rights that `muster logs` asks for."""

        def read(offset: int, limit: int) -> Output:
            asked = LogQuery(
                job=job,
                task=int(labels_of(pod)[TASK_LABEL]),
                stderr=wish.stream == STREAMS["Stderr"],
                offset=offset,
                limit=limit,
            )
            try:
                return self._output(identity, asked)
            except ForbiddenError as error:
                raise forbidden(POD, name_of(pod), str(error)) from error
            except UnknownError:
                return NOTHING

        return read

    def _is_job_over(self, job: JobId) -> Callable[[], bool]:
        """Has this attempt of the job ended? One that waits has none, and nobody waits with it."""
        live = self._service.queries.jobs.live
        began = live(job)

        def is_over() -> bool:
            now = live(job)
            if began is None or now is None or now.attempt != began.attempt:
                return True
            return now.state in (JobState.PENDING, JobState.HELD)

        return is_over

    def _output(self, identity: Identity, asked: LogQuery) -> Output:
        """Who acts for another must be let in as well."""
        if identity.by is not None:
            self._output(identity.by, asked)
        return self._service.queries.attempts.output(identity.caller, asked)

    def _is_over(self, pod: JsonObject, wish: LogWish) -> Callable[[], bool]:
        """Has this run of the container ended?"""
        runs = container_status(pod, wish.container).get("restartCount")

        def is_over() -> bool:
            found = self._view.get(POD, namespace_of(pod), name_of(pod))
            if found is None or uid_of(found) != uid_of(pod):
                return True
            status = container_status(found, wish.container)
            is_running = part(status, "state").get("running") is not None
            return not is_running or status.get("restartCount") != runs or wish.previous

        return is_over


def _demand_log(pod: JsonObject, wish: LogWish) -> None:
    """StatusError where there can be no log yet, in the words of kubelets."""
    status = container_status(pod, wish.container)
    state = part(status, "state")
    has_run = part(status, "lastState").get("terminated") is not None
    if wish.previous and not has_run:
        raise _no_previous(pod, wish.container)
    if ("waiting" in state or not status) and not has_run:
        reason = str(part(state, "waiting").get("reason") or "ContainerCreating")
        why = _CANNOT_START.get(reason, reason)
        named = f'container "{wish.container}" in pod "{name_of(pod)}"'
        raise bad_request(f"{named} is waiting to start: {why}")


def _no_previous(pod: JsonObject, container: str) -> StatusError:
    return bad_request(
        f'previous terminated container "{container}" in pod "{name_of(pod)}" not found'
    )


Read = Callable[[int, int], Output]


class LogStream:
    """The text of a log, a part at a time; with `follow`, until the container has ended."""

    def __init__(self, read: Read, wish: LogWish, is_over: Callable[[], bool]) -> None:
        self._read = read
        self._wish = wish
        self._is_over = is_over
        self._offset = 0
        self._left = wish.most_bytes
        self._is_new_line = True

    def first(self) -> bytes:
        """The beginning of it; StatusError when it cannot be had."""
        if self._wish.tail is None:
            return self._more()
        size, found = TAIL, self._read(-TAIL, TAIL)
        while len(found.content) == size and found.content.count(b"\n") <= self._wish.tail:
            size *= 2
            found = self._read(-size, size)
        self._offset = found.next
        lines = _lines(found.content)
        # What was read from somewhere in the middle begins with half a line, which is not wanted.
        wanted = lines[-self._wish.tail :] if self._wish.tail else []
        return self._shown(wanted)

    async def rest(self, ending: asyncio.Event) -> AsyncIterator[bytes]:
        """The rest of it, and what is written from then on where that is wanted."""
        loop = asyncio.get_running_loop()
        looks_left = LAST_LOOKS if self._wish.follow else 0
        while not ending.is_set() and self._left != 0:
            try:
                more = await loop.run_in_executor(None, self._more)
            except (MusterError, StatusError):
                return
            if more:
                yield more
                continue
            if not looks_left:
                return
            if await loop.run_in_executor(None, self._is_over):
                looks_left -= 1
            await asyncio.sleep(LOOKS_EVERY_S)

    def _more(self) -> bytes:
        """All whole lines that come next, of which some may not be wanted."""
        while raw := self._read(self._offset, CHUNK).content:
            end = len(raw) if self._wish.is_plain else raw.rfind(b"\n") + 1
            if not end:
                return b""
            self._offset += end
            shown = self._shown(_lines(raw[:end]))
            if shown:
                return shown
        return b""

    def _shown(self, lines: list[bytes]) -> bytes:
        whole = b"".join(map(self._shown_line, lines))
        if self._left is not None:
            whole = whole[: self._left]
            self._left -= len(whole)
        return whole

    def _shown_line(self, line: bytes) -> bytes:
        if self._wish.is_plain:
            return line
        parts = line.split(b" ", PARTS_OF_A_LINE - 1)
        if len(parts) < PARTS_OF_A_LINE:
            return b""
        at, stream, mark, words = parts
        is_wanted = at.decode("ascii", "replace") >= self._wish.since
        if not is_wanted or self._wish.stream not in (b"", stream):
            return b""
        shown = at + b" " + words if self._wish.timestamps and self._is_new_line else words
        self._is_new_line = mark == b"F"
        return shown if self._is_new_line else shown.removesuffix(b"\n")


def _lines(content: bytes) -> list[bytes]:
    """The lines with their ends. What returns to its beginning, as progress does, is one line."""
    return [line for line in re.findall(rb"[^\n]*\n?", content) if line]
