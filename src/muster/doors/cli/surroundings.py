"""What one call of the command finds around it, so that commands never ask for it themselves."""

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import TYPE_CHECKING

from muster.doors.cli.daemon.port import Daemon
from muster.doors.cli.screen.screen import Screen
from muster.doors.cli.screen.times import Moment
from muster.model.value import Value

if TYPE_CHECKING:
    from muster.client.calls import Client


class Look(Value):
    """How lists are shown. output: `table`, `wide`, `json`, `yaml` or `name`."""

    output: str = "table"
    headers: bool = True

    @property
    def is_table(self) -> bool:
        """Is it for people?"""
        return self.output in {"table", "wide"}


class Surroundings(Value):
    """The outer world: who answers, the clock, the screen, the environment."""

    connect: "Callable[[], Client]"
    now: Callable[[], datetime]
    screen: Screen
    environ: Mapping[str, str]
    workdir: str


class Call:
    """One call of the command. Options change `look` and `screen` before the command runs."""

    def __init__(self, daemon: Daemon, around: Surroundings) -> None:
        self.daemon = daemon
        self.around = around
        self.screen = around.screen
        self.look = Look()
        self._client: Client | None = None

    @property
    def client(self) -> "Client":
        """The server, connected to when it is first asked."""
        if self._client is None:
            self._client = self.around.connect()
        return self._client

    @property
    def moment(self) -> Moment:
        """Now, on the user's clock."""
        return Moment(now=self.around.now())

    def close(self) -> None:
        """Hang up."""
        if self._client is not None:
            self._client.close()
