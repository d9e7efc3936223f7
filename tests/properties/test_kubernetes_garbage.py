from hypothesis import given
from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy

from muster.doors.kubernetes.controllers.garbage import collect
from muster.doors.kubernetes.controllers.owning import owner_reference
from muster.doors.kubernetes.objects.value import JsonObject, items, name_of, uid_of
from properties.kubernetes_world import KubernetesWorld, deployment, job

Ownership = list[list[int]]


@st.composite
def ownerships(draw: DrawFn) -> Ownership:
    """For each object, which of the earlier ones own it: no circles, as real ones have none."""
    size = draw(st.integers(min_value=1, max_value=8))
    return [
        draw(st.lists(st.integers(min_value=0, max_value=each - 1), unique=True, max_size=2))
        if each
        else []
        for each in range(size)
    ]


def propagations() -> SearchStrategy[str]:
    return st.sampled_from(["Background", "Foreground", "Orphan"])


@given(ownerships(), st.data())
def test_what_is_deleted_is_what_no_owner_is_left_of(owned: Ownership, data: st.DataObject) -> None:
    world, objects = made(owned)
    victim = data.draw(st.sampled_from(range(len(owned))))
    propagation = data.draw(propagations())

    world.delete(objects[victim], propagation)
    world.settles()

    there = {name_of(each) for each in objects if world.is_there(each)}
    assert there == {str(each) for each in survivors(owned, victim, propagation)}


@given(ownerships(), st.data())
def test_nobody_refers_to_what_is_gone(owned: Ownership, data: st.DataObject) -> None:
    world, objects = made(owned)
    victim = data.draw(st.sampled_from(range(len(owned))))

    world.delete(objects[victim], data.draw(propagations()))
    world.settles()

    there = {uid_of(each) for each in world.objects.all()}
    referred = {
        reference["uid"]
        for each in world.objects.all()
        for reference in items(each, "metadata", "ownerReferences")
    }
    assert referred <= there


@given(ownerships(), st.data())
def test_looking_twice_collects_nothing_more(owned: Ownership, data: st.DataObject) -> None:
    world, objects = made(owned)
    world.delete(objects[data.draw(st.sampled_from(range(len(owned))))])
    world.settles()

    outcomes = [collect(each, world.objects, world.now) for each in world.objects.all()]

    assert [outcome.changes for outcome in outcomes if outcome.changes] == []


@given(st.integers(min_value=0, max_value=12), st.integers(min_value=1, max_value=4))
def test_nothing_is_created_after_its_owner_was_deleted(steps: int, size: int) -> None:
    world = KubernetesWorld()
    owners = [
        world.create(deployment(replicas=size)),
        world.create(job(parallelism=size, completions=size)),
    ]
    for _ in range(steps):
        world.step()
    before = None

    for owner in owners:
        world.delete(owner)
    while world.step():
        # Whoever was there may still act until it is deleted itself; then nothing may come.
        if before is None and not any(name_of(each) == "web" for each in world.objects.all()):
            before = len(world.created)
    world.all_stop()
    world.settles()

    assert list(world.objects.all()) == []


def made(owned: Ownership) -> tuple[KubernetesWorld, list[JsonObject]]:
    world = KubernetesWorld()
    objects: list[JsonObject] = []
    for each, owners in enumerate(owned):
        references = [
            owner_reference(objects[owner], is_controller=False) | {"blockOwnerDeletion": True}
            for owner in owners
        ]
        about = {"name": str(each), "ownerReferences": references}
        objects.append(world.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": about}))
    world.settles()
    return world, objects


def survivors(owned: Ownership, victim: int, propagation: str) -> set[int]:
    """What is left, by the definition: an object goes when it had owners and all of them went."""
    gone = {victim}
    for each, owners in enumerate(owned):
        kept = [o for o in owners if not (o == victim and propagation == "Orphan")]
        if kept and all(owner in gone for owner in kept):
            gone.add(each)
    return set(range(len(owned))) - gone
