"""Who loaded once and followed ever since knows what who loads now knows."""

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from contracts.stores.given import (
    allocation,
    attempt,
    audit,
    cluster,
    ended,
    job,
    kept,
    launch_of,
    node,
    over,
    removed,
    site,
    step,
    submitted,
    token,
    used,
    usual,
    write,
)
from contracts.stores.places import Place
from muster.model.errors import StaleSnapshotError
from muster.model.history import RequestMade
from muster.model.job import FINAL, JobState
from muster.model.kept_object import ObjectKey
from muster.model.steps import Step
from muster.model.value import Instant, JobId, NodeId, replace
from muster.stores.base import Batch, LiveState
from muster.stores.opening import WholeStore

NUMBERS = st.integers(1, 6)
NAMES = st.sampled_from(("n1", "n2", "n3"))
STATES = st.sampled_from(sorted(set(JobState) - FINAL))


def some(values: st.SearchStrategy[Any]) -> st.SearchStrategy[tuple[Any, ...]]:
    return st.lists(values, max_size=3).map(tuple)


CHANGES = st.fixed_dictionaries(
    {},
    optional={
        "events": some(NUMBERS.map(submitted) | NUMBERS.map(over)),
        "jobs": some(st.builds(job, NUMBERS, state=STATES)),
        "ends": st.lists(NUMBERS, max_size=2, unique=True),
        "allocations": some(st.builds(allocation, NUMBERS, NAMES)),
        "freed": some(NUMBERS.map(JobId)),
        "clusters": some(st.builds(cluster, st.just("here"), order=NUMBERS)),
        "nodes": some(st.builds(node, NAMES, reason=NAMES)),
        "gone": some(NAMES.map(NodeId)),
        "site": st.builds(site, images_on_host=st.booleans()),
        "used": some(st.builds(used, st.sampled_from(("ann", "bob")), NUMBERS)),
        "usual": some(NUMBERS.map(usual)),
        "tokens": some(st.builds(token, NAMES, revoked=st.booleans())),
        "objects": some(st.builds(kept, NAMES, NUMBERS, NAMES)),
        "removes": some(st.builds(removed, NAMES, NUMBERS)),
        "attempts": some(NUMBERS.map(attempt)),
        "launches": some(NUMBERS.map(launch_of)),
        "audit": some(NUMBERS.map(audit)),
    },
)
STEPS = st.lists(CHANGES | st.just("follow") | st.just("load"), min_size=1, max_size=12)


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=STEPS)
def test_following_leads_to_what_loading_gives(place: Place, steps: list[Any]) -> None:
    with place.another() as fresh:
        writer, follower = fresh.open(), fresh.open()
        known = follower.load()
        for number, step in enumerate(steps):
            match step:
                case "follow":
                    known = followed(follower, known)
                case "load":
                    known = follower.load()
                case changes:
                    write(writer, **settled(writer, changes, number))

        assert followed(follower, known) == follower.load() == writer.load()


def test_who_is_up_to_date_gets_nothing(store: WholeStore) -> None:
    write(store, jobs=(job(1),))

    assert store.since(1) == ()


def test_events_come_in_order(store: WholeStore) -> None:
    write(store, events=(submitted(1),))
    write(store, events=(submitted(2), over(1)))
    write(store, events=(over(2),))

    events = [event for batch in store.since(1) for event in batch.events]

    assert events == [submitted(2), over(1), over(2)]


def test_steps_come_as_they_are_now(store: WholeStore) -> None:
    write(store, allocations=(allocation(1),), steps=(step(1, 0), step(1, 1)))
    write(store, steps=(step(1, 0, ended_at=Instant(9)),))
    write(store, steps=(step(2, 4), step(1, 7, attempt_number=2)))

    last = {(each.job, each.attempt, each.number): each for each in reported_steps(store, 1)}

    assert last == {
        (1, 1, 0): step(1, 0, ended_at=Instant(9)),
        (2, 1, 4): step(2, 4),
        (1, 2, 7): step(1, 7, attempt_number=2),
    }


def test_what_was_removed_comes_with_the_version_of_its_removal(store: WholeStore) -> None:
    write(store, objects=(kept("a"), kept("b")))
    write(store, removed=(removed("a", 9),))
    write(store, objects=(kept("b", 10, "new"),))

    batches = store.since(1)

    assert [each for batch in batches for each in batch.removed] == [removed("a", 9)]
    assert [each for batch in batches for each in batch.objects][-1] == kept("b", 10, "new")


def test_who_follows_learns_which_jobs_came_of_which_request(store: WholeStore) -> None:
    made = RequestMade(key="k1", first=JobId(1), count=2)
    keyed = replace(audit(1), request=made)
    write(store, audit=(audit(1), keyed))
    write(store, audit=(audit(2),))

    entries = [each for batch in store.since(0) for each in batch.audit]

    assert entries == [keyed]


def test_who_missed_what_was_forgotten_gets_all_or_must_load_again(store: WholeStore) -> None:
    write(store, jobs=(job(1),))
    write(store, ended=(ended(1, at=5),))
    store.forget(Instant(10), limit=10)

    assert ended_since(store, 1) in (None, [1])


@pytest.mark.slow
def test_who_is_far_behind_must_load_again(store: WholeStore) -> None:
    for version in range(1, 11_002):
        store.append(Batch(version=version, next_job=JobId(version)))

    with pytest.raises(StaleSnapshotError):
        store.since(1)
    assert store.since(10_990)[-1].next_job == 11_001


def reported_steps(store: WholeStore, version: int) -> list[Step]:
    return [each for batch in store.since(version) for each in batch.steps]


def ended_since(store: WholeStore, version: int) -> list[JobId] | None:
    try:
        batches = store.since(version)
    except StaleSnapshotError:
        return None
    return [each.job.id for batch in batches for each in batch.ended]


def settled(store: WholeStore, changes: dict[str, Any], at: int) -> dict[str, Any]:
    """Changes as a controller could make them.

    A job ends once, and does not come back; an object is written or removed, not both.
    """
    over_for_good = set(store.finished(tuple(JobId(number) for number in range(1, 7))))
    ends = [number for number in changes.get("ends", []) if number not in over_for_good]
    rest = {name: values for name, values in changes.items() if name not in {"ends", "removes"}}
    written = {each.key for each in rest.get("objects", ())}
    rest["removed"] = tuple(e for e in changes.get("removes", ()) if e.key not in written)
    banned = over_for_good | set(ends)
    rest["jobs"] = tuple(each for each in rest.get("jobs", ()) if each.id not in banned)
    rest["ended"] = tuple(ended(number, at=100 + at) for number in ends)
    return rest


def followed(store: WholeStore, known: LiveState) -> LiveState:
    for batch in store.since(known.version):
        known = folded(known, batch)
    return known


def folded(state: LiveState, batch: Batch) -> LiveState:
    """What is known after this batch, as the port says how to read it."""
    jobs = {each.id: each for each in (*state.jobs, *batch.jobs)}
    allocations = {each.job: each for each in (*state.allocations, *batch.allocations)}
    nodes = {each.id: each for each in (*state.nodes, *batch.nodes)}
    clusters = {each.name: each for each in (*state.clusters, *batch.clusters)}
    rows = {(each.queue, each.user): each for each in (*state.used, *batch.used)}
    tokens = {each.id: each for each in (*state.tokens, *batch.tokens)}
    objects = {_place(each.key): each for each in (*state.objects, *batch.objects)}
    gone = {_place(each.key) for each in batch.removed}
    over_now = {each.job.id for each in batch.ended}
    return LiveState(
        version=batch.version,
        last_event=state.last_event + len(batch.events),
        next_job=batch.next_job,
        jobs=in_order({key: each for key, each in jobs.items() if key not in over_now}),
        allocations=in_order({k: each for k, each in allocations.items() if k not in batch.freed}),
        clusters=in_order(clusters),
        nodes=in_order({key: each for key, each in nodes.items() if key not in batch.gone}),
        site=batch.site or state.site,
        used=in_order(rows),
        usual=batch.usual or state.usual,
        tokens=in_order(tokens),
        objects=in_order({key: each for key, each in objects.items() if key not in gone}),
    )


def _place(key: ObjectKey) -> tuple[str, ...]:
    return key.group, key.resource, key.namespace, key.name


def in_order(values: dict[Any, Any]) -> tuple[Any, ...]:
    return tuple(values[key] for key in sorted(values))
