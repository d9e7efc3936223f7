"""Reasons for what does not pass are of what was seen, and go when it is seen no more."""

import pytest

from conformance import results
from conformance.reasons import REASONS, Reason
from conformance.suite import FAILED, UNFINISHED, Result

KEPT = tuple(results.read().values())


@pytest.mark.parametrize("reason", REASONS, ids=lambda each: each.words[:40])
def test_every_reason_is_that_of_some_test(reason: Reason) -> None:
    assert any(results.reason_for(each) is reason for each in KEPT)


def test_what_was_not_run_to_its_end_has_no_reason() -> None:
    seen = next(each for each in KEPT if results.reason_for(each) is not None)

    assert results.reason_for(Result(test=seen.test, result=UNFINISHED, said=seen.said)) is None


def test_a_failure_that_says_something_new_has_no_reason() -> None:
    seen = next(each for each in KEPT if results.reason_for(each) is not None)

    assert results.reason_for(Result(test=seen.test, result=FAILED, said="Something else")) is None


def test_the_page_is_that_of_the_results() -> None:
    written = results.PAGE.read_text(encoding="utf-8").splitlines()

    assert list(results.page(KEPT)) == written
