from muster.controller.messages import JobQuery
from muster.doors.rest.listing import not_among
from muster.model.value import JobId

ONE, TWO, THREE = (JobId(number) for number in (1, 2, 3))


def test_who_names_jobs_gets_the_one_that_is_over_also_when_others_have_just_ended() -> None:
    asked = JobQuery(jobs=(ONE, TWO, THREE), limit=3)

    assert not_among(asked, {ONE, TWO}) == JobQuery(jobs=(THREE,), limit=1)


def test_who_got_all_the_named_jobs_is_not_shown_the_end_of_others() -> None:
    assert not_among(JobQuery(jobs=(ONE,), limit=5), {ONE}) is None


def test_who_names_no_jobs_gets_what_is_left_of_the_page() -> None:
    assert not_among(JobQuery(limit=5), {ONE}) == JobQuery(limit=4)
