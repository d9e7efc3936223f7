"""Quotas hold for those who look at the same moment, too."""

import json
from concurrent.futures import Future
from functools import partial
from typing import Any

import pytest

from controller.desk import caller
from controller.test_journal import journal_on
from muster.controller.use_cases.objects import ObjectsWrite, ObjectWrite
from muster.controller.world.transaction import Transaction
from muster.doors.kubernetes.objects.errors import StatusError
from muster.doors.kubernetes.objects.kinds import SECRET
from muster.doors.kubernetes.objects.value import JsonObject
from muster.doors.kubernetes.serve.counting import Counting
from muster.model.kept_object import KeptObject, ObjectKey
from muster.stores.memory import MemoryStore


def read(kept: KeptObject) -> JsonObject:
    return json.loads(kept.body)


def named(name: str, **more: Any) -> JsonObject:
    return {"metadata": {"name": name, "namespace": "nlp"}, **more}


def quota(**hard: str) -> ObjectsWrite:
    written = named("most", spec={"hard": hard})
    return ObjectsWrite(caller=caller("ada"), writes=(write("resourcequotas", written),))


def write(resource: str, obj: JsonObject) -> ObjectWrite:
    name = obj["metadata"]["name"]
    key = ObjectKey(group="", resource=resource, namespace="nlp", name=name)
    return ObjectWrite(key=key, seen=None, body=json.dumps(obj))


def pod(name: str, phase: str = "Pending") -> JsonObject:
    return named(name, spec={"containers": [{"name": "main"}]}, status={"phase": phase})


class Desk:
    """A journal with a quota in it, and what commits several writes as one batch."""

    def __init__(self, **hard: str) -> None:
        self.journal = journal_on(MemoryStore())
        self.counting = Counting(read)
        self.journal.write(quota(**hard).apply).result()

    def creates_pods(self, *pods: JsonObject) -> list[str]:
        return self._commits(
            *(
                ObjectsWrite(
                    caller=caller("ada"),
                    writes=(write("pods", each),),
                    also=partial(self.counting.demand_room_for, each),
                )
                for each in pods
            )
        )

    def creates_secrets(self, *names: str) -> list[str]:
        return self._commits(
            *(
                ObjectsWrite(
                    caller=caller("ada"),
                    writes=(write("secrets", named(each)),),
                    also=partial(self.counting.demand_place_for, SECRET, named(each)),
                )
                for each in names
            )
        )

    def _commits(self, *wishes: ObjectsWrite) -> list[str]:
        """In one batch; what each was refused for, or nothing."""
        queued: list[tuple[Any, Future[Any]]] = [(each.apply, Future()) for each in wishes]
        self.journal.commit(queued)
        errors = [future.exception() for _, future in queued]
        return ["" if each is None else str(each) for each in errors]

    def names(self, resource: str) -> list[str]:
        return sorted(key.name for key in self.journal.record.objects if key.resource == resource)


def test_of_two_pods_at_once_one_finds_no_room() -> None:
    desk = Desk(pods="1")

    first, second = desk.creates_pods(pod("a"), pod("b"))

    assert first == ""
    assert "exceeded quota: most, requested: pods=1, used: pods=1, limited: pods=1" in second
    assert desk.names("pods") == ["a"]


def test_a_pod_that_is_over_does_not_count() -> None:
    desk = Desk(pods="1")

    assert desk.creates_pods(pod("a", "Succeeded")) == [""]
    assert desk.creates_pods(pod("b")) == [""]
    assert "exceeded quota" in desk.creates_pods(pod("c"))[0]


def test_of_three_secrets_at_once_as_many_are_kept_as_there_may_be() -> None:
    desk = Desk(secrets="2")

    told = desk.creates_secrets("a", "b", "c")

    assert told[:2] == ["", ""]
    assert "exceeded quota" in told[2]
    assert desk.names("secrets") == ["a", "b"]


def test_objects_written_together_are_all_there_or_none() -> None:
    desk = Desk(secrets="1")
    both = [named("a"), named("b")]

    def also(transaction: Transaction) -> None:
        for each in both:
            desk.counting.demand_place_for(SECRET, each, transaction)

    wish = ObjectsWrite(
        caller=caller("ada"), writes=tuple(write("secrets", each) for each in both), also=also
    )

    with pytest.raises(StatusError):
        desk.journal.write(wish.apply).result()
    assert desk.names("secrets") == []
