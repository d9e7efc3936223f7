"""Minutes are gathered into blocks of an hour, each kept every few minutes and at its end."""

from muster.model.finding import Cause
from muster.model.holding import Holding
from muster.model.minutes import MinuteBlock
from muster.model.value import (
    HOUR,
    MINUTE,
    ClassName,
    ClusterName,
    DeviceId,
    Duration,
    Instant,
    JobId,
    NodeId,
    PoolName,
    QueuePath,
    UserName,
)
from muster.telemetry.diagnosis.blocks import MOST_BLOCKS, Blocks
from muster.telemetry.diagnosis.gathering import HeldPart, Minute, part_of
from muster.telemetry.diagnosis.judging import Judged, Member
from muster.telemetry.diagnosis.signals import Signals

SEEN = Signals(busy=304, temperature=71_400, host_memory=995)


def held(blocks: Blocks, minute: int, cause: Cause = Cause.IDLE, *, job: int = 17) -> None:
    holding = Holding(
        job=JobId(job),
        attempt=1,
        user=UserName("ada"),
        queue=QueuePath("a"),
        job_class=ClassName("normal"),
        cluster=ClusterName("c"),
        pool=PoolName("p"),
        node=NodeId("n1"),
        device=DeviceId("g0"),
        gpu_milli=1_000,
        since=Instant(0),
    )
    member = Member(part=part_of(holding), signals=SEEN, held=Duration(MINUTE))
    at = Instant(minute * MINUTE)
    blocks.add(
        Minute(at=at, parts=(HeldPart(holding=holding, member=member),)),
        (Judged(member=member, cause=cause, slack_milli=0),),
    )


def told(found: tuple[MinuteBlock, ...]) -> list[tuple[int, int]]:
    """By hour: how many minutes are known."""
    return [(each.hour // HOUR, len(list(each.held_minutes()))) for each in found]


def test_a_minute_comes_back_with_its_cause_and_what_was_measured() -> None:
    blocks = Blocks()
    held(blocks, 61, Cause.HEAT)

    (block,) = blocks.of(JobId(17), 1)

    assert list(block.held_minutes()) == [
        (61 * MINUTE, Cause.HEAT, {"busy": 30, "host_memory": 100, "temperature": 71})
    ]


def test_what_changed_is_kept_every_five_minutes_and_once() -> None:
    blocks = Blocks()
    held(blocks, 5)
    held(blocks, 6)

    assert told(blocks.settled(Instant(7 * MINUTE), ())) == [(0, 2)]
    held(blocks, 7)
    assert told(blocks.settled(Instant(8 * MINUTE), ())) == []
    assert told(blocks.settled(Instant(12 * MINUTE), ())) == [(0, 3)]
    assert told(blocks.settled(Instant(17 * MINUTE), ())) == []


def test_hours_and_attempts_that_are_over_are_kept_at_once_and_let_go() -> None:
    blocks = Blocks()
    held(blocks, 59)
    held(blocks, 60)
    blocks.settled(Instant(61 * MINUTE), ())
    held(blocks, 61, job=18)

    assert told(blocks.settled(Instant(62 * MINUTE), {(JobId(18), 1)})) == [(1, 1)]
    assert blocks.of(JobId(18), 1) == ()
    assert told(blocks.of(JobId(17), 1)) == [(1, 1)]


def test_of_more_parts_than_can_be_followed_minutes_are_not_kept() -> None:
    blocks = Blocks()
    for job in range(MOST_BLOCKS + 10):
        held(blocks, 5, job=job)

    assert len(blocks.settled(Instant(6 * MINUTE), ())) == MOST_BLOCKS
