from typing import Any

import pytest

from muster.doors.kubernetes.objects.errors import StatusError
from muster.doors.kubernetes.objects.fields import from_fields_v1, to_fields_v1
from muster.doors.kubernetes.objects.kinds import CONFIG_MAP
from muster.doors.kubernetes.objects.managing import (
    APPLY,
    MOST_UPDATERS,
    UPDATE,
    Change,
    Manager,
    applied,
    updated,
)
from muster.doors.kubernetes.objects.schemas.types import schema_of
from muster.doors.kubernetes.objects.value import JsonObject

EMPTY: JsonObject = {"kind": "ConfigMap", "apiVersion": "v1", "metadata": {}}


def change(live: JsonObject, name: str, operation: str = UPDATE, now: str = "T1") -> Change:
    manager = Manager(name=name, operation=operation, version="v1")
    return Change(live=live, manager=manager, now=now, schema=schema_of(CONFIG_MAP))


def config(**data: str) -> JsonObject:
    return {**EMPTY, "metadata": {"name": "c"}, "data": data}


def managed(obj: JsonObject) -> dict[str, Any]:
    return {each["manager"]: each["fieldsV1"] for each in obj["metadata"]["managedFields"]}


def test_who_creates_manages_all_and_who_changes_takes_what_changed() -> None:
    made = updated(change(EMPTY, "ann"), config(a="1", b="2"))

    after = updated(change(made, "bob"), {**made, "data": {"a": "9", "b": "2"}})

    assert managed(made) == {"ann": {"f:data": {".": {}, "f:a": {}, "f:b": {}}}}
    assert managed(after) == {
        "ann": {"f:data": {".": {}, "f:b": {}}},
        "bob": {"f:data": {"f:a": {}}},
    }


def test_what_changes_nothing_leaves_all_as_it_is() -> None:
    made = updated(change(EMPTY, "ann"), config(a="1"))

    assert updated(change(made, "bob", now="T2"), made) == made


def test_applying_another_value_is_a_conflict_unless_forced() -> None:
    made = applied(change(EMPTY, "ann", APPLY), config(a="1", b="2"), force=False)

    with pytest.raises(StatusError) as refused:
        applied(change(made, "bob", APPLY), config(a="9", b="8"), force=False)
    forced = applied(change(made, "bob", APPLY), config(a="9"), force=True)

    assert refused.value.message == (
        'Apply failed with 2 conflicts: conflicts with "ann":\n- .data.a\n- .data.b'
    )
    assert forced["data"] == {"a": "9", "b": "2"}
    assert managed(forced) == {"ann": {"f:data": {"f:b": {}}}, "bob": {"f:data": {"f:a": {}}}}


def test_the_same_value_is_shared_and_stays_until_both_let_go() -> None:
    made = applied(change(EMPTY, "ann", APPLY), config(a="1"), force=False)
    both = applied(change(made, "bob", APPLY), config(a="1"), force=False)

    one = applied(change(both, "ann", APPLY), config(), force=False)
    none = applied(change(one, "bob", APPLY), config(), force=False)

    assert one["data"] == {"a": "1"}
    assert none["data"] == {}


def test_paths_are_written_and_read_back() -> None:
    written: JsonObject = {"f:spec": {"f:containers": {'k:{"name":"a"}': {".": {}, "f:image": {}}}}}

    assert to_fields_v1(from_fields_v1(written)) == written


def test_the_oldest_of_many_who_update_are_counted_together() -> None:
    obj = updated(change(EMPTY, "first"), config(a="0"))
    for number in range(MOST_UPDATERS + 3):
        new = {**obj, "data": {**obj["data"], f"k{number}": "1"}}
        obj = updated(change(obj, f"m{number}", now=f"T{number + 2:02}"), new)

    assert len(managed(obj)) == MOST_UPDATERS
    assert "f:k0" in managed(obj)["ancient-changes"]["f:data"]
