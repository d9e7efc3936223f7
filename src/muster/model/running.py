"""What can be seen of an attempt while it runs: what it writes, its terminal, what it uses.

And who visits its pod: with a command of their own, to watch a container, or to reach a port.
"""

from typing import Protocol

from muster.model.history import Used
from muster.model.value import Value


class Output(Value):
    """A part of what a job wrote, and where the next part begins.

    where: the file, on clusters that keep output in files.
    """

    content: bytes
    next: int
    where: str | None = None


class Measured(Value):
    """What runs of an attempt just now: the processes of one step, or of the job's own script.

    step: its number; None for the script. processes: by the names that the engine gives them.
    resident_kib is what all of them hold now together, peak_kib and virtual_kib the most that one
    of them held.
    """

    step: int | None
    processes: tuple[str, ...]
    used: Used
    resident_kib: int
    peak_kib: int
    virtual_kib: int


class TerminalStream(Protocol):
    """A connection to the terminal of a running job, used inside one event loop.

    ConnectionError: the terminal is gone without having said how the job ended.
    """

    @property
    def exit_code(self) -> int | None:
        """How the job ended (128 + signal); None while it has not."""
        ...

    async def read(self) -> bytes:
        """What the job wrote next; nothing when it has ended."""
        ...

    async def write(self, keys: bytes) -> None:
        """What the user typed."""
        ...

    async def resize(self, rows: int, columns: int) -> None: ...

    def close(self) -> None:
        """Leave; the job goes on."""
        ...


class RunInside(Value):
    """Run a command in a container, beside its own. stdin: it reads what the visitor sends."""

    container: str
    argv: tuple[str, ...]
    stdin: bool = False
    tty: bool = False


class AttachTo(Value, gc=False):
    """Watch what a container writes from now on, and type into it where it takes that."""

    container: str
    stdin: bool = False


class ConnectTo(Value, gc=False):
    """Connect to a port of the pod."""

    port: int


Visit = RunInside | AttachTo | ConnectTo

STDOUT, STDERR = 1, 2


class VisitStream(Protocol):
    """A visit that has begun, used inside one event loop.

    ConnectionError: the pod is gone without having said how it ended.
    """

    @property
    def exit_code(self) -> int | None:
        """How the command or the container ended (128 + signal); None while it has not."""
        ...

    @property
    def failure(self) -> str | None:
        """Why the command could not even be started."""
        ...

    async def read(self) -> tuple[int, bytes]:
        """What came next, and from where: STDOUT or STDERR; nothing when there is no more."""
        ...

    async def write(self, content: bytes) -> None:
        """What the visitor sends."""
        ...

    async def end_input(self) -> None:
        """The visitor sends no more."""
        ...

    async def resize(self, rows: int, columns: int) -> None: ...

    def close(self) -> None:
        """Leave; a command that runs is told."""
        ...
