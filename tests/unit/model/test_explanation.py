"""What is said of how long a waiting job takes."""

from muster.model.explanation import KnownTime
from muster.model.value import HOUR, MINUTE, Duration


def known(samples: int, limit: Duration | None) -> KnownTime:
    return KnownTime(
        expected=Duration(25 * MINUTE),
        high=HOUR,
        samples=samples,
        like="jobs of ada",
        limit=limit,
        first_from=None,
    )


def test_what_was_learned_orders_and_the_limit_promises() -> None:
    assert known(12, Duration(4 * HOUR)).text == (
        "about 25m, nine of ten like it within 1h (learned from 12 jobs of ada),"
        " for its place in line; at most 4h, by which room is promised"
    )


def test_without_a_limit_what_was_learned_promises_too() -> None:
    assert known(12, None).text == (
        "about 25m, nine of ten like it within 1h (learned from 12 jobs of ada),"
        " for its place in line and, as it has no time limit, where room is promised"
    )


def test_a_guess_is_called_one() -> None:
    assert known(0, HOUR).text == (
        "unknown, as no similar job has ended yet; taken to be 25m for its place in line;"
        " at most 1h, by which room is promised"
    )


def test_one_job_is_not_called_jobs() -> None:
    assert "(learned from 1 job of ada)" in known(1, HOUR).text
