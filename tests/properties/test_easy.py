"""The port of EASY that the planner is compared with, by cases that were worked out by hand."""

from collections.abc import Iterator

from hypothesis import given, settings

from muster.model.policy import OrderWeights, Policy, PreemptPolicy
from properties.easy import Gang, Yard, easy, planned, yards

PLAIN = Policy(
    order=OrderWeights(job_class=0, fair_share=0, short=0, queue=0),
    preempt=PreemptPolicy(by_class=False, reclaim=False),
    backfill_depth=1,
)


def worlds(count: int) -> settings:
    """At least so many; more where all properties are looked for harder."""
    usual = settings.default
    return settings(max_examples=max(count, 0 if usual is None else usual.max_examples))


def yard(nodes: int, *gangs: tuple[int, int, int, int]) -> Yard:
    """Gangs as (at, nodes, limit, lasts); the first has id 1."""
    return Yard(
        nodes,
        tuple(
            Gang(at=at, id=number, nodes=wants, limit=limit, lasts=lasts)
            for number, (at, wants, limit, lasts) in enumerate(gangs, start=1)
        ),
    )


def test_jobs_that_fit_start_when_they_come() -> None:
    assert easy(yard(3, (0, 1, 5, 5), (2, 2, 5, 5))) == {1: 0, 2: 2}


def test_a_job_passes_that_ends_just_when_the_reservation_begins() -> None:
    assert easy(yard(2, (0, 1, 10, 10), (1, 2, 5, 5), (2, 1, 8, 8))) == {1: 0, 2: 10, 3: 2}


def test_a_job_waits_that_would_delay_the_reservation() -> None:
    assert easy(yard(2, (0, 1, 10, 10), (1, 2, 5, 5), (2, 1, 9, 1))) == {1: 0, 2: 10, 3: 15}


def test_a_job_passes_on_nodes_that_the_reservation_leaves_over() -> None:
    assert easy(yard(4, (0, 3, 10, 10), (1, 3, 5, 5), (2, 1, 99, 99))) == {1: 0, 2: 10, 3: 2}


def test_what_is_left_over_is_given_once() -> None:
    given_once = yard(5, (0, 3, 10, 10), (1, 4, 5, 5), (2, 1, 99, 20), (3, 1, 99, 20))

    assert easy(given_once) == {1: 0, 2: 10, 3: 2, 4: 15}


def test_jobs_that_end_in_time_do_not_use_up_what_is_left_over() -> None:
    both_pass = yard(5, (0, 3, 10, 10), (1, 4, 5, 5), (2, 1, 8, 8), (3, 1, 99, 20))

    assert easy(both_pass) == {1: 0, 2: 10, 3: 2, 4: 3}


def test_the_second_in_line_is_delayed() -> None:
    assert easy(yard(3, (0, 2, 10, 10), (1, 2, 5, 5), (2, 3, 5, 5), (3, 1, 99, 30))) == {
        1: 0,
        2: 10,
        3: 33,
        4: 3,
    }


def test_an_early_end_moves_the_reservation() -> None:
    assert easy(yard(2, (0, 1, 10, 4), (1, 2, 5, 5), (2, 1, 9, 9))) == {1: 0, 2: 4, 3: 9}


def test_beside_a_job_beyond_its_limit_only_what_is_left_over_is_used() -> None:
    late = yard(4, (0, 2, 3, 9), (1, 3, 5, 5), (5, 1, 1, 1), (6, 1, 2, 2))

    # At 5 the first job may be gone at any moment; beside the reservation one node is left over.
    assert easy(late) == {1: 0, 2: 9, 3: 5, 4: 6}
    assert easy(yard(3, (0, 2, 3, 9), (1, 3, 5, 5), (5, 1, 1, 1))) == {1: 0, 2: 9, 3: 14}


def test_jobs_of_one_instant_go_by_id() -> None:
    assert easy(yard(1, (0, 1, 5, 5), (0, 1, 1, 1), (0, 1, 1, 1))) == {1: 0, 2: 5, 3: 6}


@given(yards())
def test_nodes_are_never_taken_twice(given_yard: Yard) -> None:
    started = easy(given_yard)

    assert max(_taken(given_yard, started)) <= given_yard.nodes


@given(yards())
def test_the_first_that_does_not_fit_starts_by_its_reservation_if_limits_are_kept(
    given_yard: Yard,
) -> None:
    kept = Yard(
        given_yard.nodes,
        tuple(
            Gang(at=gang.at, id=gang.id, nodes=gang.nodes, limit=gang.limit, lasts=gang.limit)
            for gang in given_yard.gangs
        ),
    )
    alone = Yard(kept.nodes, tuple(sorted(kept.gangs))[:2])

    # The second of all is never delayed by those that come after it.
    second = alone.gangs[-1].id
    assert easy(kept)[second] == easy(alone)[second]


# The planner's tests see two thousand worlds together.
@worlds(1_000)
@given(yards())
def test_the_planner_starts_gangs_as_easy_does(given_yard: Yard) -> None:
    assert planned(given_yard, PLAIN) == easy(given_yard)


@worlds(700)
@given(yards())
def test_the_planner_shares_out_the_gpus_of_a_node_as_easy_does(given_yard: Yard) -> None:
    assert planned(given_yard, PLAIN, on_one_node=True) == easy(given_yard)


@worlds(150)
@given(yards(gangs=6))
def test_the_planner_starts_the_smallest_jobs_as_easy_does(given_yard: Yard) -> None:
    single = Yard(
        given_yard.nodes,
        tuple(
            Gang(at=gang.at, id=gang.id, nodes=1, limit=gang.limit, lasts=gang.lasts)
            for gang in given_yard.gangs
        ),
    )

    assert planned(single, PLAIN) == easy(single)
    assert planned(single, PLAIN, on_one_node=True) == easy(single)


def _taken(given_yard: Yard, started: dict[int, int]) -> Iterator[int]:
    for now in started.values():
        yield sum(
            gang.nodes
            for gang in given_yard.gangs
            if started[gang.id] <= now < started[gang.id] + gang.lasts
        )
