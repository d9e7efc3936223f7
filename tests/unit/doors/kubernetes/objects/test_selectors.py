import pytest

from muster.doors.kubernetes.objects.errors import StatusError
from muster.doors.kubernetes.objects.selectors import (
    METADATA_FIELDS,
    fields_select,
    parse_fields,
    parse_labels,
    selector_of,
    selects,
)

LABELS = {"app": "batch", "rank": "3", "tier": ""}


@pytest.mark.parametrize(
    ("text", "is_selected"),
    [
        ("", True),
        ("app=batch", True),
        ("app==batch,rank!=1", True),
        ("app in (batch, gated)", True),
        ("app notin (batch)", False),
        ("nosuch notin (x)", True),
        ("rank", True),
        ("!rank", False),
        ("!nosuch", True),
        ("tier=", True),
        ("rank>2", True),
        ("rank<3", False),
        ("nosuch=x", False),
    ],
)
def test_labels_are_selected_as_kubectl_writes_it(text: str, is_selected: bool) -> None:
    assert selects(parse_labels(text), LABELS) is is_selected


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("a b", "found 'b', expected: in, notin, =, ==, !=, gt, lt"),
        ("app in batch", "found 'batch' expected: '('"),
    ],
)
def test_what_cannot_be_read_is_explained(text: str, why: str) -> None:
    with pytest.raises(StatusError) as refused:
        parse_labels(text)

    assert refused.value.message == f"unable to parse requirement: {why}"


def test_a_selector_of_a_spec_has_labels_and_expressions() -> None:
    spec = {
        "matchLabels": {"app": "batch"},
        "matchExpressions": [{"key": "rank", "operator": "In", "values": ["3", "4"]}],
    }

    assert selects(selector_of(spec), LABELS)
    assert not selects(selector_of(spec), {"app": "batch"})


def test_fields_are_selected_by_value() -> None:
    obj = {"metadata": {"name": "a", "namespace": "nlp"}}

    assert fields_select(parse_fields("metadata.name=a"), obj, METADATA_FIELDS)
    assert not fields_select(parse_fields("metadata.name!=a"), obj, METADATA_FIELDS)
    with pytest.raises(StatusError, match="can't understand 'a'"):
        parse_fields("a")
