"""One batch for all that queued up; durable before it is answered; no command pays for another."""

from concurrent.futures import Future
from typing import Any

import pytest

from controller.desk import LAB, SITE, caller, node, spec
from muster.controller.use_cases.submission import NodeKinds, Submission
from muster.controller.world.journal import Journal, Writer
from muster.controller.world.record import Record
from muster.controller.world.transaction import Transaction
from muster.model.cluster import Cluster
from muster.model.errors import RefusedError, StaleSnapshotError, StoreFullError
from muster.model.event import CancelAsked, ClusterSeen, NodeSeen, SiteChanged
from muster.model.job import Dependency, DependencyKind, JobState
from muster.model.value import Instant, UserName
from muster.stores.base import Batch
from muster.stores.memory import MemoryStore


class FullStore(MemoryStore):
    """A store on a disk that is full until somebody makes room."""

    is_full = False

    def append(self, batch: Batch) -> None:
        if self.is_full:
            raise StoreFullError("the database")
        super().append(batch)


def journal_on(store: MemoryStore) -> Journal:
    journal = Journal(store, Record(store.load(), {}, SITE), lambda: Instant(1_000))
    if journal.record.version == 0:
        journal.write(begin).result()
    return journal


def begin(transaction: Transaction) -> None:
    transaction.apply(SiteChanged(at=transaction.now, site=SITE, by=UserName("root")))
    transaction.apply(ClusterSeen(at=transaction.now, cluster=Cluster(name=LAB)))
    transaction.apply(NodeSeen(at=transaction.now, node=node("n1", 4)))


def entry(request_key: str | None = None, **fields: Any) -> Submission:
    return Submission(
        caller=caller("ada"), spec=spec(**fields), kinds=NodeKinds(), request_key=request_key
    )


def test_commands_that_queue_up_share_one_transaction() -> None:
    store = MemoryStore()
    journal = journal_on(store)
    before = journal.record.version
    asked = [(entry().enter, Future[Any]()) for _ in range(5)]

    journal.commit(asked)

    assert journal.record.version == before + 1
    assert [future.result().jobs for _, future in asked] == [(1,), (2,), (3,), (4,), (5,)]


def test_a_refused_command_leaves_the_others_alone() -> None:
    journal = journal_on(MemoryStore())
    asked = [(entry(gpus=gpus).enter, Future[Any]()) for gpus in (1, 99, 2)]

    journal.commit(asked)

    assert sorted(journal.record.jobs) == [1, 2]
    with pytest.raises(RefusedError):
        asked[1][1].result()


def test_what_cannot_be_written_did_not_happen() -> None:
    store = FullStore()
    journal = journal_on(store)
    store.is_full = True

    future = journal.write(entry().enter)

    with pytest.raises(StoreFullError, match="make room"):
        future.result()
    assert journal.record.jobs == {}


def test_when_there_is_room_again_writing_goes_on() -> None:
    store = FullStore()
    journal = journal_on(store)
    store.is_full = True
    journal.write(entry().enter)
    store.is_full = False

    receipt = journal.write(entry().enter).result()

    assert receipt.jobs == (1,)
    assert [job.id for job in store.load().jobs] == [1]


def test_who_comes_second_looks_again_and_writes_then() -> None:
    store = MemoryStore()
    one, other = journal_on(store), journal_on(store)

    first = one.write(entry().enter).result()
    second = other.write(entry().enter).result()

    assert (first.jobs, second.jobs) == ((1,), (2,))
    assert sorted(other.record.jobs) == [1, 2]


def test_who_follows_knows_the_same_jobs() -> None:
    store = MemoryStore()
    one, other = journal_on(store), journal_on(store)
    one.write(entry().enter).result()

    other.catch_up()

    assert other.record.jobs == one.record.jobs
    assert other.last_event == one.last_event


def test_a_request_that_is_sent_again_to_another_process_makes_no_second_job() -> None:
    store = MemoryStore()
    one, other = journal_on(store), journal_on(store)

    first = one.write(entry("k1").enter).result()
    again = other.write(entry("k1").enter).result()

    assert again.jobs == first.jobs
    assert sorted(other.record.jobs) == [*first.jobs]


class ForgetfulStore(MemoryStore):
    """A store that followers must always load whole."""

    def since(self, version: int) -> tuple[Batch, ...]:
        raise StaleSnapshotError(expected=version, found=version + 1)


def test_who_was_far_behind_knows_how_jobs_came_out_that_ended_meanwhile() -> None:
    store = ForgetfulStore()
    one, other = journal_on(store), journal_on(store)
    first = one.write(entry().enter).result().jobs[0]
    after = (Dependency(kind=DependencyKind.AFTER_NOT_OK, job=first),)
    one.write(entry(after=after).enter).result()
    other.catch_up()

    cancel = CancelAsked(at=Instant(1_000), job=first, by=UserName("ada"))
    one.write(lambda transaction: transaction.apply(cancel)).result()
    other.catch_up()

    assert other.record.finished == one.record.finished
    assert other.record.finished[first].state is JobState.CANCELLED


def test_who_was_far_behind_knows_which_jobs_came_of_which_request() -> None:
    store = ForgetfulStore()
    one, other = journal_on(store), journal_on(store)

    first = one.write(entry("k1").enter).result()
    again = other.write(entry("k1").enter).result()

    assert again.jobs == first.jobs


def test_a_mistake_in_one_command_does_not_end_the_journal() -> None:
    journal = journal_on(MemoryStore())

    def mistaken(_: Transaction) -> None:
        raise ZeroDivisionError

    failed = journal.write(mistaken)

    with pytest.raises(ZeroDivisionError):
        failed.result()
    assert journal.write(entry().enter).result().jobs == (1,)


def test_listeners_are_called_after_the_change_is_made() -> None:
    journal = journal_on(MemoryStore())
    seen: list[int] = []
    journal.subscribers.add(lambda batch, _: seen.append(len(journal.record.jobs) * batch.version))

    journal.write(entry().enter).result()

    assert seen == [journal.record.version]


def test_a_writer_answers_everybody_before_it_closes() -> None:
    journal = journal_on(MemoryStore())
    writer = Writer(journal)

    futures = [writer.write(entry().enter) for _ in range(50)]
    writer.close()

    assert sorted(future.result().jobs[0] for future in futures) == list(range(1, 51))
