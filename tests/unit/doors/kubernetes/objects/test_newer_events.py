from typing import Any

import pytest

from muster.doors.kubernetes.objects.newer_events import (
    newer_event,
    newer_event_faults,
    older_event,
)

EVENT: dict[str, Any] = {
    "apiVersion": "events.k8s.io/v1",
    "kind": "Event",
    "metadata": {"name": "one", "namespace": "team-a"},
    "regarding": {"namespace": "team-a", "kind": "Pod", "name": "web"},
    "eventTime": "2026-11-19T10:00:00.000000Z",
    "note": "It begins",
    "action": "Do",
    "reason": "Test",
    "type": "Normal",
    "reportingController": "test-controller",
    "reportingInstance": "test-node",
}


def faults(event: dict[str, Any], old: dict[str, Any] | None = None) -> list[str]:
    found = newer_event_faults(older_event(event), None if old is None else older_event(old))
    return [f"{each.field}: {each.message}" for each in found]


def test_an_event_has_other_names_in_each_version_and_is_the_same() -> None:
    old = older_event(EVENT)

    assert old["apiVersion"] == "v1"
    assert old["involvedObject"] == EVENT["regarding"]
    assert old["message"] == "It begins"
    assert old["reportingComponent"] == "test-controller"
    assert not {"regarding", "note", "reportingController"} & set(old)
    assert newer_event(old) == EVENT


def test_a_right_event_has_no_faults_and_may_be_counted_later() -> None:
    series = {"count": 100, "lastObservedTime": "2026-11-19T10:01:00.000000Z"}

    assert faults(EVENT) == []
    assert faults({**EVENT, "series": series}, EVENT) == []


@pytest.mark.parametrize(
    ("change", "wrong"),
    [
        ({"eventTime": None}, "eventTime"),
        ({"type": "Odd"}, "type"),
        ({"reportingController": ""}, "reportingController"),
        ({"reportingController": "no spaces"}, "reportingController"),
        ({"reportingInstance": "x" * 129}, "reportingInstance"),
        ({"action": ""}, "action"),
        ({"reason": ""}, "reason"),
        ({"note": "é" * 600}, "message"),
        ({"deprecatedCount": 3}, "count"),
        ({"deprecatedSource": {"component": "me"}}, "source"),
        ({"regarding": {}}, "involvedObject.namespace"),
        ({"series": {"count": 1, "lastObservedTime": "2026-11-19T10:01:00Z"}}, "series.count"),
        ({"series": {"count": 2}}, "series.lastObservedTime"),
    ],
)
def test_a_new_event_says_all_that_it_must(change: dict[str, Any], wrong: str) -> None:
    found = faults({**EVENT, **change})

    assert any(each.startswith(f"{wrong}: ") for each in found), found


def test_what_an_event_said_stays_said() -> None:
    found = faults({**EVENT, "note": "Otherwise", "reportingController": "other"}, EVENT)

    assert [each.partition(":")[0] for each in found] == ["message", "reportingController"]
    assert all(each.endswith("field is immutable") for each in found)
