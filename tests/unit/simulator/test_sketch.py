"""A sketch: everybody who waits for room has a date, however little time there is."""

from itertools import count

from hypothesis import given
from hypothesis import strategies as st

from controller.desk import Desk
from muster.controller.dates.protocol import JobDate
from muster.model.job import Job, JobState
from muster.model.placement import Allocation
from muster.model.value import SECOND, Duration, JobId
from muster.simulator.forecast import Forecaster
from muster.simulator.sketch import sketched

GPUS = 4


def crowded(jobs: int, nodes: int = 1) -> tuple[Desk, list[JobId]]:
    desk = Desk(nodes=nodes)
    made = [desk.submits(gpus=GPUS, lasts=600, limit_s=600) for _ in range(jobs)]
    desk.lets_pass(1)
    return desk, [job for job in made if desk.state(job) is JobState.PENDING]


def lasts_a_minute(_: Job, allocation: Allocation | None) -> Duration:
    return Duration((60 if allocation is None else 30) * SECOND)


def test_one_behind_the_other_where_each_fills_the_pool() -> None:
    desk, waiting = crowded(4)
    snapshot = desk.record.snapshot(desk.simulation.now)
    (running,) = snapshot.allocations.values()

    found = dict(sketched(snapshot, waiting, lasts_a_minute))

    begun = running.started_at
    assert begun is not None
    after = [(each.at - begun) // SECOND for each in found.values()]
    assert after == [30, 90, 150]


@given(st.lists(st.tuples(st.integers(1, GPUS), st.integers(1, 100)), min_size=1, max_size=20))
def test_no_more_is_given_out_than_there_is(jobs: list[tuple[int, int]]) -> None:
    desk = Desk()
    desk.submits(gpus=GPUS, lasts=600, limit_s=600)
    desk.lets_pass(1)
    sizes = {desk.submits(gpus=gpus): (gpus, lasts) for gpus, lasts in jobs}
    snapshot = desk.record.snapshot(desk.simulation.now)

    def lasts(job: Job, _: Allocation | None) -> Duration:
        return Duration(sizes.get(job.id, (0, 50))[1] * SECOND)

    found = dict(sketched(snapshot, sizes, lasts))

    assert set(found) == set(sizes)
    for start in found.values():
        beside = [
            sizes[job][0]
            for job, each in found.items()
            if each.at <= start.at < each.at + sizes[job][1] * SECOND
        ]
        assert sum(beside) <= GPUS


def test_where_there_is_no_time_to_play_all_have_a_date_all_the_same() -> None:
    desk, waiting = crowded(700, nodes=8)
    ticks = count()
    made = Forecaster(lambda: float(next(ticks)))

    frames = list(made.dates(desk.record.snapshot(desk.simulation.now), desk.record.site))

    last: dict[JobId, JobDate] = {each.job: each for each in frames[-1]}
    assert [each.job for each in frames[0]] == waiting[: len(frames[0])]
    assert {each.job for frame in frames[:2] for each in frame} == set(waiting)
    assert set(last) == set(waiting)
    assert last[waiting[0]].date.middle < last[waiting[-1]].date.middle
