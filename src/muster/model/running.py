"""What can be seen of an attempt while it runs: what it writes, its terminal, what it uses."""

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
