"""What may still be changed about a job, when, and by whom."""

from collections.abc import Callable

import pytest

from controller.desk import SITE, Desk, spec
from muster.controller.messages import Caller
from muster.controller.use_cases.job_actions import JobAction
from muster.controller.use_cases.submission import NodeKinds
from muster.controller.use_cases.update import updated
from muster.model.errors import ForbiddenError, RefusedError, UnknownError
from muster.model.job import Dependency, DependencyKind, Job, JobSpec
from muster.model.queue import Queue
from muster.model.value import ClassName, Duration, JobId, QueuePath, UserName, replace

Changed = Callable[[JobSpec], JobSpec]


def changes(desk: Desk, job: JobId, change: Changed, by: str = "ada") -> Job:
    who = Caller(user=UserName(by), door="test", root=by == "root")
    command = desk.simulation.journal.write
    return command(
        lambda transaction: updated(who, job, change, (NodeKinds(), transaction))
    ).result()


def to_queue(path: str) -> Changed:
    return lambda spec: replace(spec, queue=QueuePath(path))


def to_limit(seconds: int | None) -> Changed:
    limit = None if seconds is None else Duration(seconds * 1_000)
    return lambda spec: replace(spec, time_limit=limit)


def named(name: str) -> Changed:
    return lambda spec: replace(spec, name=name)


def larger(gpus: int) -> Changed:
    return lambda old: replace(old, groups=spec(gpus=gpus).groups)


def waiting(desk: Desk, **fields: object) -> JobId:
    """A job that finds no room."""
    desk.submits(gpus=4, lasts=600)
    desk.lets_pass(1)
    return desk.submits(**fields)  # pyright: ignore[reportArgumentType]


def running(desk: Desk, **fields: object) -> JobId:
    job = desk.submits(lasts=600, **fields)  # pyright: ignore[reportArgumentType]
    desk.lets_pass(1)
    return job


def test_a_waiting_job_can_become_another_request() -> None:
    desk = Desk(gpus=4)
    job = waiting(desk)

    for change in (named("better"), to_queue("a/b"), to_limit(90), larger(2)):
        changes(desk, job, change)

    now = desk.job(job).spec
    assert (now.name, now.queue, now.time_limit) == ("better", "a/b", 90_000)
    assert now.groups == spec(gpus=2).groups


def test_a_waiting_job_can_be_made_to_depend_on_one_that_has_ended() -> None:
    desk = Desk(gpus=4)
    over = desk.submits(lasts=1)
    desk.lets_pass(5)
    job = waiting(desk)
    after = (Dependency(kind=DependencyKind.AFTER_OK, job=over),)

    changes(desk, job, lambda spec: replace(spec, after=after))
    desk.lets_all_end()

    assert desk.state(job) == "completed"


def test_a_changed_request_must_be_one_that_would_be_let_in() -> None:
    desk = Desk(gpus=4)
    job = waiting(desk)
    before = desk.job(job)

    for change in (larger(9), to_queue("nowhere"), _to_class("nothing")):
        with pytest.raises(RefusedError):
            changes(desk, job, change)

    assert desk.job(job) == before


def _to_class(name: str) -> Changed:
    return lambda spec: replace(spec, job_class=ClassName(name))


def test_a_job_in_a_full_queue_can_be_changed_where_it_is() -> None:
    desk = Desk(gpus=4)
    full = Queue(path=QueuePath("a"), max_submitted=1)
    desk.changes_site(queues={**SITE.queues, full.path: full})
    job = waiting(desk, queue="a")

    changes(desk, job, named("better"))

    assert desk.job(job).spec.name == "better"


def test_a_job_cannot_move_into_a_full_queue() -> None:
    desk = Desk(gpus=4)
    full = Queue(path=QueuePath("a"), max_submitted=1)
    desk.changes_site(queues={**SITE.queues, full.path: full})
    desk.submits(queue="a")
    job = waiting(desk)

    with pytest.raises(RefusedError):
        changes(desk, job, to_queue("a"))


def test_a_held_job_can_be_changed_and_stays_held() -> None:
    desk = Desk(gpus=4)
    job = desk.submits()
    desk.asks("ada", JobAction.HOLD, job)

    changes(desk, job, larger(2))

    assert desk.state(job) == "held"
    assert desk.job(job).spec.groups == spec(gpus=2).groups


def test_of_a_running_job_its_name_and_labels_can_change() -> None:
    desk = Desk(gpus=4)
    job = running(desk)

    changes(desk, job, lambda spec: replace(spec, name="new", labels={"paper": "3"}))

    assert (desk.job(job).spec.name, desk.job(job).spec.labels) == ("new", {"paper": "3"})


def test_of_a_running_job_its_priority_and_retries_can_change() -> None:
    desk = Desk(gpus=4)
    job = running(desk)
    once = replace(desk.job(job).spec.retry, requeue=False)

    changes(desk, job, lambda spec: replace(spec, priority=-5, retry=once))

    assert (desk.job(job).spec.priority, desk.job(job).spec.retry) == (-5, once)


@pytest.mark.parametrize("change", [to_queue("a"), larger(2)], ids=["queue", "gpus"])
def test_the_rest_of_a_running_job_cannot_change(change: Changed) -> None:
    desk = Desk(gpus=4)
    job = running(desk)

    with pytest.raises(ForbiddenError, match="only its name, labels, mail, time limit"):
        changes(desk, job, change, by="root")


def test_a_running_job_can_be_given_less_time_by_its_owner() -> None:
    desk = Desk(gpus=4)
    job = running(desk, limit_s=500)

    changes(desk, job, to_limit(60))
    desk.lets_all_end()

    assert desk.state(job) == "failed"
    assert desk.simulation.now == 60_000


@pytest.mark.parametrize("limit", [501, None])
def test_more_time_for_a_running_job_comes_from_the_admins_of_its_queue(
    limit: int | None,
) -> None:
    desk = Desk(gpus=4)
    job = running(desk, limit_s=500, queue="a/b")

    with pytest.raises(ForbiddenError, match="more time"):
        changes(desk, job, to_limit(limit))
    changes(desk, job, to_limit(limit), by="boss")
    desk.lets_all_end()

    assert desk.state(job) == ("failed" if limit else "completed")


def test_strangers_change_nothing() -> None:
    desk = Desk(gpus=4)
    job = desk.submits("ada")

    with pytest.raises(ForbiddenError, match="belongs to ada"):
        changes(desk, job, named("mine"), by="grace")


def test_what_has_ended_cannot_change() -> None:
    desk = Desk(gpus=4)
    job = desk.submits(lasts=1)
    desk.lets_all_end()

    with pytest.raises(UnknownError, match="may have ended"):
        changes(desk, job, named("late"))


def test_a_change_can_let_a_job_start() -> None:
    desk = Desk(gpus=4)
    desk.submits(gpus=3, lasts=600)
    job = desk.submits(gpus=4, lasts=600)
    desk.lets_pass(1)
    assert desk.state(job) == "pending"

    changes(desk, job, larger(1))
    desk.lets_pass(1)

    assert desk.state(job) == "running"
