"""Lists in pages: how long they go on, and how one that has lasted too long ends."""

import pytest

from controller.test_journal import journal_on
from muster.controller.queries.objects import ObjectQueries
from muster.controller.use_cases.objects import ObjectsWrite, ObjectWrite
from muster.doors.kubernetes.objects.errors import Reason, StatusError
from muster.doors.kubernetes.objects.kinds import CONFIG_MAP
from muster.doors.kubernetes.serve.access import ITSELF
from muster.doors.kubernetes.serve.call import Listing, Target
from muster.doors.kubernetes.serve.reading import GOES_ON_FOR, Page, Reader
from muster.doors.kubernetes.serve.sealing import Sealing
from muster.doors.kubernetes.serve.served import ServedKinds
from muster.doors.kubernetes.serve.view import ObjectView
from muster.model.kept_object import ObjectKey
from muster.model.value import Instant
from muster.stores.memory import MemoryStore

MAPS = Target(kind=CONFIG_MAP, namespace="lab")


class Shelf:
    """Three ConfigMaps, read in pages of one while time passes."""

    def __init__(self) -> None:
        self.now = Instant(1_000_000)
        self._journal, self._sealing = journal_on(MemoryStore()), Sealing(bytes(32))
        view = ObjectView(ObjectQueries(self._journal), self._sealing.opened)
        kinds = ServedKinds(view, convert=lambda _, obj, __: obj)
        self._reader = Reader(view, lambda: self.now, kinds)
        for name in "abc":
            self.gets(name)

    def gets(self, name: str) -> None:
        key = ObjectKey(group="", resource="configmaps", namespace="lab", name=name)
        body = self._sealing.closed(key, {"metadata": {"name": name, "namespace": "lab"}})
        write = ObjectWrite(key=key, seen=None, body=body)
        self._journal.write(ObjectsWrite(caller=ITSELF, writes=(write,)).apply).result()

    def page(self, token: str = "") -> Page:
        return self._reader.page(MAPS, Listing(limit=1, token=token))


def names(page: Page) -> list[str]:
    return [each.key.name for each in page.kept]


def test_a_list_goes_on_where_it_was_and_says_how_much_is_left() -> None:
    shelf = Shelf()

    first = shelf.page()
    second = shelf.page(first.token)
    third = shelf.page(second.token)

    assert [*map(names, (first, second, third))] == [["a"], ["b"], ["c"]]
    assert [first.remaining, second.remaining, third.remaining] == [2, 1, None]
    assert first.version == second.version == third.version
    assert not third.token


def test_a_list_that_has_lasted_too_long_ends_with_a_token_by_which_it_goes_on() -> None:
    shelf = Shelf()
    first = shelf.page()
    shelf.gets("d")
    shelf.now = Instant(shelf.now + GOES_ON_FOR + 1)

    with pytest.raises(StatusError) as expired:
        shelf.page(first.token)

    assert expired.value.reason is Reason.EXPIRED
    token = expired.value.status()["metadata"]["continue"]
    second = shelf.page(token)
    assert (names(second), second.remaining) == (["b"], 2)
    assert second.version > first.version
    # It is a list of its own from there on.
    third = shelf.page(second.token)
    assert (names(third), third.version) == (["c"], second.version)
