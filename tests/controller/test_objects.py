"""Objects are written as they were seen, or not at all; each change has a version of its own."""

import pytest

from controller.desk import caller
from controller.test_journal import journal_on
from muster.controller.queries.objects import ObjectQueries
from muster.controller.use_cases.objects import (
    ObjectChangedError,
    ObjectsWrite,
    ObjectWrite,
    Written,
)
from muster.controller.world.journal import Journal
from muster.controller.world.transaction import Change
from muster.model.errors import ForbiddenError
from muster.model.forbidden import NoRole
from muster.model.kept_object import KeptObject, ObjectKey, RemovedObject
from muster.model.value import UserName
from muster.stores.base import Batch
from muster.stores.memory import MemoryStore


def key(name: str) -> ObjectKey:
    return ObjectKey(group="", resource="configmaps", namespace="nlp", name=name)


def request(*writes: ObjectWrite, **more: object) -> ObjectsWrite:
    return ObjectsWrite(caller=caller("ada"), writes=writes, **more)  # pyright: ignore[reportArgumentType]


def put(name: str, seen: int | None = None, body: str = "{}") -> ObjectWrite:
    return ObjectWrite(key=key(name), seen=seen, body=body)


def test_objects_of_one_batch_have_versions_of_their_own() -> None:
    journal = journal_on(MemoryStore())

    written = journal.write(request(put("a"), put("b")).apply).result()

    first, second = (each.version for each in written)
    assert first < second
    assert {each.version for each in journal.record.objects.values()} == {first, second}


def test_who_saw_an_older_version_writes_nothing() -> None:
    journal = journal_on(MemoryStore())
    (made,) = journal.write(request(put("a")).apply).result()
    journal.write(request(put("a", made.version, '{"x":1}')).apply).result()

    with pytest.raises(ObjectChangedError):
        journal.write(request(put("a", made.version), put("b")).apply).result()

    assert set(journal.record.objects) == {key("a")}
    assert journal.record.objects[key("a")].body == '{"x":1}'


def test_what_is_refused_first_is_not_written() -> None:
    journal = journal_on(MemoryStore())

    def refuse(_: object) -> None:
        raise ForbiddenError(NoRole(user=UserName("ada")))

    with pytest.raises(ForbiddenError):
        journal.write(request(put("a"), also=refuse).apply).result()

    assert not journal.record.objects


def test_who_follows_hears_of_writing_and_removing() -> None:
    journal = journal_on(MemoryStore())
    heard: list[Written] = []
    follow(journal, heard)

    (made,) = journal.write(request(put("a"), action="create").apply).result()
    gone = ObjectWrite(key=key("a"), seen=made.version, body=None)
    journal.write(request(gone, action="delete").apply).result()

    assert [type(each) for each in heard] == [KeptObject, RemovedObject]
    assert heard[1].version > heard[0].version
    assert ObjectQueries(journal).now().objects == {}
    entries = journal.store.audit(before=None, limit=9)
    assert {(each.action, each.subject) for each in entries} == {
        ("create", "configmaps nlp/a"),
        ("delete", "configmaps nlp/a"),
    }


def follow(journal: Journal, heard: list[Written]) -> None:
    def listen(batch: Batch, _: tuple[Change, ...]) -> None:
        heard.extend([*batch.objects, *batch.removed])

    ObjectQueries(journal).follow(listen)
