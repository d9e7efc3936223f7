import pytest

from muster.model.xid import XIDS, Advice, Verdict, xid_of, xid_text

HARMLESS = (Advice.NOTHING, Advice.RESTART_PROGRAM)
# Which of them counted as fatal before there was a table.
ONCE_FATAL = (
    *(11, 25, 60, 80, 37, 38, 44, 67, 121, 141, 152, 153, 93, 106, 107, 157, 160, 161),
    *(39, 40, 41, 70, 71, 72, 75, 76, 77, 85, 82, 83, 84, 86, 88, 89, 139),
    *range(96, 106),
    *range(126, 136),
)


def test_what_nvidia_says_to_ignore_or_to_restart_the_program_for_breaks_no_gpu() -> None:
    harmless = [each for each in XIDS.values() if each.advice in HARMLESS]

    assert [each for each in harmless if each.verdict.breaks] == []
    assert len(ONCE_FATAL) == 55
    assert {each.number for each in harmless}.issuperset(ONCE_FATAL)


def test_what_nvidia_resets_a_gpu_for_breaks_it() -> None:
    reset = [each.number for each in XIDS.values() if each.advice is Advice.RESET]

    assert 109 in reset
    assert all(XIDS[number].verdict is Verdict.RESET for number in reset)


@pytest.mark.parametrize("number", [48, 74, 79, 95, 119, 120, 140])
def test_those_that_dcgm_calls_devastating_break_a_gpu(number: int) -> None:
    assert XIDS[number].verdict.breaks


def test_an_unknown_error_is_not_trusted() -> None:
    assert xid_of(9_999).verdict is Verdict.RESET
    assert xid_text(9_999) == "Xid 9999: an error that we have no words for"


def test_every_number_stands_beside_its_own_row() -> None:
    assert all(number == each.number for number, each in XIDS.items())
    assert xid_text(13) == "Xid 13: a kernel did something that the GPU does not allow"


def test_a_gpu_that_goes_on_with_bad_memory_is_suspect_and_not_broken() -> None:
    assert sorted(number for number, each in XIDS.items() if each.suspect) == [63, 92]
