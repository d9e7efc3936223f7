"""Follows what running attempts write, as far as their clusters keep it in files that we can read.

What is read is on its way at once: a job that writes more than can be read is not waited for, and
what is passed over is counted.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping

from muster.backends.base import OutputQuery
from muster.model.errors import MusterError
from muster.model.job import Job
from muster.model.launch import Launch
from muster.model.placement import Allocation
from muster.model.running import Output
from muster.model.value import ClusterName, JobId, NodeId, Value
from muster.telemetry.sinks.lines import LONGEST, Line, LineKind, cleaned

PART = 262_144
MOST_PARTS = 4
"""So much of one file is read in one turn."""

MOST_BEHIND = 8 * 1_048_576
"""Whoever writes so much more than was read is passed over to the end."""

MOST_TASKS = 64
"""Of so many tasks of an attempt that write files of their own."""

MOST_ATTEMPTS = 1_000
"""So many attempts are followed at once; those that began last are left out."""

Read = Callable[[ClusterName, OutputQuery], Output]
Offsets = dict[str, int]
"""How far was read, by `JOB.TASK.STREAM`; so a new process goes on where the last one was."""


class Held(Value, gc=False):
    """A job and what its running attempt holds."""

    job: Job
    allocation: Allocation


class _Stream:
    """One file."""

    __slots__ = ("begins", "offset", "rest")

    def __init__(self, offset: int, *, begins: bool) -> None:
        self.offset = offset
        self.begins = begins
        self.rest = b""


class _Followed:
    """One attempt. places: the files that its streams were found in."""

    __slots__ = ("attempt", "cluster", "job", "launch", "nodes", "places", "streams")

    def __init__(self, held: Held, launch: Launch) -> None:
        self.job = held.job
        self.launch = launch
        self.attempt = held.allocation.attempt
        self.cluster = held.allocation.cluster
        self.nodes: tuple[NodeId, ...] = tuple(
            dict.fromkeys(each.node for each in held.allocation.placements)
        )
        self.places: set[str] = set()
        self.streams: dict[tuple[int, bool], _Stream] = {}


class Tail:
    """Reads on, again and again. One thread."""

    def __init__(self, read: Read, launch_of: Callable[[Job], Launch | None]) -> None:
        self.skipped_bytes = 0
        self._read = read
        self._launch_of = launch_of
        self._followed: dict[JobId, _Followed] = {}
        self._offsets: Offsets = {}

    def begin(self, offsets: Mapping[str, int]) -> None:
        """Go on from there. Attempts that ran before are followed from their beginning, else."""
        self._followed = {}
        self._offsets = dict(offsets)

    @property
    def offsets(self) -> Offsets:
        return dict(self._offsets)

    def turn(
        self, running: Mapping[JobId, Held], ended: Iterable[Held], now_ns: int
    ) -> Iterator[Line]:
        """What was written since the last turn. ended: attempts that are over since then."""
        followed = {(job, each.attempt) for job, each in self._followed.items()}
        short = [each for each in ended if (each.job.id, each.allocation.attempt) not in followed]
        gone = [job for job, each in self._followed.items() if _is_over(each, running.get(job))]
        for each in (*(self._followed.pop(job) for job in gone), *map(self._begun, short)):
            yield from self._lines(each, now_ns)
            yield from _last_words(each, now_ns)
            if each.job.id not in running:
                self._forget(each.job.id)
        for job, held in running.items():
            if job not in self._followed and len(self._followed) < MOST_ATTEMPTS:
                self._followed[job] = self._begun(held)
        for each in self._followed.values():
            yield from self._lines(each, now_ns)

    def _begun(self, held: Held) -> _Followed:
        followed = _Followed(held, self._launch_of(held.job) or Launch())
        tasks = min(sum(1 for _ in held.allocation.placements), MOST_TASKS)
        for task in range(max(1, tasks)):
            for is_stderr in (False, True):
                if is_stderr and followed.launch.stderr is None:
                    continue
                offset = self._offsets.get(_key(followed, task, is_stderr), 0)
                followed.streams[task, is_stderr] = _Stream(offset, begins=True)
        return followed

    def _forget(self, job: JobId) -> None:
        for key in [key for key in self._offsets if key.startswith(f"{job}.")]:
            del self._offsets[key]

    def _lines(self, followed: _Followed, now_ns: int) -> Iterator[Line]:
        for (task, is_stderr), stream in list(followed.streams.items()):
            content = self._content(followed, task, is_stderr)
            if content:
                self._offsets[_key(followed, task, is_stderr)] = stream.offset
                *whole, rest = (stream.rest + content).split(b"\n")
                # A line that never ends is cut where it is too long to be one.
                while len(rest) > LONGEST:
                    whole.append(rest[:LONGEST])
                    rest = rest[LONGEST:]
                stream.rest = rest
                yield from _lines_of(followed, (task, is_stderr), whole, now_ns)

    def _content(self, followed: _Followed, task: int, is_stderr: bool) -> bytes:  # noqa: FBT001 - a key of streams
        """What comes next in the file; a file that another stream has is not read twice."""
        stream = followed.streams[task, is_stderr]
        parts: list[bytes] = []
        try:
            if stream.begins:
                self._find_beginning(followed, task, is_stderr)
            while len(parts) < MOST_PARTS:
                output = self._output(followed, (task, is_stderr), stream.offset, PART)
                stream.offset = output.next
                parts.append(output.content)
                if len(output.content) < PART:
                    break
            else:
                self._catch_up(followed, task, is_stderr)
        except _NotFollowedError:
            del followed.streams[task, is_stderr]
        except MusterError:
            # Nothing is written yet, or it cannot be read now.
            return b"".join(parts)
        return b"".join(parts)

    def _find_beginning(self, followed: _Followed, task: int, is_stderr: bool) -> None:  # noqa: FBT001 - as above
        """A new attempt may have begun its file again."""
        stream = followed.streams[task, is_stderr]
        end = self._output(followed, (task, is_stderr), -1, 1)
        if end.where is None or end.where in followed.places:
            raise _NotFollowedError
        followed.places.add(end.where)
        stream.offset = 0 if end.next < stream.offset else stream.offset
        stream.begins = False

    def _catch_up(self, followed: _Followed, task: int, is_stderr: bool) -> None:  # noqa: FBT001 - as above
        stream = followed.streams[task, is_stderr]
        end = self._output(followed, (task, is_stderr), -1, 1).next
        if end - stream.offset > MOST_BEHIND:
            self.skipped_bytes += end - stream.offset
            stream.offset, stream.rest = end, b""

    def _output(
        self, followed: _Followed, which: tuple[int, bool], offset: int, limit: int
    ) -> Output:
        task, is_stderr = which
        query = OutputQuery(
            job=followed.job,
            launch=followed.launch,
            attempt=followed.attempt,
            nodes=followed.nodes,
            stderr=is_stderr,
            task=task,
            offset=offset,
            limit=limit,
        )
        return self._read(followed.cluster, query)


class _NotFollowedError(Exception):
    """Its cluster keeps no files that we could follow, or another stream has this one."""


def _is_over(followed: _Followed, held: Held | None) -> bool:
    return held is None or held.allocation.attempt != followed.attempt


def _key(followed: _Followed, task: int, is_stderr: bool) -> str:  # noqa: FBT001 - as above
    return f"{followed.job.id}.{task}.{'err' if is_stderr else 'out'}"


def _last_words(followed: _Followed, now_ns: int) -> Iterator[Line]:
    """What stands after the last end of a line."""
    for which, stream in followed.streams.items():
        if stream.rest:
            yield from _lines_of(followed, which, [stream.rest], now_ns)


def _lines_of(
    followed: _Followed, which: tuple[int, bool], whole: list[bytes], now_ns: int
) -> Iterator[Line]:
    """Times differ by a nanosecond, so that they stay in order wherever they are kept."""
    task, is_stderr = which
    job = followed.job
    fields = (
        ("job", job.label),
        ("user", job.spec.user),
        ("attempt", str(followed.attempt)),
        ("task", str(task)),
        ("stream", "stderr" if is_stderr else "stdout"),
        ("node", followed.nodes[0] if followed.nodes else ""),
    )
    for number, content in enumerate(whole):
        # Of a line that was written over again and again, a terminal shows the last state.
        shown = content.rstrip(b"\r").rpartition(b"\r")[2]
        if shown:
            yield Line(
                at_ns=now_ns + number,
                text=cleaned(shown.decode("utf-8", "replace")),
                kind=LineKind.JOB,
                cluster=followed.cluster,
                queue=job.spec.queue,
                fields=fields,
            )
