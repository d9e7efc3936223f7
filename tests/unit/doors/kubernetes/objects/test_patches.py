import contextlib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muster.doors.kubernetes.objects.kinds import POD
from muster.doors.kubernetes.objects.patches import (
    PatchError,
    json_patched,
    merge_patched,
    strategic_patched,
)
from muster.doors.kubernetes.objects.schemas.types import schema_of

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=10,
)


def test_a_merge_patch_removes_what_is_null_and_replaces_lists() -> None:
    before = {"a": 1, "b": {"c": 2, "d": 3}, "l": [1, 2]}

    assert merge_patched(before, {"a": None, "b": {"c": 9}, "l": [3]}) == {
        "b": {"c": 9, "d": 3},
        "l": [3],
    }


@pytest.mark.parametrize(
    ("operations", "after"),
    [
        ([{"op": "add", "path": "/l/0", "value": 0}], {"a": {"b": 1}, "l": [0, 1, 2]}),
        ([{"op": "add", "path": "/l/-", "value": 3}], {"a": {"b": 1}, "l": [1, 2, 3]}),
        ([{"op": "replace", "path": "/a/b", "value": 2}], {"a": {"b": 2}, "l": [1, 2]}),
        ([{"op": "replace", "path": "/l/1", "value": 9}], {"a": {"b": 1}, "l": [1, 9]}),
        ([{"op": "remove", "path": "/a"}], {"l": [1, 2]}),
        ([{"op": "move", "from": "/a/b", "path": "/c"}], {"a": {}, "l": [1, 2], "c": 1}),
        ([{"op": "copy", "from": "/a", "path": "/c"}], {"a": {"b": 1}, "l": [1, 2], "c": {"b": 1}}),
        ([{"op": "test", "path": "/a/b", "value": 1}], {"a": {"b": 1}, "l": [1, 2]}),
    ],
)
def test_operations_of_a_json_patch(operations: list[Any], after: Any) -> None:
    assert json_patched({"a": {"b": 1}, "l": [1, 2]}, operations) == after


@pytest.mark.parametrize(
    "operation",
    [
        {"op": "test", "path": "/a", "value": True},
        {"op": "remove", "path": "/nosuch"},
        {"op": "add", "path": "/l/7", "value": 1},
        {"op": "frobnicate", "path": "/a"},
        {"op": "add", "path": "a", "value": 1},
        {"op": "replace", "path": "/l/x", "value": 1},
        "no operation",
    ],
)
def test_an_operation_that_cannot_be_done_fails(operation: Any) -> None:
    with pytest.raises(PatchError):
        json_patched({"a": 1, "l": [1]}, [operation])


@given(
    JSON,
    st.lists(
        st.fixed_dictionaries(
            {
                "op": st.sampled_from(["add", "remove", "replace", "test", "move", "copy"]),
                "path": st.text(alphabet="/a-0", max_size=6),
                "value": JSON,
                "from": st.text(alphabet="/a-0", max_size=6),
            }
        ),
        max_size=3,
    ),
)
def test_no_json_patch_breaks_anything_but_itself(value: Any, operations: list[Any]) -> None:
    before = repr(value)
    with contextlib.suppress(PatchError):
        json_patched(value, operations)

    assert repr(value) == before


def pod(*containers: dict[str, Any]) -> dict[str, Any]:
    return {"spec": {"containers": list(containers)}}


def test_items_of_a_list_with_a_key_are_merged_by_it() -> None:
    before = pod({"name": "a", "image": "x"}, {"name": "b", "image": "y"})
    patch = pod({"name": "b", "image": "z"}, {"name": "c", "image": "w"})

    assert strategic_patched(before, patch, schema_of(POD)) == pod(
        {"name": "a", "image": "x"}, {"name": "b", "image": "z"}, {"name": "c", "image": "w"}
    )


def test_directives_delete_replace_and_put_in_order() -> None:
    before = pod({"name": "a", "image": "x"}, {"name": "b", "image": "y"})
    schema = schema_of(POD)

    delete = pod({"name": "a", "$patch": "delete"})
    assert strategic_patched(before, delete, schema) == pod({"name": "b", "image": "y"})
    replace = pod({"name": "n"}, {"$patch": "replace"})
    assert strategic_patched(before, replace, schema) == pod({"name": "n"})
    order = {"spec": {"$setElementOrder/containers": [{"name": "b"}, {"name": "a"}]}}
    order["spec"]["containers"] = [{"name": "b", "tty": True}]  # pyright: ignore[reportArgumentType]
    names = [
        each["name"] for each in strategic_patched(before, order, schema)["spec"]["containers"]
    ]
    assert names == ["b", "a"]


def test_lists_without_a_key_are_replaced() -> None:
    before = pod({"name": "a", "args": ["1", "2"]})

    after = strategic_patched(before, pod({"name": "a", "args": ["3"]}), schema_of(POD))

    assert after == pod({"name": "a", "args": ["3"]})
