"""Who silences a queue's alerts cannot stop who judges them, nor write on the screens of others."""

import time
from collections.abc import Callable
from typing import TypeVar

import pytest

from hostile.people import ADMIN, BOSS, HOUR, OTHER, OWNER, ROOT, VIEWER, caller
from muster.app.parts import Muster, clock
from muster.controller.alerting.board import AlertBoard, Standing
from muster.controller.alerting.queries import AlertQueries
from muster.controller.alerting.use_cases import MOST_OF_ONE_USER, SilenceRequest
from muster.doors.request.bad import BadRequestError
from muster.doors.rest.of_alerts import comment_of, label_test
from muster.model.alerting import LabelTest, Silence
from muster.model.errors import RefusedError, UnknownError
from muster.model.value import Instant, QueuePath, UserName
from muster.telemetry.alerting.judging import Alert, AlertState
from muster.telemetry.alerting.muting import Muting, mutes
from muster.telemetry.promql.labels import series_name

T = TypeVar("T")

A = QueuePath("a")
SECONDS = 5.0
"""Far more than it takes, and far less than a pattern that is tried in every way."""

SLOW = (
    ".*.*.*.*.*.*.*.*.*.*.*.*x",
    "a?" * 30 + "a" * 30,
    "(.?){40}.{40}",
    "(a|aa)+$",
    "(a*)*b",
    ".{1,1000}.{1,1000}.{1,1000}b",
    "[a-z]*[a-z]*[a-z]*[a-z]*[a-z]*[a-z]*[a-z]*0",
)


@pytest.mark.parametrize("pattern", SLOW)
def test_no_pattern_keeps_alerts_from_being_judged(pattern: str) -> None:
    """Python's own matcher would hold the interpreter, and so all of Muster."""
    try:
        test = label_test(f"queue=~{pattern}")
    except BadRequestError:
        return
    alerts = [alert("JobHangs", "a" * length) for length in (29, 30, 120)]
    silence = silenced(test)

    _, took_s = timed(lambda: mutes(alerts, Muting(silences=(silence,)), Instant(0)))

    assert took_s < SECONDS


def test_patterns_of_one_user_are_short_together(fresh: Muster) -> None:
    long = SilenceRequest(
        tests=(label_test(f"alertname=~{'.*' * 100}x"),), lasts=HOUR, comment="why", queue=A
    )
    for _ in range(2):
        fresh.service.make_silence(BOSS, long).result()
    several = [fresh.service.make_silence(BOSS, long) for _ in range(20)]

    refused = [each for each in several if "too long together" in str(each.exception())]
    assert len(refused) > 10
    alerts = [alert(f"JobHangs{each}" + "x" * 40, "a") for each in range(20)]
    muting = Muting(silences=fresh.service.queries.alerts.silences(BOSS))
    _, took_s = timed(lambda: mutes(alerts, muting, Instant(clock())))
    assert took_s < SECONDS


@pytest.mark.parametrize("text", ["\n", "\r", "\x1b[2J", "\x00", "\x9b", "\u202e", "\u2028"])
def test_silences_hold_no_control_characters(text: str) -> None:
    with pytest.raises(BadRequestError, match="control character"):
        comment_of(f"new{text}fans")
    with pytest.raises(BadRequestError, match="control character"):
        label_test(f"gpu=0{text}1")


def test_one_user_does_not_make_all_silences(fresh: Muster) -> None:
    wanted = SilenceRequest(
        tests=(LabelTest(name="gpu", operator="=", value="0"),),
        lasts=HOUR,
        comment="why",
        queue=A,
    )
    for _ in range(MOST_OF_ONE_USER):
        fresh.service.make_silence(BOSS, wanted).result()

    with pytest.raises(RefusedError, match="end some of them"):
        fresh.service.make_silence(BOSS, wanted).result()
    assert fresh.service.make_silence(ADMIN, wanted).result().by == "admin"

    mine = fresh.service.queries.alerts.silences(BOSS)[0]
    fresh.service.end_silence(BOSS, mine.id).result()
    assert fresh.service.make_silence(BOSS, wanted).result().by == "boss"


def test_silences_of_queues_that_are_not_there_are_refused(muster: Muster) -> None:
    for path in ("a/none", "a//b", "a/../secret"):
        wanted = SilenceRequest(tests=(), lasts=HOUR, comment="why", queue=QueuePath(path))
        with pytest.raises(UnknownError, match="no queue"):
            muster.service.make_silence(BOSS, wanted).result()


def test_alerts_of_a_private_queue_tell_strangers_nothing_of_its_users(muster: Muster) -> None:
    board = AlertBoard()
    hidden = alert("JobHangs", "secret/deep", user="owner", job="7")
    open_to_all = alert("JobHangs", "a", user="owner", job="8")
    of_nobody = alert("QueueStuck", "secret/deep")
    board.standing = Standing(alerts=(hidden, open_to_all, of_nobody))
    queries = AlertQueries(muster.journal.record, board, clock)

    for who in (OTHER, caller("nobody-special"), BOSS):
        seen = queries.standing(who)
        assert hidden not in seen.alerts, who.user
        assert "of owner in secret/deep" not in repr(seen)
    for who in (OWNER, ROOT, ADMIN, VIEWER, caller("insider")):
        assert hidden in queries.standing(who).alerts, who.user
    assert open_to_all in queries.standing(OTHER).alerts
    assert of_nobody in queries.standing(OTHER).alerts


def alert(name: str, queue: str, **labels: str) -> Alert:
    about = f"Job {labels.get('job')} of {labels.get('user')} in {queue}"
    return Alert(
        labels=series_name({"alertname": name, "queue": queue, **labels}),
        annotations=(("description", about),),
        value=1,
        state=AlertState.FIRING,
        since=Instant(0),
    )


def silenced(test: LabelTest) -> Silence:
    return Silence(
        id="1",
        tests=(test,),
        begins_at=Instant(0),
        ends_at=Instant(HOUR),
        by=UserName("boss"),
        comment="why",
    )


def timed(call: Callable[[], T]) -> tuple[T, float]:
    began = time.monotonic()
    return call(), time.monotonic() - began
