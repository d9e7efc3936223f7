"""When a process may ask for the Lease, act by it, and must have come to rest."""

from datetime import UTC, datetime

import pytest

from muster.backends.kubernetes.lease import (
    Lease,
    Standing,
    came_to_rest,
    claim,
    heard,
    is_overdue,
    lease_of,
    may_act,
    may_ask,
    release,
    won,
)
from muster.model.value import Duration, Instant, replace

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
THEIRS = Lease(holder="other", lasts=Duration(15_000), version="7")
OURS = Lease(holder="me", lasts=Duration(15_000), version="8")


def at(seconds: float) -> Instant:
    return Instant(int(seconds * 1_000))


def test_a_lease_that_nobody_made_may_be_asked_for() -> None:
    standing = heard(Standing(me="me"), None, at(5))

    assert may_ask(standing, at(5))
    assert claim(standing, NOON) == {
        "spec": {
            "holderIdentity": "me",
            "leaseDurationSeconds": 15,
            "renewTime": "2026-01-01T12:00:00.000000Z",
            "acquireTime": "2026-01-01T12:00:00.000000Z",
            "leaseTransitions": 0,
        }
    }


def test_who_waits_counts_from_when_it_first_saw_the_lease_so() -> None:
    standing = heard(Standing(me="me"), THEIRS, at(100))
    standing = heard(standing, THEIRS, at(110))

    assert not may_ask(standing, at(114.9))
    assert may_ask(standing, at(115))


def test_a_renewal_makes_it_wait_again() -> None:
    standing = heard(Standing(me="me"), THEIRS, at(100))
    standing = heard(standing, replace(THEIRS, version="9"), at(114))

    assert not may_ask(standing, at(128))


def test_it_waits_as_long_as_the_holder_said() -> None:
    standing = heard(Standing(me="me"), replace(THEIRS, lasts=Duration(60_000)), at(0))

    assert not may_ask(standing, at(59))
    assert may_ask(standing, at(60))


def test_what_was_given_back_may_be_asked_for_at_once() -> None:
    standing = heard(Standing(me="me"), replace(THEIRS, holder=""), at(100))

    assert may_ask(standing, at(100))


def test_a_lease_that_somebody_deletes_is_still_its_holders_for_as_long_as_it_lasts() -> None:
    standing = heard(Standing(me="me"), THEIRS, at(100))
    standing = heard(standing, None, at(101))

    assert not may_ask(standing, at(114))
    assert may_ask(standing, at(115))
    assert "metadata" not in claim(standing, NOON)


def test_who_holds_it_acts_for_ten_seconds_after_it_asked_and_is_overdue_after_fourteen() -> None:
    standing = won(Standing(me="me"), OURS, at(100), at(103))

    assert may_act(standing, at(109.9))
    assert not may_act(standing, at(110))
    assert not is_overdue(standing, at(113.9))
    assert is_overdue(standing, at(114))


def test_who_came_to_rest_is_never_overdue() -> None:
    standing = came_to_rest(won(Standing(me="me"), OURS, at(100), at(100)))

    assert not is_overdue(standing, at(500))
    assert not may_act(standing, at(101))


def test_who_sees_another_holder_acts_no_more_and_must_come_to_rest_all_the_same() -> None:
    standing = won(Standing(me="me"), OURS, at(100), at(100))
    standing = heard(standing, THEIRS, at(101))

    assert not may_act(standing, at(101))
    assert is_overdue(standing, at(114))


def test_it_is_renewed_as_it_was_seen_and_keeps_when_it_was_taken() -> None:
    standing = won(Standing(me="me"), OURS, at(100), at(100))

    body = claim(standing, NOON)

    assert body["metadata"] == {"resourceVersion": "8"}
    assert "acquireTime" not in body["spec"]
    assert "leaseTransitions" not in body["spec"]


def test_who_takes_over_counts_on() -> None:
    standing = heard(Standing(me="me"), replace(THEIRS, takings=3), at(0))

    assert claim(standing, NOON)["spec"]["leaseTransitions"] == 4


def test_only_who_holds_it_gives_it_back() -> None:
    ours, theirs = won(Standing(me="me"), OURS, at(0), at(0)), Standing(me="me", lease=THEIRS)

    given = release(ours, NOON)
    assert given is not None
    assert given["spec"]["holderIdentity"] == ""
    assert release(theirs, NOON) is None


@pytest.mark.parametrize("spec", [{}, {"holderIdentity": None}, None])
def test_a_lease_that_says_nothing_is_nobodys(spec: dict[str, object] | None) -> None:
    lease = lease_of({"metadata": {"resourceVersion": "1"}, "spec": spec})

    assert may_ask(heard(Standing(me="me"), lease, at(0)), at(0))
