import pytest

from muster.backends.local.hardware.gpu_health import (
    BROKEN_CODES,
    Health,
    Reading,
    judged,
    resumed,
    struck,
)
from muster.model.xid import xid_text

WELL = Health(uncorrected=0)


def test_a_device_with_nothing_wrong_is_well() -> None:
    assert judged(Health(), Reading(uncorrected=0)) == WELL


@pytest.mark.parametrize(
    ("reading", "words"),
    [
        (Reading(code=15), "lost"),
        (Reading(code=16), "needs a reset"),
        (Reading(remap_failed=True), "replace the GPU"),
        (Reading(remap_pending=True), "reset the GPU"),
        (Reading(uncorrected=2), "2 more memory errors"),
        (Reading(advice=1), "asks for a reset"),
        (Reading(advice=2), "restart of the machine"),
    ],
)
def test_what_speaks_against_a_device_is_said(reading: Reading, words: str) -> None:
    assert words in judged(WELL, reading).reason


@pytest.mark.parametrize("code", [3, 4, 10, 19, 20, 23])
def test_an_answer_that_says_nothing_about_the_device_breaks_nothing(code: int) -> None:
    assert code not in BROKEN_CODES
    assert judged(WELL, Reading(code=code)) == WELL


def test_errors_from_before_we_looked_do_not_count() -> None:
    first = judged(Health(), Reading(uncorrected=7))

    assert first.reason == ""
    assert judged(first, Reading(uncorrected=7)).reason == ""
    assert judged(first, Reading(uncorrected=8)).reason != ""


def test_a_counter_that_starts_again_is_no_error() -> None:
    assert judged(Health(uncorrected=7), Reading(uncorrected=0)).reason == ""


def test_a_device_that_cannot_count_errors_keeps_what_it_counted() -> None:
    assert judged(Health(uncorrected=7), Reading()).uncorrected == 7


def test_a_broken_device_stays_broken_for_its_first_reason() -> None:
    broken = struck(WELL, 79)

    later = judged(struck(broken, 48), Reading(uncorrected=0))

    assert later.reason == "Xid 79: fallen off the bus"


@pytest.mark.parametrize("xid", [46, 48, 54, 62, 64, 74, 79, 95, 109, 119, 120, 140])
def test_errors_that_leave_a_gpu_unusable_break_it(xid: int) -> None:
    assert struck(WELL, xid).reason == xid_text(xid)


@pytest.mark.parametrize("xid", [8, 13, 31, 38, 43, 45, 63, 69, 92, 94, 121, 126, 137, 154])
def test_what_a_program_did_wrong_breaks_no_device(xid: int) -> None:
    assert struck(WELL, xid) == WELL


def test_an_error_that_we_do_not_know_breaks_a_device() -> None:
    assert struck(WELL, 9_999).reason.startswith("Xid 9999")


def test_a_resumed_device_is_well_although_the_finding_is_still_there() -> None:
    pending = Reading(uncorrected=3, remap_pending=True)
    broken = judged(WELL, pending)

    back = judged(resumed(broken, pending), pending)

    assert broken.reason != ""
    assert back.reason == ""


def test_a_resumed_device_breaks_again_when_something_new_is_found() -> None:
    back = resumed(judged(WELL, Reading(remap_pending=True)), Reading(remap_pending=True))

    assert "replace" in judged(back, Reading(remap_pending=True, remap_failed=True)).reason
    assert struck(back, 79).reason != ""


def test_a_device_can_be_resumed_before_anybody_looked_at_it() -> None:
    assert resumed(struck(WELL, 79), None) == WELL
