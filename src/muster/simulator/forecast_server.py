"""Answers for dates: keeps a copy of the world, learns what happens in it, and forecasts."""

from collections.abc import Iterator

from muster.controller.dates.client import (
    NOTHING_YET,
    Correspondence,
    Past,
    RuledSnapshot,
    SupposedDates,
    supposed_dates,
)
from muster.controller.dates.protocol import (
    DATES_AT_ONCE,
    DatesReply,
    ForecastRequest,
    JobDate,
    Lessons,
    Supposed,
)
from muster.controller.planner.copy_of_world import CopyOfWorld
from muster.controller.planner.protocol import snapshot_delta
from muster.model.site import Site
from muster.model.snapshot import Snapshot
from muster.model.value import JobId
from muster.simulator.forecast import Forecaster, Stopwatch


class ForecastServer:
    """The world as the controller described it, and the forecaster that looks ahead from it."""

    def __init__(self, stopwatch: Stopwatch) -> None:
        self._forecaster = Forecaster(stopwatch)
        self._world = CopyOfWorld()
        self._site = Site()

    def answer(self, request: ForecastRequest) -> Iterator[DatesReply]:
        """The frames of an answer: early news first, then every date there is."""
        self._site = request.site or self._site
        snapshot = self._world.apply(request.delta)
        self._forecaster.learn(request.lessons)
        for new in request.delta.new_jobs:
            self._forecaster.note(snapshot.jobs[new.moved.id])
        if request.supposed is not None:
            yield self._supposed(snapshot, request.supposed)
            return
        for told in self._forecaster.dates(snapshot, self._site):
            for at in range(0, len(told), DATES_AT_ONCE):
                yield DatesReply(told=tuple(told[at : at + DATES_AT_ONCE]), is_last=False)
        yield DatesReply(told=(), is_last=True)

    def _supposed(self, usual: Snapshot, supposed: Supposed) -> DatesReply:
        """What would be in a world that is forgotten afterwards."""
        world = CopyOfWorld()
        world.apply(snapshot_delta(NOTHING_YET, usual))
        changed = world.apply(supposed.delta)
        if supposed.job is None:
            moved = self._forecaster.moved((usual, self._site), (changed, supposed.site))
            return DatesReply(told=(), is_last=True, moved=tuple(moved))
        told = self._forecaster.date(changed, supposed.site, supposed.job)
        return DatesReply(told=() if told is None else (told,), is_last=True)


class InlineForecasts:
    """Forecasts in this thread, with no wire between: the answers are those of a process."""

    def __init__(self, stopwatch: Stopwatch, past: Past = Lessons) -> None:
        self._server = ForecastServer(stopwatch)
        self._sent = Correspondence(past)

    def dates(self, snapshot: Snapshot, site: Site, news: Lessons) -> Iterator[tuple[JobDate, ...]]:
        """What the server answers, frame by frame."""
        for reply in self._server.answer(self._sent.request(snapshot, site, news)):
            if reply.told:
                yield reply.told

    def suppose(
        self, usual: RuledSnapshot, changed: RuledSnapshot, job: JobId | None
    ) -> SupposedDates:
        """What the server says of the changed world."""
        return supposed_dates(self._server.answer(self._sent.supposing(usual, changed, job)))

    def start(self) -> None:
        """There is nothing to start."""

    def close(self) -> None:
        """Nothing is held."""
