from muster.backends.timeline import DueAction, StopOrder, StopRules, Timeline

CANCELLED = {"type": "cancelled", "by": "ann"}
REQUEUED = {"type": "requeued", "by": "ann"}
PREEMPTED = {"type": "preempted", "by": 2}


def course(*, grace_ms: int = 30_000, lead_ms: int | None = None, asks: bool = False) -> Timeline:
    rules = StopRules(grace_ms=grace_ms, warn_lead_ms=lead_ms, asks_checkpoint=asks)
    return Timeline(rules=rules, began_ms=0)


def deeds(course: Timeline, until_ms: int) -> list[tuple[int, DueAction]]:
    """Everything that is done up to then, and when."""
    done: list[tuple[int, DueAction]] = []
    while (at := course.next_ms()) is not None and at <= until_ms:
        done.extend((at, deed) for deed in course.due(at))
    return done


def test_without_a_limit_nothing_is_due() -> None:
    assert course().next_ms() is None


def test_the_limit_comes_with_a_warning_and_a_grace() -> None:
    attempt = course(lead_ms=2_000)

    attempt.limit(10_000)

    assert deeds(attempt, 100_000) == [
        (8_000, DueAction.WARN),
        (10_000, DueAction.END),
        (40_000, DueAction.KILL),
    ]
    assert attempt.why == {"type": "timed_out", "limit": 10_000}


def test_a_moved_limit_does_not_warn_twice() -> None:
    attempt = course(lead_ms=2_000)
    attempt.limit(10_000)
    attempt.due(8_500)

    attempt.limit(20_000)

    assert deeds(attempt, 30_000) == [(20_000, DueAction.END)]


def test_time_standing_still_moves_the_limit() -> None:
    attempt = course()
    attempt.limit(10_000)

    attempt.suspend(4_000)
    assert attempt.next_ms() is None
    assert attempt.due(50_000) == []
    attempt.resume(104_000)

    assert deeds(attempt, 115_000) == [(110_000, DueAction.END)]
    assert attempt.why == {"type": "timed_out", "limit": 10_000}


def test_a_stop_asks_then_kills() -> None:
    attempt = course()

    attempt.stop(StopOrder(why=CANCELLED, grace_ms=5_000), 1_000)

    assert deeds(attempt, 100_000) == [(1_000, DueAction.END), (6_000, DueAction.KILL)]
    assert attempt.why == CANCELLED


def test_who_makes_room_is_warned_for_as_long_as_half_the_grace() -> None:
    attempt = course(lead_ms=60_000)

    attempt.stop(StopOrder(why=PREEMPTED, grace_ms=10_000), 0)

    assert deeds(attempt, 100_000) == [
        (0, DueAction.WARN),
        (5_000, DueAction.END),
        (10_000, DueAction.KILL),
    ]


def test_only_time_and_others_are_warned_of_not_what_a_person_wants() -> None:
    attempt = course(lead_ms=60_000)

    attempt.stop(StopOrder(why=CANCELLED, grace_ms=10_000), 0)

    assert deeds(attempt, 100_000) == [(0, DueAction.END), (10_000, DueAction.KILL)]


def test_a_job_that_requeues_itself_hears_that_it_could_before_it_ends() -> None:
    attempt = course(lead_ms=60_000)

    attempt.stop(StopOrder(why=REQUEUED, grace_ms=10_000), 0)

    assert deeds(attempt, 100_000) == [(1_000, DueAction.END), (10_000, DueAction.KILL)]


def test_who_was_warned_of_the_limit_is_not_warned_again() -> None:
    attempt = course(lead_ms=5_000)
    attempt.limit(10_000)
    attempt.due(6_000)

    attempt.stop(StopOrder(why=PREEMPTED, grace_ms=20_000), 7_000)

    assert deeds(attempt, 100_000) == [(12_000, DueAction.END), (27_000, DueAction.KILL)]


def test_a_checkpoint_that_was_asked_for_is_waited_for() -> None:
    attempt = course(asks=True)
    attempt.stop(StopOrder(why=PREEMPTED, grace_ms=8_000, checkpoint=True), 0)
    assert attempt.due(0) == [DueAction.ASK_CHECKPOINT]
    assert attempt.awaits_checkpoint

    attempt.checkpointed(3_000)

    assert deeds(attempt, 100_000) == [(3_000, DueAction.END), (8_000, DueAction.KILL)]


def test_a_checkpoint_that_never_comes_leaves_a_part_of_the_grace() -> None:
    attempt = course(asks=True)

    attempt.stop(StopOrder(why=PREEMPTED, grace_ms=8_000, checkpoint=True), 0)

    assert deeds(attempt, 100_000)[1:] == [(6_000, DueAction.END), (8_000, DueAction.KILL)]


def test_a_second_stop_keeps_the_first_reason_and_the_sooner_end() -> None:
    attempt = course()
    attempt.stop(StopOrder(why=PREEMPTED, grace_ms=60_000), 0)
    attempt.due(0)

    attempt.stop(StopOrder(why=CANCELLED, grace_ms=1_000), 2_000)

    assert deeds(attempt, 100_000) == [(3_000, DueAction.KILL)]
    assert attempt.why == PREEMPTED


def test_a_task_that_fails_ends_the_others_and_stays_the_reason() -> None:
    attempt = course()

    attempt.break_off(500, 5_000)

    assert deeds(attempt, 100_000) == [(500, DueAction.END), (5_500, DueAction.KILL)]
    assert attempt.why is None
