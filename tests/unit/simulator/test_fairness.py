import pytest

from muster.model.queue import Queue, Quota
from muster.model.value import Duration, Instant, QueuePath
from muster.simulator.curve import Series
from muster.simulator.fairness import FairPace, entitled, jain


def queues(*given: Queue) -> dict[QueuePath, Queue]:
    return {each.path: each for each in given}


def path(text: str) -> QueuePath:
    return QueuePath(text)


def test_who_wants_everything_gets_a_part_by_weight() -> None:
    tree = queues(Queue(path=path("a"), weight=3), Queue(path=path("b")))

    rights = entitled(tree, {path("a"): 9_000, path("b"): 9_000}, 4_000)

    assert rights == {"a": pytest.approx(3_000), "b": pytest.approx(1_000)}


def test_what_one_queue_does_not_want_the_others_share() -> None:
    tree = queues(Queue(path=path("a"), weight=3), Queue(path=path("b")), Queue(path=path("c")))

    rights = entitled(tree, {path("a"): 1_000, path("b"): 9_000, path("c"): 9_000}, 4_000)

    assert rights == {
        "a": pytest.approx(1_000),
        "b": pytest.approx(1_500),
        "c": pytest.approx(1_500),
    }


def test_a_guarantee_comes_before_weights() -> None:
    promised = Queue(path=path("a"), quotas=(Quota(guaranteed=3_000),))

    rights = entitled(
        queues(promised, Queue(path=path("b"), weight=9)),
        {path("a"): 9_000, path("b"): 9_000},
        4_000,
    )

    assert rights[path("a")] == pytest.approx(3_100)
    assert rights[path("b")] == pytest.approx(900)


def test_queues_below_share_what_the_one_above_has() -> None:
    tree = queues(
        Queue(path=path("a")),
        Queue(path=path("a/x")),
        Queue(path=path("a/y")),
        Queue(path=path("b")),
    )
    demand = {path("a"): 8_000, path("a/x"): 4_000, path("a/y"): 4_000, path("b"): 4_000}

    rights = entitled(tree, demand, 4_000)

    assert rights[path("a/x")] == pytest.approx(1_000)
    assert rights[path("b")] == pytest.approx(2_000)


def test_jain_says_one_for_equal_parts_and_a_quarter_for_one_of_four() -> None:
    assert jain([2, 2, 2, 2]) == 1
    assert jain([1, 0, 0, 0]) == 0.25


def test_a_job_would_take_twice_as_long_where_twice_as_much_is_wanted() -> None:
    every = Duration(1_000)
    wanted = Series(begins_at=Instant(0), every=every, means=(8, 8, 8, 8, 2, 2))
    there = Series(begins_at=Instant(0), every=every, means=(4, 4, 4, 4, 4, 4))
    pace = FairPace(wanted, there)

    assert pace.ends_after(0, 1_000) == pytest.approx(2_000)
    assert pace.ends_after(3_000, 1_000) == pytest.approx(1_500)
    assert pace.ends_after(4_000, 1_000) == pytest.approx(1_000)
    assert pace.ends_after(5_500, 2_000) == pytest.approx(2_000)
