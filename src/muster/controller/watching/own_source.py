"""Metrics of Muster itself: whether it leads, how it plans and writes, whom it reaches."""

from collections.abc import Callable, Iterator

from muster.controller.loop.controller import Controller
from muster.controller.watching.watcher import Watcher
from muster.controller.world.journal import Journal
from muster.controller.world.record import Record
from muster.model.value import Instant, Value
from muster.telemetry import names
from muster.telemetry.family import Family, Labels, Point

Room = Callable[[], tuple[int, int] | None]
"""The size of the database in bytes, and the room left where it is; None where nobody knows."""


class ProcessFacts(Value):
    """What only who started this process knows. waiting: how many changes wait to be written."""

    version: str = ""
    waiting: Callable[[], int] = lambda: 0
    room: Room = lambda: None


def always_source(controller: Controller, version: str) -> Callable[[Instant], Iterator[Family]]:
    """What every process says, whether it leads or not."""

    def told(_: Instant) -> Iterator[Family]:
        yield names.BUILD.family([Point((("version", version),), 1)])
        yield names.LEADS.family([Point((), int(controller.is_leading))])

    return told


class OwnSource:
    """What the leader says of itself."""

    def __init__(
        self, controller: Controller, journal: Journal, watcher: Watcher, facts: ProcessFacts
    ) -> None:
        self._controller = controller
        self._journal = journal
        self._watcher = watcher
        self._facts = facts

    def __call__(self, _: Instant) -> Iterator[Family]:
        plans, writes = self._controller.plan_times, self._journal.times
        yield names.PLAN_SECONDS.family(plans.points())
        yield names.PLANS.family(
            Point((("outcome", outcome),), count) for outcome, count in plans.outcomes().items()
        )
        yield names.APPEND_SECONDS.family(writes.points())
        yield names.STORE_ERRORS.family([Point((), writes.errors)])
        yield names.JOURNAL_WAITING.family([Point((), self._facts.waiting())])
        room = self._facts.room()
        if room is not None:
            yield names.STORE_BYTES.family([Point((), room[0])])
            yield names.STORE_FREE.family([Point((), room[1])])
        yield from _of_clusters(self._journal.record, self._watcher)


def _of_clusters(record: Record, watcher: Watcher) -> Iterator[Family]:
    with record.lock:
        clusters = tuple(record.clusters.values())
    yield names.BACKEND_UP.family(
        Point(_cluster(each.name), int(each.reachable)) for each in clusters
    )
    look = watcher.last
    if look is None:
        return
    yield names.BACKEND_SEEN.family(
        Point(_cluster(name), at / 1_000) for name, at in sorted(watcher.seen.items())
    )
    yield names.SAMPLED.family([Point((), look.at / 1_000)])
    yield names.SAMPLE_SECONDS.family([Point((), watcher.took_s)])


def _cluster(name: str) -> Labels:
    return (("cluster", name),)
