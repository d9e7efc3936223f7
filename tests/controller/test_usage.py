"""Who used how much: rates while they hold something, rows when that changes, decay in between."""

import pytest

from controller.desk import Desk
from muster.controller.use_cases.job_actions import JobAction
from muster.controller.world.record import Record
from muster.controller.world.usage import LEAST_MILLI_MS, UsageLedger
from muster.model.policy import SharePolicy
from muster.model.snapshot import UsedLately
from muster.model.value import HOUR, Duration, Instant, QueuePath, UserName, replace

ADA = (QueuePath("default"), UserName("ada"))
FOREVER = SharePolicy(half_life=Duration(10**15))


def used(desk: Desk) -> dict[tuple[str, str], int]:
    """What counts now, for each queue and user."""
    rows = desk.record.snapshot(desk.simulation.now).used_lately
    return {(row.queue, row.user): row.gpu_milli_ms for row in rows}


def slow_decay(desk: Desk) -> None:
    policy = desk.record.site.policy
    desk.changes_site(policy=replace(policy, share=FOREVER))


def test_nobody_used_anything_in_the_beginning() -> None:
    assert used(Desk()) == {}


@pytest.mark.parametrize("gpus", [1, 2, 4])
def test_who_holds_gpus_uses_them_all_the_time(gpus: int) -> None:
    desk = Desk(gpus=4)
    slow_decay(desk)
    desk.submits(gpus=gpus, lasts=600)

    desk.lets_pass(100)

    assert used(desk) == {ADA: gpus * 1_000 * 100_000}


def test_use_stops_counting_up_when_the_job_ends() -> None:
    desk = Desk(gpus=4)
    slow_decay(desk)
    desk.submits(gpus=2, lasts=60)

    desk.lets_pass(1_000)

    assert used(desk) == {ADA: 2 * 1_000 * 60_000}


def test_what_counts_halves_with_each_half_life() -> None:
    desk = Desk(gpus=4)
    desk.submits(gpus=4, lasts=60)
    desk.lets_pass(60)
    half_life = desk.record.site.policy.share.half_life
    before = used(desk)[ADA]
    row = desk.record.usage.rows[ADA]

    later = UsageLedger([row]).settled(
        ADA, Instant(row.as_of + 2 * half_life), desk.record.site.policy.share
    )

    assert later.gpu_milli_ms == pytest.approx(before / 4, rel=0.01)


def test_each_queue_of_a_user_is_counted_by_itself() -> None:
    desk = Desk(gpus=4)
    slow_decay(desk)
    desk.submits(gpus=1, lasts=600)
    desk.submits(gpus=2, lasts=600, queue="a/b")

    desk.lets_pass(10)

    assert used(desk) == {ADA: 10_000_000, ("a/b", "ada"): 20_000_000}


def test_a_suspended_job_uses_nothing() -> None:
    desk = Desk(gpus=4)
    slow_decay(desk)
    job = desk.submits(gpus=4, lasts=600)
    desk.lets_pass(10)

    desk.asks("ada", JobAction.SUSPEND, job)
    desk.lets_pass(100)

    assert used(desk) == {ADA: 4 * 1_000 * 10_000}


def test_a_job_without_gpus_counts_by_its_largest_part_of_the_cluster() -> None:
    desk = Desk(gpus=4)
    slow_decay(desk)
    # One of 64 CPUs is worth as much as one sixteenth of a GPU here.
    desk.submits(gpus=0, lasts=600)

    desk.lets_pass(16)

    assert used(desk) == {ADA: 62 * 16_000}


def test_a_restart_gives_the_same_rows_at_every_later_moment() -> None:
    desk = Desk(nodes=2, gpus=4)
    for number in range(12):
        desk.submits(("ada", "grace")[number % 2], gpus=number % 4 + 1, lasts=30 + 7 * number)
        desk.lets_pass(5)
    loaded = Record(desk.simulation.parts.store.load(), {}, desk.record.site)

    for later_s in (0, 1, 60, 3_600):
        at = Instant(desk.simulation.now + later_s * 1_000)
        share = desk.record.site.policy.share
        assert loaded.usage.lately(at, share) == desk.record.usage.lately(at, share)


def test_what_hardly_counts_any_more_is_left_out() -> None:
    row = UsedLately(queue=ADA[0], user=ADA[1], gpu_milli_ms=LEAST_MILLI_MS - 1, as_of=Instant(0))
    enough = replace(row, user=UserName("grace"), gpu_milli_ms=LEAST_MILLI_MS)

    using = UsageLedger([row, enough])

    assert using.lately(Instant(0), FOREVER) == (enough,)


def test_time_that_runs_backwards_takes_nothing_away() -> None:
    row = UsedLately(queue=ADA[0], user=ADA[1], gpu_milli_ms=HOUR, as_of=Instant(10_000))

    settled = UsageLedger([row]).settled(ADA, Instant(4_000), FOREVER)

    assert settled.gpu_milli_ms == HOUR
