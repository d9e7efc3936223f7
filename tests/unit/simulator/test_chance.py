from muster.simulator.chance import chance


def test_the_same_question_has_the_same_answer_and_others_are_spread_evenly() -> None:
    answers = [chance(1, number) for number in range(2_000)]

    assert answers == [chance(1, number) for number in range(2_000)]
    assert 0 < min(answers) < 0.01
    assert 0.99 < max(answers) < 1
    assert 900 < sum(each < 0.5 for each in answers) < 1_100
    assert chance(1, 2) != chance(2, 1)
