"""How many dates held: in all, and in each queue and class."""

from muster.controller.messages import DatesHeldIn
from muster.controller.queries.status import MOST_GROUPS, dates_held
from muster.model.dates import Foreseen, KeptDate
from muster.model.value import ClassName, Duration, Instant, JobId, QueuePath

NORMAL, HIGH = ClassName("normal"), ClassName("high")


def kept(queue: str, job_class: ClassName, *, held: bool) -> KeptDate:
    foreseen = Foreseen(
        queue=QueuePath(queue),
        job_class=job_class,
        wait=Duration(10),
        spread_milli=0,
        waiting=1,
        gpu_milli=1_000,
    )
    return KeptDate(
        job=JobId(1),
        told_at=Instant(0),
        early=Instant(5),
        middle=Instant(10),
        late=Instant(20),
        foreseen=foreseen,
        started_at=Instant(15 if held else 30),
    )


def test_dates_are_counted_by_queue_and_class_those_with_the_most_first() -> None:
    found = dates_held(
        [
            kept("vision", NORMAL, held=True),
            kept("nlp", HIGH, held=False),
            kept("nlp", NORMAL, held=True),
            kept("nlp", NORMAL, held=False),
        ]
    )

    assert (found.held, found.told) == (2, 4)
    assert found.groups == (
        DatesHeldIn(queue=QueuePath("nlp"), job_class=NORMAL, held=1, told=2),
        DatesHeldIn(queue=QueuePath("nlp"), job_class=HIGH, held=0, told=1),
        DatesHeldIn(queue=QueuePath("vision"), job_class=NORMAL, held=1, told=1),
    )


def test_of_very_many_queues_only_the_busiest_are_named() -> None:
    queues = [f"q{number}" for number in range(MOST_GROUPS + 5)]

    found = dates_held([kept(queue, NORMAL, held=True) for queue in [*queues, queues[-1]]])

    assert len(found.groups) == MOST_GROUPS
    assert found.groups[0].queue == queues[-1]
    assert found.told == MOST_GROUPS + 6
