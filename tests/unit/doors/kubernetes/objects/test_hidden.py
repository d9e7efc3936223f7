from muster.doors.kubernetes.objects.hidden import CREATOR, kept_on, shown
from muster.doors.kubernetes.objects.value import JsonObject


def an_object(**annotations: str) -> JsonObject:
    return {"metadata": {"name": "a", "annotations": dict(annotations)}}


def test_clients_do_not_see_whose_an_object_is() -> None:
    assert shown(an_object(**{CREATOR: "eve", "note": "b"})) == an_object(note="b")
    assert shown(an_object(**{CREATOR: "eve"})) == {"metadata": {"name": "a"}}


def test_what_is_hidden_stays_whatever_the_writer_says() -> None:
    old = an_object(**{CREATOR: "eve"})

    assert kept_on(an_object(note="b"), old) == an_object(**{"note": "b", CREATOR: "eve"})
    assert kept_on(an_object(**{CREATOR: "mallory"}), old) == old
    assert kept_on(an_object(**{CREATOR: "mallory"}), {"metadata": {}}) == {
        "metadata": {"name": "a"}
    }
