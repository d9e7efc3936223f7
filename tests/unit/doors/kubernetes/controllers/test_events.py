from muster.doors.kubernetes.objects.kinds import EVENT
from muster.doors.kubernetes.objects.value import JsonObject, name_of
from properties.kubernetes_world import START, KubernetesWorld


def test_an_event_is_kept_for_an_hour_after_it_was_last_seen() -> None:
    world = KubernetesWorld()
    world.create(event("old"))
    world.create(event("fresh", eventTime="2026-11-16T09:30:00.000000Z"))
    world.settles()
    assert world.work.next_at() == START + 60 * 60_000

    world.passes(60 * 60)
    world.settles()

    assert [name_of(each) for each in world.of(EVENT)] == ["fresh"]


def test_an_event_of_long_ago_is_kept_for_an_hour_after_it_was_written() -> None:
    world = KubernetesWorld()
    world.create(event("past", series={"lastObservedTime": "2017-09-19T13:49:16.000000Z"}))
    world.settles()

    world.passes(59 * 60)
    world.settles()

    assert [name_of(each) for each in world.of(EVENT)] == ["past"]


def event(name: str, **times: object) -> JsonObject:
    return {"apiVersion": "v1", "kind": "Event", "metadata": {"name": name}, **times}
