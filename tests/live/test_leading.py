"""Taking the lead and losing it: what is looked at, let go, and must be known first."""

from collections.abc import Generator
from contextlib import contextmanager

import pytest

from controller.desk import LAB, SITE, caller, node, spec
from live.house import until
from muster.app.parts import Lead
from muster.backends.base import Backend
from muster.backends.simulated.attempt import Behaviour
from muster.backends.simulated.backend import SimulatedBackend
from muster.controller.loop.commit import events_of
from muster.controller.loop.controller import Controller
from muster.controller.loop.cycle import Parts
from muster.controller.planner.client import InlinePlanner
from muster.controller.use_cases.submission import NodeKinds, Submission
from muster.controller.world.journal import Journal, Writer
from muster.controller.world.record import Record
from muster.controller.world.transaction import Transaction
from muster.model.cluster import Cluster
from muster.model.errors import BackendDownError
from muster.model.event import ClusterSeen, NodeSeen, SiteChanged
from muster.model.job import Job
from muster.model.placement import Allocation
from muster.model.value import ClusterName, Duration, Instant, UserName
from muster.stores.memory import MemoryStore


class Seat:
    """A lead that is free or not, as the test says."""

    def __init__(self) -> None:
        self.is_free = True
        self.is_taken = False

    def lead(self) -> bool:
        self.is_taken = self.is_free
        return self.is_free

    def step_down(self) -> None:
        self.is_taken = False


def lasts_long(_: Job, __: Allocation) -> Behaviour:
    return Behaviour(work=Duration(600_000))


class Watched(SimulatedBackend):
    """Remembers what it adopted, and whether it was let go."""

    def __init__(self) -> None:
        nodes = [node("n1", gpus=4)]
        super().__init__(nodes, Cluster(name=LAB), lasts_long)
        self.adopted: tuple[Allocation, ...] = ()
        self.is_closed = False

    def adopt(self, allocations: tuple[Allocation, ...]) -> None:
        self.adopted = allocations
        super().adopt(allocations)

    def close(self) -> None:
        self.is_closed = True


def test_a_standby_touches_nothing() -> None:
    seat, backends = Seat(), dict[ClusterName, Backend]()
    seat.is_free = False

    assert not Lead(seat, backends, lambda: [Watched()]).lead()

    assert backends == {}


def test_with_the_lead_the_machine_is_let_go_and_found_again() -> None:
    seat, backends = Seat(), dict[ClusterName, Backend]()
    made: list[Watched] = []

    def find() -> list[Backend]:
        made.append(Watched())
        return [made[-1]]

    lead = Lead(seat, backends, find)
    for is_free in (True, True, False, False, True):
        seat.is_free = is_free
        assert lead.lead() is is_free

    assert [each.is_closed for each in made] == [True, False]
    assert list(backends.values()) == made[1:]


def test_who_finds_no_machine_lets_others_lead() -> None:
    seat = Seat()

    def find() -> list[Backend]:
        raise BackendDownError(LAB, "no driver")

    with pytest.raises(BackendDownError):
        Lead(seat, {}, find).lead()

    assert not seat.is_taken


def test_who_ends_lets_the_machine_go_before_others_may_lead() -> None:
    seat, backend = Seat(), Watched()
    lead = Lead(seat, {}, lambda: [backend])
    lead.lead()

    lead.step_down()

    assert (backend.is_closed, seat.is_taken) == (True, False)


@contextmanager
def leading(journal: Journal, backend: Watched, seat: Seat) -> Generator[Controller]:
    writer = Writer(journal)
    parts = Parts(
        store=journal.store,
        history=journal.store,
        record=journal.record,
        write=writer.write,
        planner=InlinePlanner(),
        backends={LAB: backend},
    )
    controller = Controller(parts, journal, lambda: Instant(5_000), seat)
    controller.start()
    try:
        yield controller
    finally:
        controller.stop()
        writer.close()


def journal_on(store: MemoryStore) -> Journal:
    return Journal(store, Record(store.load(), {}, SITE), lambda: Instant(1_000))


def begin(transaction: Transaction) -> None:
    transaction.apply(SiteChanged(at=transaction.now, site=SITE, by=UserName("root")))
    transaction.apply(ClusterSeen(at=transaction.now, cluster=Cluster(name=LAB)))
    transaction.apply(NodeSeen(at=transaction.now, node=node("n1", gpus=4)))


def test_who_takes_over_knows_all_that_was_written_before_it_ends_what_it_does_not_know() -> None:
    store = MemoryStore()
    old = journal_on(store)
    old.write(begin).result()
    late = journal_on(store)
    # The standby has not heard of what the leader did last.
    entry = Submission(caller=caller("ada"), spec=spec("ada"), kinds=NodeKinds())
    job = old.write(entry.enter).result().jobs[0]
    snapshot = old.record.snapshot(Instant(1_000))
    thought = InlinePlanner().plan(snapshot, SITE.policy)
    old.write(
        lambda transaction: transaction.apply_all(events_of(thought, snapshot, transaction))
    ).result()
    assert late.record.allocations == {}
    backend = Watched()

    with leading(late, backend, Seat()) as controller:
        until(lambda: controller.is_leading, bool)

    assert [(each.job, each.attempt) for each in backend.adopted] == [(job, 1)]


def test_that_somebody_took_the_lead_is_in_the_audit_log() -> None:
    store = MemoryStore()
    journal = journal_on(store)
    journal.write(begin).result()

    with leading(journal, Watched(), Seat()) as controller:
        until(lambda: controller.is_leading, bool)

    entry = store.audit(before=None, limit=1)[0]
    assert (entry.user, entry.door, entry.action) == ("muster", "controller", "lead")


def test_a_process_that_loses_the_lead_and_has_it_again_leads_on() -> None:
    store = MemoryStore()
    journal = journal_on(store)
    journal.write(begin).result()
    seat, backend = Seat(), Watched()

    with leading(journal, backend, seat) as controller:
        until(lambda: controller.is_leading, bool)
        seat.is_free = False
        controller.wake()
        until(lambda: controller.is_leading, lambda leads: not leads)
        seat.is_free = True
        until(lambda: controller.is_leading, bool)

    assert list(journal.record.nodes) == ["n1"]
