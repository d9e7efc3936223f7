"""What is reported is not lost when it cannot be written, nor an order when it cannot be sent.

Both were found by killing Muster at random moments.
"""

import errno
from concurrent.futures import Future
from typing import Any

import pytest

from controller.desk import LAB, SITE, caller, node, spec
from muster.backends.base import Action, Forget
from muster.backends.simulated.attempt import Behaviour
from muster.backends.simulated.backend import SimulatedBackend
from muster.controller.loop.cycle import BackendDriver, Parts, decide
from muster.controller.planner.client import InlinePlanner
from muster.controller.use_cases.submission import NodeKinds, Submission
from muster.controller.world.journal import Journal
from muster.controller.world.record import Record
from muster.model.cluster import Cluster
from muster.model.errors import StoreFullError
from muster.model.event import ClusterSeen, Event, NodeSeen, SiteChanged
from muster.model.value import Duration, Instant, JobId, PoolName, UserName, replace
from muster.stores.base import Batch
from muster.stores.memory import MemoryStore

NOW = Instant(1_000)
LATER = Instant(60_000)


class FullStore(MemoryStore):
    """A store on a disk that is full until somebody makes room."""

    is_full = False

    def append(self, batch: Batch) -> None:
        if self.is_full:
            raise StoreFullError("the database")
        super().append(batch)


class WeakBackend(SimulatedBackend):
    """A backend that remembers its orders; its disk may be full, and it may not answer.

    reports: what it says next, instead of what is so.
    """

    is_full = False
    is_deaf = False
    said: tuple[Action, ...] = ()
    reports: tuple[Event, ...] = ()

    def observe(self, now: Instant) -> tuple[Event, ...]:
        if self.reports:
            found, self.reports = self.reports, ()
            return found
        if self.is_deaf:
            return (ClusterSeen(at=now, cluster=replace(self.cluster, reachable=False)),)
        return super().observe(now)

    def do(self, action: Action) -> None:
        if self.is_full:
            raise OSError(errno.ENOSPC, "no room")
        self.said += (action,)
        super().do(action)


class Lab:
    """One job that was placed and not begun yet."""

    def __init__(self) -> None:
        self.store = FullStore()
        self.backend = WeakBackend(
            [node("n1", 4)], Cluster(name=LAB), lambda _, __: Behaviour(work=Duration(10_000))
        )
        self.journal = Journal(self.store, Record(self.store.load(), {}, SITE), lambda: NOW)
        self.record = self.journal.record
        self.parts = Parts(
            store=self.store,
            history=self.store,
            record=self.record,
            write=self.journal.write,
            planner=InlinePlanner(),
            backends={LAB: self.backend},
        )
        self.driver = self.new_driver()
        self.journal.write(
            lambda transaction: transaction.apply(
                SiteChanged(at=NOW, site=SITE, by=UserName("root"))
            )
        )
        self.driver.tend(NOW)
        entry = Submission(caller=caller("ada"), spec=spec(), kinds=NodeKinds())
        self.journal.write(entry.enter).result()
        decide(self.parts, NOW)

    def new_driver(self) -> BackendDriver:
        """Those of the process that leads from now on."""
        driver = BackendDriver(self.parts)
        self.journal.subscribers.add(lambda batch, changes: _drop(driver.note(batch, changes)))
        return driver


def _drop(_: object) -> None:
    """Listeners return nothing."""


def test_who_went_away_does_not_keep_others_from_their_answer() -> None:
    lab = Lab()
    gone, waiting = Future[Any](), Future[Any]()
    gone.cancel()

    lab.journal.commit([(lambda _: 1, gone), (lambda _: 2, waiting)])

    assert waiting.result(timeout=0) == 2


def test_an_end_that_cannot_be_written_is_written_when_there_is_room() -> None:
    lab = Lab()
    lab.driver.tend(NOW)
    lab.store.is_full = True
    with pytest.raises(StoreFullError):
        lab.driver.tend(LATER)
    assert len(lab.record.jobs) == 1

    lab.store.is_full = False
    lab.driver.tend(LATER)

    assert lab.record.jobs == {}


def test_what_a_backend_has_no_room_for_is_said_again() -> None:
    lab = Lab()
    lab.backend.is_full = True
    lab.driver.act()
    assert lab.backend.going == ()

    lab.backend.is_full = False
    lab.driver.act()

    assert lab.backend.going == ((1, 1),)


def test_an_attempt_that_ended_while_nobody_led_is_forgotten() -> None:
    lab = Lab()
    lab.driver.act()
    lab.backend.observe(LATER)
    successor = lab.new_driver()

    successor.take_over(LATER)
    successor.act()

    assert lab.record.jobs == {}
    assert lab.backend.said[-1] == Forget(job=JobId(1), attempt=1)


def test_a_cluster_that_does_not_answer_loses_no_node_and_no_job() -> None:
    lab = Lab()
    lab.driver.tend(NOW)

    lab.backend.is_deaf = True
    driver = lab.new_driver()
    driver.take_over(LATER)
    driver.tend(LATER)

    assert set(lab.record.nodes) == {"n1"}
    assert not lab.record.clusters[LAB].reachable
    assert lab.record.jobs[JobId(1)].attempt == 1


def test_nodes_that_went_while_a_cluster_did_not_answer_are_gone_when_it_does() -> None:
    lab = Lab()
    lab.backend.is_deaf = True
    driver = lab.new_driver()
    driver.take_over(LATER)

    lab.backend.is_deaf = False
    seen = ClusterSeen(at=LATER, cluster=lab.backend.cluster)
    lab.backend.reports = (seen, NodeSeen(at=LATER, node=node("n2", 4)))
    driver.tend(LATER)

    assert set(lab.record.nodes) == {"n2"}


def test_a_cluster_brings_its_pools_along() -> None:
    lab = Lab()
    fresh = replace(node("n3", 4), pool=PoolName("dgx"))

    lab.backend.reports = (NodeSeen(at=LATER, node=fresh),)
    lab.driver.tend(LATER)

    assert lab.record.pools(SITE)[PoolName("dgx")].cluster == LAB
