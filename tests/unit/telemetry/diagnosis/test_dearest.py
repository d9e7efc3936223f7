"""Which rows of the fleet's table are dearest, and what a change of them would bring."""

import pytest

from muster.model.finding import USE_OF, Cause
from muster.model.value import HOUR, ClusterName, Instant, PoolName, QueuePath, UserName
from muster.telemetry.diagnosis.dearest import (
    CHANGES,
    HORIZON,
    Change,
    Course,
    Part,
    dearest,
    gained,
    sooner,
)
from muster.telemetry.diagnosis.ledger import NO_DEMAND, Row
from muster.telemetry.diagnosis.money import time_of

NOW = Instant(1_800_000_000_000)


def part(use: str, micros: int, cause: Cause | None = None, **whose: str) -> Part:
    row = Row(
        cluster=ClusterName("here"),
        pool=PoolName("h100"),
        queue=QueuePath(whose.get("queue", "")),
        use=use,
        cause=cause,
        user=UserName(whose.get("user", "")),
    )
    slack = 1_000 if cause is None or cause is Cause.IDLE else 500
    return Part(row=row, time=time_of(gpu_milli=micros, ms=1, slack_milli=slack), micros=micros)


def held(cause: Cause, micros: int, **whose: str) -> Part:
    return part(USE_OF[cause], micros, cause, **whose)


def test_the_dearest_is_what_bought_nothing_for_the_most_money() -> None:
    found = dearest(
        [
            held(Cause.FINE, 9_000),
            part(NO_DEMAND, 8_000),
            held(Cause.INPUT_CPU, 3_000, user="ada"),
            held(Cause.IDLE, 2_000),
            part("free_no_room", 100),
            part("broken", 10),
        ]
    )

    assert [(each.what, each.micros) for each in found] == [
        ("idle", 2_000), ("input_cpu", 1_500), ("free_no_room", 100),
    ]  # fmt: skip
    assert [each.change for each in found] == [Change.END, Change.CPUS, Change.PREEMPTION]


def test_a_row_names_those_who_wasted_most_and_nobody_who_is_hidden() -> None:
    (found,) = dearest(
        held(Cause.IDLE, micros, user=user, queue=queue)
        for micros, user, queue in (
            (5, "ada", "nlp"), (9, "bob", "nlp"), (99, "", "nlp"), (3, "cy", "cv"), (1, "di", "cv"),
        )
    )  # fmt: skip

    assert (found.users, found.queues) == (("bob", "ada", "cy"), ("nlp", "cv"))


def test_what_no_rule_changes_has_advice_instead() -> None:
    broken, slow = dearest([part("broken", 2), held(Cause.COMMUNICATION, 2)])

    assert (broken.change, slow.change) == (None, None)
    assert "repair" in broken.advice
    assert "muster diagnose" in slow.advice


@pytest.mark.parametrize(
    ("before", "after", "hours"),
    [
        (None, 0, 2),  # it would not start within the day, and would now
        (0, None, -2),
        (3, 1, 0),  # it runs whole either way
        (23, 0, 1),  # of its two hours one is left of the day
        (30, 23, 1),
    ],
)
def test_a_change_is_worth_what_jobs_would_run_more_within_the_day(
    before: int | None, after: int | None, hours: int
) -> None:
    def at(hour: int | None) -> Instant | None:
        return None if hour is None else Instant(NOW + hour * HOUR)

    course = Course(gpu_milli=4_000, lasts=2 * HOUR, before=at(before), after=at(after))

    assert gained([course], NOW) == 4_000 * hours * HOUR


def test_jobs_that_run_whole_either_way_only_wait_less() -> None:
    soon = Course(gpu_milli=1_000, lasts=HOUR, before=Instant(NOW + 3 * HOUR), after=NOW)
    late = Course(gpu_milli=1_000, lasts=HOUR, before=NOW, after=Instant(NOW + HOUR))

    assert gained([soon, late], NOW) == 0
    assert sooner([soon, late], NOW) == 2 * HOUR


def test_a_job_without_an_end_runs_to_the_end_of_the_day() -> None:
    course = Course(gpu_milli=1_000, lasts=10 * HORIZON, before=None, after=NOW)

    assert gained([course, course], NOW) == 2 * 1_000 * HORIZON


def test_the_table_names_only_causes_and_reasons_that_there_are() -> None:
    causes = {cause.value for cause in Cause}

    assert {what for what in CHANGES if not what.startswith("free_")} <= causes
