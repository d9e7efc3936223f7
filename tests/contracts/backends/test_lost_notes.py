"""Pods with our mark: what nobody wants any more is ended, what nobody knows runs on."""

import shutil
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from contracts.backends.given import job_of, run_of
from contracts.backends.real import clock
from muster.backends.base import Forget, Run
from muster.backends.kept import attempts_kept
from muster.backends.kubernetes.backend import KubernetesBackend
from muster.backends.kubernetes.client import Client
from muster.backends.kubernetes.kubeconfig import access_of
from muster.backends.kubernetes.link import KubernetesLink
from muster.backends.kubernetes.manifest import Manner, name_of
from muster.backends.kubernetes.nodes import Fleet, node_of
from muster.backends.kubernetes.pods import Key
from muster.model.launch import Launch
from muster.model.value import ClusterName
from pretend_kubernetes.api import NODES, PODS, Json, PretendApi, node, pretend_api

NAME = ClusterName("pods")
SECRETS = "/api/v1/secrets"
PATIENCE_S = 30


class Place:
    """A backend over a pretended cluster of one node, and its notes."""

    def __init__(self, home: Path, api: PretendApi, kubeconfig: Path) -> None:
        self.home, self.api, self._kubeconfig = home, api, kubeconfig
        self.notes = home / "clusters" / "pods"
        self.backend = self._opened()
        self.backend.adopt(())

    def reopens(self, *adopting: Run) -> None:
        self.backend.close()
        self.backend = self._opened()
        self.backend.adopt(tuple(each.allocation for each in adopting))

    def begins(self, number: int = 1) -> Run:
        """Another job of two pods, which are bound."""
        node = node_of(self._node(), Fleet(cluster=NAME))
        run = run_of(job_of(number, 1), clock(), (node, node), Launch(argv=("true",)))
        self.backend.do(run)
        self.until(lambda: all(self.is_bound(run, rank) for rank in range(2)))
        return run

    def is_bound(self, run: Run, rank: int) -> bool:
        found = self.api.see(PODS, "here", f"{self.called(run)}-{rank}")
        return found is not None and bool(found["spec"].get("nodeName"))

    def has_secret(self, run: Run) -> bool:
        return self.api.see(SECRETS, "here", self.called(run)) is not None

    def called(self, run: Run) -> str:
        key = Key(site="ours", job=run.job.id, attempt=run.allocation.attempt, seal="sealed")
        return name_of(key)

    def noted(self) -> list[int]:
        return [int(each.stem.split(".")[0]) for each in sorted(self.notes.rglob("*.json"))]

    def until(self, is_so: Callable[[], object]) -> None:
        deadline = time.monotonic() + PATIENCE_S
        while not is_so():
            assert time.monotonic() < deadline, self.api.asked[-20:]
            self.backend.observe(clock())
            self._news.wait(0.02)

    def _node(self) -> Json:
        found = self.api.see(NODES, "", "n1")
        assert found is not None
        return found

    def _opened(self) -> KubernetesBackend:
        self._news = threading.Event()
        manner = Manner(namespace="here", image="busybox")
        link = KubernetesLink(name=NAME, site="ours", seal="sealed", manner=manner)
        client = Client(access_of(self._kubeconfig))
        return KubernetesBackend(link, client, self.notes, self._news.set, clock)


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    with pretend_api(tmp_path) as (api, kubeconfig):
        api.make(NODES, node("n1", 4))
        made = Place(tmp_path, api, kubeconfig)
        yield made
        made.backend.close()


def test_whose_attempt_it_is_is_written_down_for_a_database_that_is_lost(place: Place) -> None:
    run = place.begins()

    (kept,) = attempts_kept(place.home)

    assert (kept.job, kept.allocation, kept.spec.name) == (1, run.allocation, run.job.spec.name)
    place.backend.do(Forget(job=run.job.id, attempt=1))
    place.until(lambda: not list(attempts_kept(place.home)))


def test_what_is_noted_and_nobody_wants_is_ended_whole(place: Place) -> None:
    unwanted, wanted = place.begins(1), place.begins(2)

    place.reopens(wanted)

    place.until(lambda: place.noted() == [2])
    assert not place.has_secret(unwanted)
    assert not place.is_bound(unwanted, 0)
    assert not place.is_bound(unwanted, 1)
    assert place.is_bound(wanted, 0)
    assert place.backend.cluster.orphans == ()


def test_what_nobody_knows_is_named_and_runs_on(place: Place) -> None:
    """Its note and its job are lost: it may be work of days."""
    run = place.begins()
    place.backend.close()
    shutil.rmtree(place.notes)

    place.reopens()

    place.until(lambda: place.backend.cluster.orphans)
    assert place.backend.cluster.orphans == tuple(f"here/{place.called(run)}-{n}" for n in (0, 1))
    assert place.is_bound(run, 0)
    assert place.has_secret(run)


def test_a_cluster_that_is_away_loses_nothing_that_is_to_be_ended(place: Place) -> None:
    run = place.begins()
    place.api.is_away = True
    place.reopens()
    place.reopens()
    assert place.noted() == [1]

    place.api.is_away = False

    place.until(lambda: not place.noted())
    assert not place.has_secret(run)


def test_what_leaves_on_its_own_is_no_orphan(place: Place) -> None:
    run = place.begins()
    place.backend.do(Forget(job=run.job.id, attempt=1))

    place.until(lambda: not place.has_secret(run))
    place.begins(2)

    assert place.backend.cluster.orphans == ()
