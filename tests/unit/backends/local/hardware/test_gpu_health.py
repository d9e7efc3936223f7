import pytest

from muster.backends.local.hardware.gpu_health import (
    BROKEN_CODES,
    REMEMBERED,
    RETIRES_AFTER,
    Health,
    Reading,
    after_test,
    judged,
    remembered,
    resumed,
    struck,
)
from muster.model.gpu import DeviceState
from muster.model.value import HOUR, Duration, Instant
from muster.model.xid import XIDS, Verdict, xid_text

WELL = Health(uncorrected=0)
NOW = Instant(1_800_000_000_000)


def later(passed: Duration) -> Instant:
    return Instant(NOW + passed)


def test_a_device_with_nothing_wrong_is_well() -> None:
    assert judged(Health(), Reading(uncorrected=0), NOW) == WELL


@pytest.mark.parametrize(
    ("reading", "words"),
    [
        (Reading(code=15), "lost"),
        (Reading(code=16), "needs a reset"),
        (Reading(uncorrected=2), "2 more memory errors"),
        (Reading(advice=1), "asks for a reset"),
        (Reading(advice=2), "restart of the machine"),
    ],
)
def test_what_breaks_a_device_is_said(reading: Reading, words: str) -> None:
    after = judged(WELL, reading, NOW)

    assert after.state is DeviceState.BROKEN
    assert words in after.reason


def test_a_device_that_cannot_be_mended_is_retired() -> None:
    after = judged(WELL, Reading(remap_failed=True), NOW)

    assert (after.state, "replace the GPU" in after.reason) == (DeviceState.RETIRED, True)


def test_a_row_to_be_replaced_makes_a_device_suspect() -> None:
    after = judged(WELL, Reading(remap_pending=True), NOW)

    assert (after.state, "reset the GPU" in after.reason) == (DeviceState.SUSPECT, True)


@pytest.mark.parametrize("code", [3, 4, 10, 19, 20, 23])
def test_an_answer_that_says_nothing_about_the_device_breaks_nothing(code: int) -> None:
    assert code not in BROKEN_CODES
    assert judged(WELL, Reading(code=code), NOW) == WELL


def test_errors_from_before_we_looked_do_not_count() -> None:
    first = judged(Health(), Reading(uncorrected=7), NOW)

    assert first.reason == ""
    assert judged(first, Reading(uncorrected=7), NOW).reason == ""
    assert judged(first, Reading(uncorrected=8), NOW).reason != ""


def test_a_counter_that_starts_again_is_no_error() -> None:
    assert judged(Health(uncorrected=7), Reading(uncorrected=0), NOW).reason == ""


def test_a_device_that_cannot_count_errors_keeps_what_it_counted() -> None:
    assert judged(Health(uncorrected=7), Reading(), NOW).uncorrected == 7


def test_a_broken_device_stays_broken_for_its_first_reason() -> None:
    broken = struck(WELL, 79, NOW)

    again = judged(struck(broken, 48, NOW), Reading(uncorrected=0), NOW)

    assert again.reason == "Xid 79: fallen off the bus"
    assert again.broke_at == (NOW,)


@pytest.mark.parametrize("xid", sorted(XIDS))
def test_every_row_of_the_table_does_what_its_verdict_says(xid: int) -> None:
    after = struck(WELL, xid, NOW)

    if XIDS[xid].verdict.breaks:
        assert (after.state, after.reason) == (DeviceState.BROKEN, xid_text(xid))
    elif XIDS[xid].suspect:
        assert (after.state, after.reason) == (DeviceState.SUSPECT, xid_text(xid))
    else:
        assert after.state is DeviceState.WELL


@pytest.mark.parametrize("xid", [46, 48, 54, 62, 64, 74, 79, 95, 109, 119, 120, 140])
def test_errors_that_leave_a_gpu_unusable_break_it(xid: int) -> None:
    assert struck(WELL, xid, NOW).state is DeviceState.BROKEN


@pytest.mark.parametrize("xid", [8, 13, 31, 38, 43, 45, 69, 94, 121, 126, 137, 154])
def test_what_a_program_did_wrong_leaves_the_device_well(xid: int) -> None:
    assert struck(WELL, xid, NOW).state is DeviceState.WELL


def test_an_engine_that_fails_again_and_again_makes_its_device_suspect() -> None:
    (engine, *_) = [xid for xid in XIDS if XIDS[xid].of_engine]
    twice = struck(struck(WELL, engine, NOW), engine, NOW)

    assert twice.state is DeviceState.WELL
    assert struck(twice, engine, later(Duration(HOUR - 1))).state is DeviceState.SUSPECT
    assert struck(twice, engine, later(HOUR)).state is DeviceState.WELL


def test_a_program_that_fails_again_and_again_does_not() -> None:
    after = WELL
    for _ in range(9):
        after = struck(after, 13, NOW)

    assert XIDS[13].verdict is Verdict.APP
    assert after.state is DeviceState.WELL


def test_an_error_that_we_do_not_know_breaks_a_device() -> None:
    assert struck(WELL, 9_999, NOW).reason.startswith("Xid 9999")


def test_a_device_that_broke_comes_back_when_its_test_has_passed() -> None:
    waiting = resumed(struck(WELL, 79, NOW), Reading())

    assert (waiting.state, "smoke test" in waiting.reason) == (DeviceState.PROBATION, True)
    assert after_test(waiting, None, NOW).state is DeviceState.WELL


def test_a_device_that_fails_its_test_is_broken_again() -> None:
    waiting = resumed(struck(WELL, 79, NOW), Reading())

    after = after_test(waiting, "3 words of memory did not keep the pattern", NOW)

    assert (after.state, after.reason) == (
        DeviceState.BROKEN,
        "the smoke test failed: 3 words of memory did not keep the pattern",
    )


def test_a_test_of_a_device_that_broke_meanwhile_says_nothing() -> None:
    broken = struck(resumed(struck(WELL, 79, NOW), None), 48, NOW)

    assert after_test(broken, None, NOW) == broken


def test_an_accepted_finding_does_not_break_a_device_again() -> None:
    asks_reset = Reading(uncorrected=3, advice=1)
    waiting = resumed(judged(WELL, asks_reset, NOW), asks_reset)

    assert judged(waiting, asks_reset, NOW).state is DeviceState.PROBATION
    assert struck(waiting, 79, NOW).state is DeviceState.BROKEN


def test_a_suspect_device_is_well_when_somebody_says_so() -> None:
    pending = Reading(remap_pending=True)
    back = resumed(judged(WELL, pending, NOW), pending)

    assert back.state is DeviceState.WELL
    assert judged(back, pending, NOW).state is DeviceState.WELL
    assert judged(back, Reading(remap_failed=True), NOW).state is DeviceState.RETIRED


def broken_again(health: Health, now: Instant) -> Health:
    return struck(after_test(resumed(health, None), None, now), 79, now)


def test_a_device_that_breaks_too_often_is_retired() -> None:
    health = struck(WELL, 79, NOW)
    for _ in range(RETIRES_AFTER - 1):
        assert health.state is DeviceState.BROKEN
        health = broken_again(health, NOW)

    assert (health.state, "broke 3 times in 30 days" in health.reason) == (
        DeviceState.RETIRED,
        True,
    )


def test_breaks_of_long_ago_are_forgotten() -> None:
    twice = broken_again(struck(WELL, 79, NOW), NOW)

    assert broken_again(twice, later(REMEMBERED)).state is DeviceState.BROKEN


def test_who_brings_a_retired_device_back_starts_afresh_with_it() -> None:
    retired = judged(WELL, Reading(remap_failed=True), NOW)

    back = resumed(retired, Reading(remap_failed=True))

    assert (back.state, back.broke_at) == (DeviceState.PROBATION, ())
    assert judged(back, Reading(remap_failed=True), NOW).state is DeviceState.PROBATION


@pytest.mark.parametrize(
    ("before", "state"),
    [
        (WELL, DeviceState.WELL),
        (struck(WELL, 63, NOW), DeviceState.WELL),
        (struck(WELL, 79, NOW), DeviceState.PROBATION),
        (resumed(struck(WELL, 79, NOW), None), DeviceState.PROBATION),
        (judged(WELL, Reading(remap_failed=True), NOW), DeviceState.RETIRED),
    ],
)
def test_after_a_restart_what_was_broken_is_tested_and_what_is_retired_stays_so(
    before: Health, state: DeviceState
) -> None:
    after = remembered(before)

    assert (after.state, after.broke_at) == (state, before.broke_at)
