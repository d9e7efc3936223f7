"""What receivers are told of jobs: stories through the real loop, in pretend time."""

from collections.abc import Mapping

import pytest

from controller.desk import SITE, Desk
from muster.backends.simulated.attempt import Behaviour
from muster.controller.alerting.job_news import JobNewsSource, Knowledge
from muster.controller.alerting.kept import silence_body, silence_key
from muster.controller.loop.controller import LastPlan
from muster.controller.use_cases.job_actions import JobAction
from muster.controller.world.transaction import Change, Transaction
from muster.doors.rest.words import ended
from muster.model.alerting import (
    Alerting,
    JobNews,
    JobRoute,
    LabelTest,
    Receiver,
    ReceiverKind,
    Silence,
)
from muster.model.job import Exited
from muster.model.mail import Mail
from muster.model.site import Site
from muster.model.value import (
    HOUR,
    SECOND,
    Duration,
    Instant,
    QueuePath,
    UserName,
    replace,
)
from muster.stores.base import Batch
from muster.telemetry.alerting.bodies import MOST_TOLD, headline
from muster.telemetry.alerting.routing import Notification

EVERYTHING = tuple(JobNews)
WAIT_S = 30


class Listener:
    """Hears what would be told of what happens at a desk."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self._last_plan = LastPlan()
        knowledge = Knowledge(last_plan=self._last_plan, words=ended)
        self._source = JobNewsSource(desk.record, knowledge)
        self._source.begin(desk.simulation.now)
        desk.simulation.journal.subscribers.add(self._note)

    def begins(self) -> None:
        """Another process begins to lead."""
        self._source.begin(self._desk.simulation.now)

    def notifications(self) -> list[Notification]:
        """What is told once those alike have been waited for."""
        plan, _ = self._desk.plans()
        self._last_plan.settle(plan, self._desk.simulation.now, 0)
        self._source.follow_routes(self._desk.simulation.now)
        first = list(self._source.due(self._desk.simulation.now))
        later = Instant(self._desk.simulation.now + WAIT_S * SECOND)
        return [*first, *self._source.due(later)]

    def heard(self) -> list[str]:
        """`hook: JobFailed default: job 1 (job) of ada failed`."""
        return [f"{_to(each)}: {headline(each)}" for each in self.notifications()]

    def _note(self, batch: Batch, changes: tuple[Change, ...]) -> None:
        self._source.follow_routes(self._desk.simulation.now)
        self._source.take(batch, changes, self._desk.simulation.now)


def _to(told: Notification) -> str:
    address = told.key.address
    return address.user or address.receiver


def site(*routes: JobRoute, wait_s: int = WAIT_S) -> Site:
    receivers = {
        name: Receiver(name=name, kind=ReceiverKind.WEBHOOK, url_file="/etc/hook")
        for name in ("hook", "other")
    }
    alerts = Alerting(receivers=receivers, jobs=routes, wait=Duration(wait_s * SECOND))
    return replace(SITE, alerts=alerts)


def listening(*routes: JobRoute, gpus: int = 4) -> tuple[Desk, Listener]:
    desk = Desk(gpus=gpus, site=site(*routes))
    return desk, Listener(desk)


def test_a_job_starts_and_completes() -> None:
    desk, listener = listening(JobRoute(receivers=("hook",), on=EVERYTHING))
    job = desk.submits(lasts=60)

    desk.lets_pass(1)
    assert listener.heard() == [f"hook: JobStarted default: job {job} (job) of ada began to run"]
    desk.lets_all_end()
    assert listener.heard() == [f"hook: JobCompleted default: job {job} (job) of ada completed"]


def test_a_failure_says_why_and_what_to_type() -> None:
    desk, listener = listening(JobRoute(receivers=("hook",)))
    job = desk.submits()
    desk.will_go(job, Behaviour(work=Duration(10 * SECOND), end=Exited(code=3)))

    desk.lets_all_end()

    (told,) = listener.notifications()
    (alert,) = told.alerts
    assert dict(alert.labels) == {
        "alertname": "JobFailed",
        "attempt": "1",
        "job": str(job),
        "queue": "default",
        "reason": "exited",
        "severity": "warning",
        "user": "ada",
    }
    assert alert.annotation("description") == (
        f"job {job} (job) of ada failed. Ended by itself with exit code 3."
    )
    assert alert.annotation("muster") == f"muster diagnose {job}"


def test_what_is_alike_is_told_together_after_a_while() -> None:
    desk, listener = listening(JobRoute(receivers=("hook",), on=(JobNews.COMPLETED,)))
    for _ in range(3):
        desk.submits(lasts=10)
    desk.submits("bob", lasts=10, queue="a")

    desk.lets_all_end()

    assert [len(each.alerts) for each in listener.notifications()] == [1, 3]


def test_a_flood_is_one_message_that_says_how_many_there_are() -> None:
    jobs = MOST_TOLD + 20
    desk, listener = listening(JobRoute(receivers=("hook",), on=(JobNews.CANCELLED,)), gpus=1)
    ids = [desk.submits() for _ in range(jobs)]

    desk.asks("root", JobAction.CANCEL, *ids)
    desk.lets_all_end()

    (told,) = listener.notifications()
    assert (len(told.alerts), told.more) == (MOST_TOLD, 20)
    assert headline(told).endswith(f", and {jobs - 1} more")


def test_only_jobs_of_the_queue_and_the_users_of_a_route_are_told() -> None:
    desk, listener = listening(
        JobRoute(receivers=("hook",), on=(JobNews.COMPLETED,), queue=QueuePath("a")),
        JobRoute(receivers=("other",), on=(JobNews.COMPLETED,), users=(UserName("bob"),)),
    )
    one = desk.submits("ada", lasts=5, queue="a/b")
    two = desk.submits("bob", lasts=5, queue="default")
    desk.submits("ada", lasts=5, queue="default")

    desk.lets_all_end()

    assert listener.heard() == [
        f"hook: JobCompleted a/b: job {one} (job) of ada completed",
        f"other: JobCompleted default: job {two} (job) of bob completed",
    ]


def test_the_owner_is_told_by_mail_where_the_job_says_so() -> None:
    desk, listener = listening(JobRoute(on=(JobNews.COMPLETED,), owner=True))
    desk.submits("ada", lasts=5, mail=Mail(to="ada@example.org"))
    desk.submits("bob", lasts=5)

    desk.lets_all_end()

    assert sorted(_to(each) for each in listener.notifications()) == ["ada@example.org", "bob"]


def test_who_makes_room_is_told_of_once() -> None:
    desk, listener = listening(
        JobRoute(
            receivers=("hook",),
            on=(JobNews.PREEMPTED, JobNews.REQUEUED, JobNews.FAILED, JobNews.CANCELLED),
        )
    )
    low = desk.submits(job_class="low", gpus=4, lasts=600)
    desk.lets_pass(5)
    high = desk.submits(job_class="high", gpus=4, lasts=10)

    desk.lets_pass(60)

    (told,) = listener.notifications()
    assert headline(told) == f"JobPreempted default: job {low} (job) of ada is preempted"
    assert f"Made room for job {high}." in told.alerts[0].annotation("description")


def test_a_job_that_is_tried_again_is_not_told_as_failed() -> None:
    desk, listener = listening(JobRoute(receivers=("hook",), on=(JobNews.REQUEUED, JobNews.FAILED)))
    job = desk.submits(lasts=600)
    desk.lets_pass(5)

    desk.asks("ada", JobAction.REQUEUE, job)
    desk.lets_pass(30)

    assert listener.heard() == [
        f"hook: JobRequeued default: job {job} (job) of ada waits for another attempt"
    ]


def test_who_waits_too_long_is_told_of_once_and_why() -> None:
    desk, listener = listening(
        JobRoute(receivers=("hook",), on=(JobNews.WAITS_LONG,), waits=Duration(HOUR))
    )
    desk.submits(gpus=4, lasts=3 * 3_600)
    desk.lets_pass(1)
    job = desk.submits(gpus=4, lasts=10)

    desk.lets_pass(3_500)
    assert listener.heard() == []
    desk.lets_pass(101)
    (told,) = listener.notifications()
    assert headline(told) == f"JobWaitsLong default: job {job} (job) of ada waits long"
    assert "It has waited for 1h: " in told.alerts[0].annotation("description")
    assert told.alerts[0].annotation("muster") == f"muster explain {job}"
    desk.lets_pass(3_600)
    assert listener.heard() == []


@pytest.mark.parametrize("released", [False, True])
def test_time_that_a_job_is_held_does_not_count(released: bool) -> None:
    desk, listener = listening(
        JobRoute(receivers=("hook",), on=(JobNews.WAITS_LONG,), waits=Duration(HOUR))
    )
    desk.submits(gpus=4, lasts=9 * 3_600)
    job = desk.submits(gpus=4, lasts=10)
    desk.asks("ada", JobAction.HOLD, job)
    desk.lets_pass(2 * 3_600)
    if released:
        desk.asks("ada", JobAction.RELEASE, job)
        desk.lets_pass(1_800)

    assert listener.heard() == []
    desk.lets_pass(1_900)
    assert len(listener.heard()) == released


def test_the_next_leader_does_not_tell_again_who_waits() -> None:
    desk, listener = listening(
        JobRoute(receivers=("hook",), on=(JobNews.WAITS_LONG,), waits=Duration(HOUR))
    )
    desk.submits(gpus=4, lasts=9 * 3_600)
    desk.submits(gpus=4, lasts=10)
    desk.lets_pass(2 * 3_600)
    desk.submits(gpus=4, lasts=10)

    listener.begins()
    desk.lets_pass(1)
    assert listener.heard() == []
    desk.lets_pass(3_700)
    assert len(listener.heard()) == 1


def test_who_is_named_by_new_rules_is_told_what_is_so_by_then() -> None:
    desk, listener = listening()
    desk.submits(gpus=4, lasts=9 * 3_600)
    desk.submits(gpus=4, lasts=10)
    desk.lets_pass(2 * 3_600)
    route = JobRoute(receivers=("hook",), on=(JobNews.WAITS_LONG,), waits=Duration(HOUR))

    desk.changes_site(alerts=site(route).alerts)

    assert len(listener.heard()) == 1


def test_silences_hold_for_jobs_too() -> None:
    desk, listener = listening(JobRoute(receivers=("hook",), on=(JobNews.COMPLETED,)))
    silenced(desk, {"alertname": "JobCompleted", "user": "ada"})
    desk.submits("ada", lasts=5)
    bob = desk.submits("bob", lasts=5)

    desk.lets_all_end()

    assert listener.heard() == [f"hook: JobCompleted default: job {bob} (job) of bob completed"]


def test_a_job_that_is_cancelled_while_it_waits_is_told_of() -> None:
    desk, listener = listening(JobRoute(receivers=("hook",), on=EVERYTHING))
    job = desk.submits(gpus=4, begin_at=Instant(10 * HOUR))

    desk.asks("ada", JobAction.CANCEL, job)

    assert listener.heard() == [f"hook: JobCancelled default: job {job} (job) of ada was cancelled"]


def silenced(desk: Desk, tests: Mapping[str, str]) -> None:
    silence = Silence(
        id="s",
        tests=tuple(LabelTest(name=key, operator="=", value=text) for key, text in tests.items()),
        begins_at=Instant(0),
        ends_at=Instant(10 * HOUR),
        by=UserName("root"),
        comment="why",
    )

    def command(transaction: Transaction) -> None:
        transaction.put_object(silence_key(silence.id), silence_body(silence))

    desk.simulation.write(command)
