"""A promise that depends on limits alone is never broken by a later start."""

from hypothesis import given
from hypothesis import strategies as st

from muster.model.policy import OrderWeights, Policy, PreemptPolicy
from properties.easy import Gang, Told, Yard, planned, promised, yards


def in_order_of_arrival(depth: int) -> Policy:
    """So many have promises; the order never changes, so that the first in line stays first."""
    return Policy(
        order=OrderWeights(job_class=0, fair_share=0, short=0, queue=0),
        preempt=PreemptPolicy(by_class=False, reclaim=False),
        backfill_depth=depth,
    )


def with_limits_kept(yard: Yard) -> Yard:
    return Yard(
        yard.nodes,
        tuple(
            Gang(
                at=gang.at,
                id=gang.id,
                nodes=gang.nodes,
                limit=gang.limit,
                lasts=min(gang.limit, gang.lasts),
            )
            for gang in yard.gangs
        ),
    )


def with_exact_limits(yard: Yard) -> Yard:
    gangs = (
        Gang(at=gang.at, id=gang.id, nodes=gang.nodes, limit=gang.limit, lasts=gang.limit)
        for gang in yard.gangs
    )
    return Yard(yard.nodes, tuple(gangs))


@given(yards().map(with_limits_kept), st.integers(1, 6), st.booleans())
def test_whoever_is_first_in_line_starts_by_the_date_that_limits_promise(
    yard: Yard, depth: int, on_one_node: bool
) -> None:
    started = planned(yard, in_order_of_arrival(depth), on_one_node=on_one_node)

    ends = {started[gang.id] + gang.lasts for gang in yard.gangs}
    for now in sorted({gang.at for gang in yard.gangs} | ends | set(started.values())):
        promise = promised(yard, started, now)
        if promise is not None:
            first, at = promise
            assert started[first] <= at


@given(yards().map(with_limits_kept), st.integers(2, 6), st.booleans())
def test_a_later_promise_slips_by_no_more_than_the_limits_of_those_before_it(
    yard: Yard, depth: int, on_one_node: bool
) -> None:
    told = Told()
    started = planned(yard, in_order_of_arrival(depth), on_one_node=on_one_node, told=told)

    limits = {gang.id: gang.limit for gang in yard.gangs}
    for dates in told.by_plan:
        slack = 0
        for number, at in list(dates.items())[:depth]:
            assert started[number] <= at + slack
            slack += limits[number]


@given(yards().map(with_exact_limits), st.integers(2, 6), st.booleans())
def test_promises_do_not_slip_at_all_where_nobody_ends_early(
    yard: Yard, depth: int, on_one_node: bool
) -> None:
    told = Told()
    started = planned(yard, in_order_of_arrival(depth), on_one_node=on_one_node, told=told)

    for dates in told.by_plan:
        for number, at in list(dates.items())[:depth]:
            assert started[number] <= at
