"""A real Slurm as an engine: slurmctld, four slurmd, and processes that are really run."""

import contextlib
import os
from collections.abc import Generator
from pathlib import Path

import pytest

from bench.slurm.configuring import Look
from bench.slurm.installing import missing
from bench.slurm.lab import Lab, laboratory
from contracts.backends.engine import Doing
from contracts.backends.real import RealEngine, clock
from muster.backends.base import Backend, Run
from muster.backends.slurm.backend import SlurmBackend, SlurmLink
from muster.backends.slurm.commands import Access, Commands
from muster.backends.slurm.nodes import Fleet
from muster.backends.slurm.submission import Manner
from muster.model.cluster import Node
from muster.model.value import ClusterName, Duration, replace

NAME = ClusterName("lab")
NODES = 4
USUAL = Manner()
KEEPS_LONG = Look(settings={"MinJobAge": 300})


@contextlib.contextmanager
def slurm_lab(look: Look = KEEPS_LONG, *, nodes: int = NODES) -> Generator[Lab]:
    """A Slurm for tests; without one they say so."""
    if lacking := missing():
        pytest.skip(f"there is no real Slurm here ({', '.join(lacking)} missing)")
    if os.geteuid() != 0:
        pytest.skip("only root can start a Slurm of its own")
    with laboratory(nodes=nodes, gpus_per_node=4, look=look, rest=False) as lab:
        yield lab


class SlurmEngine(RealEngine):
    def __init__(self, home: Path, lab: Lab, manner: Manner = USUAL) -> None:
        self._manner = manner
        self.commands = Commands(Access(conf=lab.layout.conf))
        fleet = Fleet(cluster=NAME, partitions=self.commands.partitions())
        self._nodes = tuple(each.node for each in self.commands.nodes(fleet))
        super().__init__(home)

    def nodes(self) -> tuple[Node, ...]:
        return self._nodes

    def begins(self, doing: Doing, limit: int | None) -> Run:
        # An order takes Slurm longer than a supervisor: a job must still be there when it arrives.
        return super().begins(replace(doing, lasts=Duration(10 * doing.lasts)), limit)

    def opened(self) -> Backend:
        link = SlurmLink(name=NAME, site=self.home.name, manner=self._manner)
        return SlurmBackend(link, self.commands, self.home / "notes", self.news.set, clock)
