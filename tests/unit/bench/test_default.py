"""The default policy beside the anchors: what is replayed, and how it is judged."""

from pathlib import Path

import pytest

from bench._default_ours import Attempt, Replayed, Setting, ours, site_with
from bench._jct_queue import exact_limit, no_limit
from bench._jct_trace import Park, Row
from bench.default import Contest, score
from muster.doors.config.default import DEFAULT_SITE
from muster.doors.config.faults import BadSiteError

HOUR_S = 3_600


def park(*rows: tuple[int, int, int], nodes: int = 1) -> Park:
    """Jobs as (at, lasts, gpus), in seconds."""
    made = (Row(number, *row, park="p") for number, row in enumerate(rows))
    return Park("p", nodes, tuple(made))


def test_the_rules_are_those_of_a_new_installation() -> None:
    assert site_with(None) is DEFAULT_SITE


def test_another_policy_replaces_that_section_alone(tmp_path: Path) -> None:
    file = tmp_path / "cluster.yaml"
    file.write_text("policy:\n  order: {age: 7}\n", encoding="utf-8")

    site = site_with(file)

    assert site.policy.order.age == 7
    assert site.classes == DEFAULT_SITE.classes


def test_a_policy_that_cannot_be_read_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "cluster.yaml"
    file.write_text("policy:\n  odrer: {age: 7}\n", encoding="utf-8")

    with pytest.raises(BadSiteError, match="odrer"):
        site_with(file)


def test_a_job_that_needs_its_whole_limit_is_not_cut_off() -> None:
    jobs = park((0, HOUR_S, 8), (10, 60, 16), nodes=2)

    replayed = ours(jobs, Setting(exact_limit))

    assert replayed.ended == {0: HOUR_S, 1: HOUR_S + 60}
    assert replayed.attempts == (Attempt(0, HOUR_S, 8), Attempt(HOUR_S, HOUR_S + 60, 16))


def test_jobs_that_save_are_submitted_to_the_same_site() -> None:
    jobs = park((0, HOUR_S, 4), (10, 60, 4))

    assert ours(jobs, Setting(no_limit, saves=True)).ended == {0: HOUR_S, 1: 70}


def test_jobs_are_counted_in_the_half_in_which_they_were_submitted() -> None:
    jobs = park((0, 10, 1), (40, 10, 1), (60, 10, 1), (100, 30, 1))
    run = Replayed({0: 10, 1: 70, 2: 70, 3: 130}, ())

    found = score([Contest("t", jobs, "none", {"it": run})], "it")

    first, second = found.halves
    assert first is not None
    assert second is not None
    assert (first.jct_s, second.jct_s, found.whole.jct_s) == (20, 20, 20)
    assert (first.longest_wait_s, second.longest_wait_s) == (20, 0)


def test_utilisation_ends_with_the_last_submission() -> None:
    jobs = park((0, 50, 8), (100, 900, 8))
    run = Replayed({0: 50, 1: 1_000}, (Attempt(0, 50, 8), Attempt(100, 1_000, 8)))

    assert score([Contest("t", jobs, "none", {"it": run})], "it").utilisation == 0.5
