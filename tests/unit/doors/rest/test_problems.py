import asyncio

import pytest

from muster.doors.request.bad import BadRequestError
from muster.doors.rest.hub import MOST_WAITING, Hub, TooSlowError
from muster.doors.rest.problems import trouble
from muster.doors.units import BadTextError
from muster.model.errors import (
    BadPlanError,
    ForbiddenError,
    RefusedError,
    StaleSnapshotError,
    StoreDownError,
    StoreFullError,
    StoreLockedError,
    UnknownError,
)
from muster.model.event import JobReleased
from muster.model.forbidden import NoRole
from muster.model.reason import NoSuchQueue
from muster.model.value import Instant, JobId, QueuePath, UserName
from muster.stores.base import Stored


@pytest.mark.parametrize(
    ("error", "status", "kind"),
    [
        (BadRequestError("time", "no"), 400, "bad_request"),
        (BadTextError("x", "y"), 400, "bad_request"),
        (ForbiddenError(NoRole(user=UserName("ann"))), 403, "forbidden"),
        (UnknownError("what?"), 404, "unknown"),
        (RefusedError(NoSuchQueue(queue=QueuePath("q")), "advice"), 422, "no_such_queue"),
        (StoreFullError("db"), 507, "store_full"),
        (StoreLockedError("db"), 503, "store_down"),
        (StoreDownError("db", "gone"), 503, "store_down"),
        (StaleSnapshotError(expected=1, found=2), 503, "try_again"),
        (BadPlanError(("broken",)), 500, "our_bug"),
        (ZeroDivisionError("oops"), 500, "our_bug"),
    ],
)
def test_an_error_has_the_status_of_who_must_act(error: Exception, status: int, kind: str) -> None:
    found = trouble(error)

    assert (found.status, found.problem.kind) == (status, kind)


def test_what_passes_says_when_to_ask_again() -> None:
    assert dict(trouble(StoreDownError("db", "gone")).headers)[b"retry-after"].isdigit()
    assert trouble(StoreFullError("db")).headers == ()


def test_a_bug_tells_its_number_and_keeps_the_rest_for_the_log(
    caplog: pytest.LogCaptureFixture,
) -> None:
    problem = trouble(ZeroDivisionError("a secret")).problem

    number = problem.text.partition("`bug ")[2].partition("`")[0]
    assert "a secret" not in problem.text
    assert f"bug {number}" in caplog.text


def test_a_listener_who_does_not_keep_up_is_let_go_and_holds_nothing() -> None:
    asyncio.run(a_slow_listener())


async def a_slow_listener() -> None:
    followers: list[object] = []
    hub = Hub(lambda follower: followers.append(follower) or followers.clear)
    lost = asyncio.Event()
    with hub.listening(lost) as listener:
        listener.tell(tuple(event(number) for number in range(MOST_WAITING)))
        assert len(await listener.take(1)) == MOST_WAITING
        assert not lost.is_set()

        listener.tell(tuple(event(number) for number in range(MOST_WAITING)))
        listener.tell((event(MOST_WAITING),))

        assert lost.is_set()
        with pytest.raises(TooSlowError):
            await listener.take(1)
    assert followers == []


def event(number: int) -> Stored:
    event = JobReleased(at=Instant(0), job=JobId(1), by=UserName("anna"))
    return Stored(number=number, event=event)
