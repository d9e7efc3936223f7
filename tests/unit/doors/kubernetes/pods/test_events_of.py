from muster.doors.kubernetes.pods.events_of import (
    added,
    event_object,
    explained,
    lasting,
    noted,
    preempted,
    scheduled,
    waits,
)
from muster.model.explanation import Alternative, AnyNode, Explanation
from muster.model.pod import PodNote
from muster.model.value import Instant, JobId
from unit.doors.kubernetes.pods.golden import pod
from unit.doors.kubernetes.pods.worlds import NOW

POD = pod("initContainers: [{name: one}]\ncontainers: [{name: main}]", uid="u")


def test_an_event_belongs_to_its_pod_and_container() -> None:
    note = PodNote(
        at=NOW, reason="BackOff", text="Back-off", container="one", warning=True, count=3
    )

    found = event_object(POD, noted(note, "n1"))

    assert found["involvedObject"]["fieldPath"] == "spec.initContainers{one}"
    assert found["involvedObject"]["uid"] == "u"
    assert found["type"] == "Warning"
    assert found["count"] == 3
    assert found["source"] == {"component": "kubelet", "host": "n1"}


def test_the_same_thing_again_is_the_same_event() -> None:
    first = event_object(POD, waits("no room", NOW, NOW))
    again = event_object(POD, waits("no room", NOW, Instant(NOW + 5_000)))

    assert first["metadata"]["name"] == again["metadata"]["name"]


def test_a_scheduler_tells_one_exact_time_and_what_it_did() -> None:
    found = event_object(POD, preempted("pod u2", "n1", Instant(NOW + 7)))

    assert found["message"] == "Preempted by pod u2 on node n1"
    assert found["action"] == "Preempting"
    assert found["eventTime"].endswith(".007000Z")
    assert (found["firstTimestamp"], found["source"]) == (None, {})
    assert "count" not in found


def test_another_pod_of_the_same_name_has_events_of_its_own() -> None:
    another = pod("containers: [{name: main}]", uid="v")
    told = waits("no room", NOW, NOW)

    first, second = event_object(POD, told), event_object(another, told)

    assert first["metadata"]["name"] != second["metadata"]["name"]


def test_where_it_runs_is_told() -> None:
    assert scheduled(POD, "n1", NOW).text == "Successfully assigned team-a/p to n1"


def test_why_it_waits_when_it_starts_and_what_would_help_are_told() -> None:
    help_ = Alternative(
        change=AnyNode(), starts_now=True, expected=NOW, text="On any node it would start now."
    )
    explanation = Explanation(
        job=JobId(1), decision=None, text="Waits for room.", expected=NOW, alternatives=(help_,)
    )

    told = [(each.reason, each.text) for each in explained(explanation, NOW)]

    assert told == [
        ("Explained", "Waits for room."),
        ("ExpectedStart", "Expected to start at 2027-01-15T08:00:00Z."),
        ("WouldHelp", "On any node it would start now."),
    ]


def test_why_a_pod_waits_is_one_event_that_says_how_it_is_now() -> None:
    first = waits("no room", NOW, NOW)
    again = waits("no quota", NOW, Instant(NOW + 5_000))
    another = pod("containers: [{name: main}]", uid="v")

    assert added(None, first) is first
    assert added(first, again).text == "no room no quota"
    name = lasting(POD, first)["metadata"]["name"]
    assert lasting(POD, again)["metadata"]["name"] == name
    assert lasting(another, first)["metadata"]["name"] != name
