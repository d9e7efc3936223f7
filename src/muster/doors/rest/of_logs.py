"""Routes about what jobs write: their output, as it is or as it grows."""

import asyncio
from collections.abc import AsyncGenerator

from muster.controller.messages import JobQuery, LogQuery
from muster.doors.request.bad import MOST_INTEGER, BadRequestError
from muster.doors.rest.operation import Asked, Flow, Operation, Parameter
from muster.model.errors import UnknownError
from muster.model.running import Output

PART = 262_144
"""So many bytes are read at once."""

LONGEST_LOOK = 64 * PART
"""No further back than this are last lines looked for."""

PAUSE_S = 0.2
"""How often a file that does not grow is looked at again."""

BYTES = "application/octet-stream"


class _LogPosition:
    """Where somebody is in what one task of a job wrote."""

    def __init__(self, asked: Asked) -> None:
        stream = asked.text("stream") or "stdout"
        if stream not in {"stdout", "stderr"}:
            raise BadRequestError("stream", f"`{stream}` is neither `stdout` nor `stderr`")
        self._asked = asked
        self._stderr = stream == "stderr"
        self._task = asked.number("task", 0)
        self._attempt = asked.number("attempt", 0) or None
        self.offset = asked.number("offset", 0, least=-MOST_INTEGER)

    async def find_beginning(self) -> None:
        """Where the last lines begin that are asked for, by looking back from the end."""
        wanted = self._asked.number("tail", 0)
        size = PART
        while wanted:
            output = await self._asked.read(self._read, -size, size)
            self.offset = output.next - len(output.content)
            begins = last_lines(output.content, wanted)
            if begins or len(output.content) < size or size >= LONGEST_LOOK:
                self.offset += begins
                return
            size *= 4

    async def part(self) -> bytes:
        """What comes next; nothing at the end of what is there."""
        output = await self._asked.read(self._read, self.offset, PART)
        self.offset = output.next
        return output.content

    async def begin_again_if_shorter(self) -> None:
        """A new attempt may have begun its file again."""
        end = await self._asked.read(self._read, -1, 1)
        self.offset = 0 if end.next < self.offset else self.offset

    def _read(self, offset: int, limit: int) -> Output:
        query = LogQuery(
            job=self._asked.job,
            attempt=self._attempt,
            stderr=self._stderr,
            task=self._task,
            offset=offset,
            limit=limit,
        )
        return self._asked.queries.attempts.output(self._asked.caller, query)


def last_lines(content: bytes, count: int) -> int:
    """Where the last so many lines begin; 0 when there are no more than these."""
    at = len(content) - content.endswith(b"\n")
    for _ in range(count):
        at = content.rfind(b"\n", 0, at)
        if at < 0:
            return 0
    return at + 1


async def _log(asked: Asked) -> Flow:
    reading = _LogPosition(asked)
    if asked.flag("follow"):
        # A caller who may not see it, or names no job, is refused before anything is sent.
        first = await _first_part(asked, reading)
        return Flow(parts=_followed(asked, reading, first), media=BYTES)
    await reading.find_beginning()
    return Flow(parts=_whole(reading, await reading.part()), media=BYTES)


async def _first_part(asked: Asked, reading: _LogPosition) -> bytes:
    try:
        await reading.find_beginning()
        return await reading.part()
    except UnknownError:
        # Nothing is written yet; a job that does not exist is unknown here as well.
        await asked.read(asked.queries.jobs.detail, asked.caller, asked.job)
        return b""


async def _whole(reading: _LogPosition, first: bytes) -> AsyncGenerator[bytes]:
    part = first
    while part:
        yield part
        part = await reading.part()


async def _followed(asked: Asked, reading: _LogPosition, first: bytes) -> AsyncGenerator[bytes]:
    part, attempt = first, _attempt(asked)
    while True:
        if part:
            yield part
        # Looked at before the file: what is written before the end is read after it.
        now = _attempt(asked)
        try:
            if now != attempt and now is not None:
                attempt = now
                await reading.begin_again_if_shorter()
            part = await reading.part()
        except UnknownError:
            part = b""
        if part:
            continue
        if now is None:
            return
        await asyncio.sleep(PAUSE_S)


def _attempt(asked: Asked) -> int | None:
    """Which attempt goes on, or None when the job is over."""
    page = asked.queries.jobs.page(asked.caller, JobQuery(jobs=(asked.job,), limit=1))
    return page.jobs[0].job.attempt if page.jobs else None


PARAMETERS = (
    Parameter(name="stream", text="`stdout` or `stderr`"),
    Parameter(name="task", text="of which task", kind="integer"),
    Parameter(name="attempt", text="of which attempt; by default the last one", kind="integer"),
    Parameter(name="offset", text="from which byte on; below zero from the end", kind="integer"),
    Parameter(name="tail", text="only the last so many lines", kind="integer"),
    Parameter(name="follow", text="go on until the job is over", kind="boolean"),
)

OPERATIONS = (
    Operation(
        method="GET",
        path="/v1/jobs/{id:int}/log",
        summary="Read what a job writes",
        answer=_log,
        parameters=PARAMETERS,
        media=BYTES,
    ),
)
