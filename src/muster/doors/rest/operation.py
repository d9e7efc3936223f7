"""What one route is: the table of these builds the routes and describes them, so neither lies."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from msgspec import Raw

from muster.controller.messages import Caller
from muster.doors.line_cache import LineCaches
from muster.doors.request.bad import MOST_INTEGER, BadRequestError, bounded, integer, read
from muster.doors.rest.counts import DoorCounts
from muster.doors.rest.turns import Turns
from muster.doors.slurm.cache import Cache
from muster.doors.slurm.traffic import Traffic
from muster.doors.units import instant
from muster.model.errors import UnknownError
from muster.model.site import Role
from muster.model.value import Instant, JobId, Value

if TYPE_CHECKING:
    from muster.controller.queries.queries import Queries
    from muster.controller.use_cases.service import Service
    from muster.doors.rest.hub import Hub

T = TypeVar("T")

JSON = "application/json"
READERS = 16
THINKERS = 4


class KubernetesEntry(Protocol):
    """How to reach the Kubernetes API of this installation."""

    @property
    def server(self) -> str:
        """Its address."""
        ...

    @property
    def ca(self) -> bytes:
        """The certificate of its CA, in PEM."""
        ...

    def token_for(self, caller: Caller) -> tuple[str, Instant]:
        """A token with the caller's own rights, and when it ends."""
        ...


@dataclass(frozen=True, kw_only=True)
class Door:
    """What all routes share: whom they ask, what time it is, and what happens meanwhile.

    lines: of waiting jobs. slurm_cache, slurm_traffic: what calls of Slurm's commands share.
    readers: threads for what reads a disk. thinkers: for what may take seconds, so that a few who
    ask for explanations never hold up those who only want to look.
    turns: of costly questions. counts: of all answers.
    kubernetes: None where its API is not served.
    """

    service: "Service"
    clock: Callable[[], Instant]
    hub: "Hub"
    kubernetes: KubernetesEntry | None = None
    lines: LineCaches[Raw] = field(default_factory=LineCaches[Raw])
    slurm_cache: Cache = field(default_factory=Cache)
    slurm_traffic: Traffic = field(default_factory=Traffic)
    readers: ThreadPoolExecutor = field(
        default_factory=lambda: ThreadPoolExecutor(READERS, thread_name_prefix="rest-read")
    )
    turns: Turns = field(default_factory=Turns)
    counts: DoorCounts = field(default_factory=DoorCounts)
    thinkers: ThreadPoolExecutor = field(
        default_factory=lambda: ThreadPoolExecutor(THINKERS, thread_name_prefix="rest-think")
    )

    def close(self) -> None:
        """No request is answered any more; what a thread still waits for is not waited for."""
        for pool in (self.readers, self.thinkers):
            pool.shutdown(wait=False, cancel_futures=True)


def always() -> bool:
    return True


@dataclass(frozen=True, kw_only=True)
class Asked:
    """One request, read: who asks for what.

    begin_stream: called before an answer that goes on; False if the client has enough of them.
    is_open: nobody said who they are, and they ask from this machine itself.
    """

    door: Door
    caller: Caller
    path: Mapping[str, Any]
    query: Mapping[str, Sequence[str]]
    headers: Mapping[bytes, bytes]
    document: Any = None
    begin_stream: Callable[[], bool] = always
    is_open: bool = False

    @property
    def service(self) -> "Service":
        """What changes things."""
        return self.door.service

    @property
    def queries(self) -> "Queries":
        """What looks at things."""
        return self.door.service.queries

    @property
    def job(self) -> JobId:
        """The job that the path names."""
        number: int = self.path["id"]
        if number > MOST_INTEGER:
            raise UnknownError(f"There is no job {number}; see the list of jobs.")
        return JobId(number)

    async def read(self, look: Callable[..., T], *args: Any) -> T:
        """What a look at the disk gives, while others are answered."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self.door.readers, look, *args)

    async def think(self, look: Callable[..., T], *args: Any) -> T:
        """The same for what may take seconds."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self.door.thinkers, look, *args)

    def text(self, name: str) -> str | None:
        """A parameter; of several the last one counts."""
        given = self.query.get(name)
        return given[-1] if given else None

    def texts(self, name: str) -> tuple[str, ...]:
        """All values of a parameter, repeated or with commas between them; each counts once."""
        given = (part for each in self.query.get(name, ()) for part in each.split(",") if part)
        return tuple(dict.fromkeys(given))

    def number(self, name: str, default: int, *, least: int = 0, most: int = MOST_INTEGER) -> int:
        """A parameter that is a number."""
        given = self.text(name)
        if given is None:
            return default
        return bounded(name, integer(name, given), least, most)

    def numbers(self, name: str) -> tuple[int, ...]:
        """A parameter that may be several numbers."""
        return tuple(integer(name, each) for each in self.texts(name))

    def flag(self, name: str) -> bool:
        """A parameter that is `true` or `false`."""
        given = self.text(name) or "false"
        if given not in {"true", "false"}:
            raise BadRequestError(name, f"`{given}` is neither `true` nor `false`")
        return given == "true"

    def instant(self, name: str) -> Instant | None:
        """A parameter that is an instant."""
        given, now = self.text(name), self.door.clock()
        return None if given is None else read(name, lambda text: instant(text, now), given)


@dataclass(frozen=True, kw_only=True)
class Content:
    """An answer that is no document, or one that is already written."""

    body: bytes
    media: str = JSON
    encoding: str | None = None


@dataclass(frozen=True, kw_only=True)
class Flow:
    """An answer that goes on; after `first` its parts are made while the client listens.

    hopeless: set when the client falls so far behind that it must come back later.
    """

    parts: AsyncGenerator[bytes]
    media: str
    first: bytes = b""
    hopeless: asyncio.Event = field(default_factory=asyncio.Event)
    headers: Mapping[str, str] = field(default_factory=dict[str, str])


Reply = Value | Content | Flow


@dataclass(frozen=True, kw_only=True)
class Parameter:
    """A parameter of the query. kind: `string`, `integer` or `boolean`."""

    name: str
    text: str
    kind: str = "string"
    repeated: bool = False


@dataclass(frozen=True, kw_only=True)
class Operation:
    """One route: what it takes and gives, and the function that answers.

    media: of an answer that is no document. open: answered to everybody, known or not.
    open_here: where rules open it, to whoever asks from this machine itself, known or not.
    needs: the least role, in some queue, of those who may ask at all: who has less is refused
    before anything that they send is read. costly: it is answered in turns.
    """

    method: str
    path: str
    summary: str
    answer: Callable[[Asked], Awaitable[Reply]]
    takes: type[Value] | None = None
    gives: type[Value] | None = None
    status: int = 200
    parameters: tuple[Parameter, ...] = ()
    media: str = JSON
    open: bool = False
    open_here: bool = False
    needs: Role = Role.VIEWER
    costly: bool = False


async def done(future: "Future[T]") -> T:
    """What came of a change, when it is durable."""
    return await asyncio.wrap_future(future)
