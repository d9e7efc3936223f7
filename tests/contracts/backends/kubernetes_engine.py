"""A real Kubernetes as an engine: two kubelets, and containers that are really run."""

import contextlib
from collections.abc import Generator
from pathlib import Path

import pytest

from contracts.backends.engine import Doing
from contracts.backends.real import RealEngine, clock, words_of
from kubernetes_real.images import BUSYBOX
from kubernetes_real.lab import Lab, laboratory, missing
from muster.backends.base import Backend, Run
from muster.backends.kubernetes.backend import KubernetesBackend
from muster.backends.kubernetes.client import Client
from muster.backends.kubernetes.kubeconfig import access_of
from muster.backends.kubernetes.link import KubernetesLink
from muster.backends.kubernetes.manifest import Manner, Mount
from muster.backends.kubernetes.nodes import Fleet, node_of
from muster.backends.local.attempt import processes
from muster.model.cluster import Node
from muster.model.value import ClusterName, Duration, replace

NAME = ClusterName("pods")


@contextlib.contextmanager
def kubernetes_lab() -> Generator[Lab]:
    """A Kubernetes for tests, of two nodes; without one they say so."""
    if lacking := missing():
        pytest.skip(f"there is no real Kubernetes here: {lacking}")
    with laboratory(nodes=2, gpus=4) as lab:
        yield lab


class KubernetesEngine(RealEngine):
    slack = Duration(20_000)
    patience_s = 60.0

    def __init__(self, home: Path, lab: Lab) -> None:
        self._kubeconfig = lab.kubeconfig
        fleet = Fleet(cluster=NAME)
        self._nodes = tuple(node_of(each, fleet) for each in lab.ask("/api/v1/nodes")["items"])
        super().__init__(home)

    def nodes(self) -> tuple[Node, ...]:
        return self._nodes

    def begins(self, doing: Doing, limit: int | None) -> Run:
        # An order takes a kubelet longer than a supervisor: a job must still be there by then.
        run = super().begins(replace(doing, lasts=Duration(10 * doing.lasts)), limit)
        shell, option, script = run.launch.argv
        marked = f": {self._mark(run)}\n{script}"
        return replace(run, launch=replace(run.launch, argv=(shell, option, marked)))

    def lives(self, run: Run) -> bool:
        """Numbers of processes differ inside a container: it is known by what it was told."""
        mark = f"{self._mark(run)}\n"
        return any(mark in words_of(pid) for pid in processes.everybody())

    def opened(self) -> Backend:
        manner = Manner(namespace="default", image=BUSYBOX, mounts=(Mount(path=str(self.home)),))
        site = self.home.name[-8:].lower().replace("_", "x")
        link = KubernetesLink(name=NAME, site=site, seal="sealed", manner=manner)
        client = Client(access_of(self._kubeconfig))
        return KubernetesBackend(link, client, self.home / "notes", self.news.set, clock)

    def _mark(self, run: Run) -> str:
        return f"{self.home.name}/{run.job.id}"
