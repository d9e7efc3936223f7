"""One user may ask for so much at once; others do not notice."""

import pytest

from muster.controller.queries.questions import Questions
from muster.model.errors import BusyError
from muster.model.value import UserName

ADA, BOB = UserName("ada"), UserName("bob")


def test_a_user_with_two_open_questions_is_asked_to_wait_and_others_are_not() -> None:
    questions = Questions()

    with (
        questions.asked_by(ADA),
        questions.asked_by(ADA),
        questions.asked_by(BOB),
        pytest.raises(BusyError, match="ask again when they are answered"),
    ):
        questions.asked_by(ADA).__enter__()


def test_an_answered_question_makes_place_for_the_next_also_when_it_failed() -> None:
    questions = Questions()

    for _ in range(5):
        with pytest.raises(ZeroDivisionError), questions.asked_by(ADA):
            raise ZeroDivisionError
    with questions.asked_by(ADA), questions.asked_by(ADA):
        pass
