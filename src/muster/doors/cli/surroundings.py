"""What one call of the command finds around it, so that commands never ask for it themselves."""

import time
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
    """How lists are shown. output: `table`, `wide`, `json`, `yaml` or `name`.

    columns: their titles, in this order; empty for the usual ones. sort: by this one; `-age` is
    the other way round. watch_s: again and again, with so many seconds between.
    """

    output: str = "table"
    headers: bool = True
    columns: tuple[str, ...] = ()
    sort: str = ""
    watch_s: float | None = None

    @property
    def is_table(self) -> bool:
        """Is it for people?"""
        return self.output in {"table", "wide"}

    @property
    def is_usual(self) -> bool:
        """Is it the table as everybody gets it?"""
        return self.output == "table" and not self.columns and not self.sort


class Surroundings(Value):
    """The outer world: who answers, the clock, the screen, the environment."""

    connect: "Callable[[], Client]"
    now: Callable[[], datetime]
    screen: Screen
    environ: Mapping[str, str]
    workdir: str
    pause: Callable[[float], None] = time.sleep


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
