"""A real Slurm as an engine: slurmctld, four slurmd, and processes that are really run."""

import contextlib
import os
from collections.abc import Generator
from pathlib import Path

import pytest

from bench.slurm.configuring import Look
from bench.slurm.installing import lacks_tokens, missing
from bench.slurm.lab import Lab, laboratory
from contracts.backends.engine import Doing
from contracts.backends.real import RealEngine, clock
from muster.backends.base import Backend, Run
from muster.backends.slurm.backend import SlurmBackend, SlurmLink
from muster.backends.slurm.commands import Access, Commands
from muster.backends.slurm.nodes import Fleet
from muster.backends.slurm.rest import Rest, RestAccess
from muster.backends.slurm.submission import Manner
from muster.backends.slurm.wire import Wire
from muster.model.cluster import Node
from muster.model.value import ClusterName, Duration, replace

NAME = ClusterName("lab")
NODES = 4
USUAL = Manner()
KEEPS_LONG = Look(settings={"MinJobAge": 300})
WITH_TOKENS = Look(settings={"MinJobAge": 300}, has_tokens=True)


@contextlib.contextmanager
def slurm_lab(look: Look = KEEPS_LONG, *, nodes: int = NODES) -> Generator[Lab]:
    """A Slurm for tests; without one they say so."""
    if lacking := missing():
        pytest.skip(f"there is no real Slurm here ({', '.join(lacking)} missing)")
    if os.geteuid() != 0:
        pytest.skip("only root can start a Slurm of its own")
    if look.has_tokens and lacks_tokens():
        pytest.skip("there is no real Slurm with tokens here (slurm-wlm-jwt-plugin missing)")
    with laboratory(nodes=nodes, gpus_per_node=4, look=look, rest=look.has_tokens) as lab:
        yield lab


class SlurmEngine(RealEngine):
    def __init__(self, home: Path, lab: Lab, manner: Manner = USUAL) -> None:
        self._manner = manner
        self.home, self.lab = home, lab
        self.commands = self.wire()
        fleet = Fleet(cluster=NAME, partitions=self.commands.partitions())
        self._nodes = tuple(each.node for each in self.commands.nodes(fleet))
        super().__init__(home)

    def wire(self) -> Wire:
        return Commands(Access(conf=self.lab.layout.conf))

    def nodes(self) -> tuple[Node, ...]:
        return self._nodes

    def begins(self, doing: Doing, limit: int | None) -> Run:
        # An order takes Slurm longer than a supervisor: a job must still be there when it arrives.
        return super().begins(replace(doing, lasts=Duration(10 * doing.lasts)), limit)

    def opened(self) -> Backend:
        link = SlurmLink(name=NAME, site=self.home.name, manner=self._manner)
        return SlurmBackend(link, self.commands, self.home / "notes", self.news.set, clock)


class RestEngine(SlurmEngine):
    """The same cluster through slurmrestd alone: without its commands it cannot suspend."""

    def wire(self) -> Wire:
        token = self.home / "token"
        token.write_text(self.lab.token(), encoding="ascii")
        socket = self.lab.layout.rest_socket
        return Rest(RestAccess(url=f"unix:{socket}", token_file=str(token)))

    def opened(self) -> Backend:
        link = SlurmLink(name=NAME, site=self.home.name, manner=self._manner, suspends=False)
        return SlurmBackend(link, self.commands, self.home / "notes", self.news.set, clock)
