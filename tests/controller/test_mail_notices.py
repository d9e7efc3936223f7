"""What mails follow from what is committed: stories through the real controller."""

from controller.desk import Desk
from controller.ear import EVERYTHING, listening, submits_array
from muster.backends.simulated.attempt import Behaviour
from muster.controller.use_cases.job_actions import JobAction
from muster.model.event import JobUpdated
from muster.model.job import Dependency, DependencyKind, Exited, RetryPolicy
from muster.model.mail import Mail, Occasion
from muster.model.value import SECOND, Duration, JobId, UserName, replace


def changes_spec(desk: Desk, job: JobId, **fields: object) -> None:
    """Somebody wants something else."""
    wanted = replace(desk.job(job).spec, **fields)
    event = JobUpdated(at=desk.simulation.now, job=job, spec=wanted, by=UserName("root"))
    desk.applies(event)


def test_a_job_begins_reaches_parts_of_its_time_and_ends() -> None:
    desk = Desk()
    ear = listening(desk)
    job = desk.submits(lasts=95, limit_s=100, mail=EVERYTHING)

    desk.lets_pass(10)
    assert ear.heard() == [f"{job} begin"]
    desk.lets_pass(75)
    assert ear.heard() == [f"{job} time_limit_50", f"{job} time_limit_80"]
    desk.lets_pass(6)
    assert ear.heard() == [f"{job} time_limit_90"]
    desk.lets_all_end()
    assert ear.heard() == [f"{job} end"]


def test_a_job_that_runs_out_of_time_is_announced_twice() -> None:
    desk = Desk()
    ear = listening(desk)
    mail = Mail(on=(Occasion.FAIL, Occasion.TIME_LIMIT))
    job = desk.submits(lasts=500, limit_s=100, mail=mail)

    desk.lets_all_end()

    assert ear.heard() == [f"{job} time_limit", f"{job} fail"]


def test_nobody_hears_of_jobs_for_which_nobody_asked() -> None:
    desk = Desk()
    ear = listening(desk)
    desk.submits(lasts=10, limit_s=100)

    desk.lets_all_end()

    assert ear.heard() == []


def test_more_time_moves_the_parts_of_it_that_were_not_announced_yet() -> None:
    desk = Desk()
    ear = listening(desk)
    mail = Mail(on=(Occasion.TIME_LIMIT_50, Occasion.TIME_LIMIT_90))
    job = desk.submits(lasts=1_000, limit_s=100, mail=mail)
    desk.lets_pass(60)
    assert ear.heard() == [f"{job} time_limit_50"]

    changes_spec(desk, job, time_limit=Duration(200 * SECOND))

    desk.lets_pass(60)
    assert ear.heard() == []
    desk.lets_pass(62)
    assert ear.heard() == [f"{job} time_limit_90"]


def test_who_asks_while_the_job_runs_is_announced_from_then_on() -> None:
    desk = Desk()
    ear = listening(desk)
    job = desk.submits(lasts=60)
    desk.lets_pass(10)

    changes_spec(desk, job, mail=Mail(on=(Occasion.END, Occasion.BEGIN)))
    desk.lets_all_end()

    assert ear.heard() == [f"{job} end"]


def test_a_job_that_fails_and_is_tried_again_is_requeued_before_it_ends() -> None:
    desk = Desk()
    ear = listening(desk)
    retry = RetryPolicy(base=Duration(1_000))
    job = desk.submits(mail=EVERYTHING, max_attempts=2, retry=retry)
    desk.will_go(job, Behaviour(work=Duration(60 * SECOND), end=Exited(code=1)))

    desk.lets_all_end()

    assert ear.heard() == [f"{job} {each}" for each in ("begin", "requeue", "begin", "fail")]


def test_an_array_is_announced_once_and_when_all_of_it_is_over() -> None:
    desk = Desk(gpus=1)
    ear = listening(desk)
    array = submits_array(desk, 3)

    desk.lets_pass(130)
    assert ear.heard() == [f"{array} begin"]
    desk.lets_all_end()
    assert ear.heard() == [f"array {array} over"]


def test_each_part_of_an_array_is_announced_where_that_is_wanted() -> None:
    desk = Desk(gpus=1)
    ear = listening(desk)
    array = submits_array(desk, 2, mail=replace(EVERYTHING, each_part=True))

    desk.lets_all_end()

    first, second = array, array + 1
    notices = [f"{first} begin", f"{first} end", f"{second} begin", f"{second} end"]
    assert ear.heard() == notices


def test_an_array_that_is_cancelled_is_over_once() -> None:
    desk = Desk(gpus=1)
    ear = listening(desk)
    array = submits_array(desk, 3)

    desk.asks("ada", JobAction.CANCEL, *(JobId(array + each) for each in range(3)))
    desk.lets_all_end()

    assert ear.heard() == [f"array {array} over"]


def test_who_waits_for_something_that_cannot_happen_any_more_is_announced_once() -> None:
    desk = Desk()
    ear = listening(desk)
    others = [desk.submits(), desk.submits()]
    after = tuple(Dependency(kind=DependencyKind.AFTER_OK, job=each) for each in others)
    waits = desk.submits(after=after, mail=EVERYTHING)
    patient = desk.submits(
        after=(Dependency(kind=DependencyKind.AFTER_ANY, job=others[0]),),
        mail=Mail(on=(Occasion.INVALID_DEPEND,)),
    )

    desk.asks("ada", JobAction.CANCEL, others[0])
    assert ear.heard() == [f"{waits} invalid_depend"]
    desk.asks("ada", JobAction.CANCEL, others[1])
    desk.lets_pass(10)

    assert ear.heard() == []
    assert desk.job(patient).attempt == 1


def test_who_comes_too_late_to_wait_is_announced_too() -> None:
    desk = Desk()
    ear = listening(desk)
    other = desk.submits()
    keeps = desk.submits(after=(Dependency(kind=DependencyKind.AFTER_OK, job=other),))
    desk.asks("ada", JobAction.CANCEL, other)

    after = (Dependency(kind=DependencyKind.AFTER_OK, job=other),)
    changes_spec(desk, keeps, mail=EVERYTHING)
    late = desk.submits(mail=EVERYTHING)
    changes_spec(desk, late, after=after)

    assert ear.heard() == [f"{late} invalid_depend"]


def test_the_next_leader_announces_what_happens_then_and_nothing_again() -> None:
    desk = Desk()
    ear = listening(desk)
    job = desk.submits(lasts=90, limit_s=100, mail=EVERYTHING)
    array = submits_array(desk, 2, lasts=90)
    desk.lets_pass(60)
    before = ear.heard()
    assert before == [f"{job} begin", f"{array} begin", f"{job} time_limit_50"]

    ear.begins()

    desk.lets_pass(25)
    assert ear.heard() == [f"{job} time_limit_80"]
    desk.lets_all_end()
    assert ear.heard() == [f"{job} end", f"array {array} over"]


def test_an_array_of_which_a_part_was_over_before_does_not_begin_again() -> None:
    desk = Desk(gpus=1)
    array = submits_array(desk, 2)
    desk.lets_pass(58)
    desk.asks("ada", JobAction.CANCEL, array)
    desk.lets_pass(1)
    ear = listening(desk)

    desk.lets_all_end()

    assert ear.heard() == [f"array {array} over"]
