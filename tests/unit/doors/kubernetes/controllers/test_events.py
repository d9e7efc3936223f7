from muster.doors.kubernetes.objects.kinds import EVENT
from muster.doors.kubernetes.objects.value import JsonObject, name_of
from properties.kubernetes_world import START, KubernetesWorld


def test_an_event_is_kept_for_an_hour_after_it_was_last_seen() -> None:
    world = KubernetesWorld()
    world.create(event("old", lastTimestamp="2026-11-16T08:30:00Z"))
    world.create(event("fresh", eventTime="2026-11-16T09:00:00.000000Z"))
    world.settles()
    assert world.work.next_at() == START + 30 * 60_000

    world.passes(30 * 60)
    world.settles()

    assert [name_of(each) for each in world.of(EVENT)] == ["fresh"]


def event(name: str, **times: str) -> JsonObject:
    return {"apiVersion": "v1", "kind": "Event", "metadata": {"name": name}, **times}
