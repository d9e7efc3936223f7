import json
from concurrent.futures import Future

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
from muster.doors.kubernetes.objects.kinds import CONFIG_MAP
from muster.doors.kubernetes.objects.value import JsonObject
from muster.doors.kubernetes.serve.together import Together
from muster.doors.kubernetes.serve.view import ObjectView
from muster.model.kept_object import KeptObject, ObjectKey
from muster.stores.memory import MemoryStore


class Desk:
    """A journal, a view of it, and writers that commit together."""

    def __init__(self) -> None:
        self.journal: Journal = journal_on(MemoryStore())
        self.view = ObjectView(ObjectQueries(self.journal), read)
        self.commits = 0
        self.together = Together(self.view, self.commit)

    def commit(self, wanted: ObjectsWrite) -> "Future[tuple[Written, ...]]":
        self.commits += 1
        answer: Future[tuple[Written, ...]] = Future()
        answer.set_result(self.journal.write(wanted.apply).result())
        return answer

    def collect(self, name: str, body: str | None) -> None:
        found = self.together.find(CONFIG_MAP, "nlp", name)
        seen = None if found is None else found.version
        self.together.collect(written(name, seen, body))

    def bodies(self) -> dict[str, str]:
        return {key.name: kept.body for key, kept in self.journal.record.objects.items()}


def test_what_is_collected_is_committed_at_once() -> None:
    desk = Desk()

    with desk.together.one_commit(caller("ada")):
        desk.collect("a", '{"x":1}')
        desk.collect("b", "{}")
        assert desk.bodies() == {}

    assert desk.bodies() == {"a": '{"x":1}', "b": "{}"}
    assert desk.commits == 1


def test_what_is_collected_is_among_those_of_its_kind() -> None:
    desk = Desk()
    with desk.together.one_commit(caller("ada")):
        desk.collect("a", '{"x":1}')

    with desk.together.one_commit(caller("ada")):
        desk.collect("b", '{"x":2}')
        assert [each["data"]["x"] for each in desk.together.objects(CONFIG_MAP)] == [1, 2]
        assert len(desk.together.objects(CONFIG_MAP, "other")) == 0


def test_who_writes_again_sees_what_was_written_and_one_write_is_left() -> None:
    desk = Desk()
    desk.commit(written("a", None, "{}"))
    before = desk.view.find(CONFIG_MAP, "nlp", "a")
    assert before is not None

    with desk.together.one_commit(caller("ada")):
        desk.collect("a", '{"x":1}')
        found = desk.together.find(CONFIG_MAP, "nlp", "a")
        assert found == KeptObject(key=key("a"), version=before.version, body='{"x":1}')
        desk.collect("a", '{"x":2}')

    assert desk.bodies() == {"a": '{"x":2}'}


def test_what_is_made_and_removed_again_is_never_written() -> None:
    desk = Desk()

    with desk.together.one_commit(caller("ada")):
        desk.collect("a", "{}")
        desk.together.collect(written("a", 0, None))

    assert desk.commits == 0


def test_when_somebody_was_quicker_nothing_is_written() -> None:
    desk = Desk()
    desk.commit(written("a", None, "{}"))
    found = desk.view.find(CONFIG_MAP, "nlp", "a")
    assert found is not None

    def overtaken() -> None:
        with desk.together.one_commit(caller("ada")):
            desk.collect("b", "{}")
            desk.collect("a", '{"x":1}')
            desk.commit(written("a", found.version, '{"x":9}'))

    with pytest.raises(ObjectChangedError):
        overtaken()
    assert desk.bodies() == {"a": '{"x":9}'}


def test_when_something_is_refused_nothing_is_written() -> None:
    desk = Desk()

    def refused() -> None:
        with desk.together.one_commit(caller("ada")):
            desk.collect("a", "{}")
            raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        refused()
    assert desk.bodies() == {}


def key(name: str) -> ObjectKey:
    return ObjectKey(group="", resource="configmaps", namespace="nlp", name=name)


def written(name: str, seen: int | None, body: str | None) -> ObjectsWrite:
    write = ObjectWrite(key=key(name), seen=seen, body=body)
    return ObjectsWrite(caller=caller("ada"), writes=(write,))


def read(kept: KeptObject) -> JsonObject:
    return {"metadata": {"resourceVersion": str(kept.version)}, "data": json.loads(kept.body)}
