"""How the installation is, and what it did."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator

from muster.controller.loop.controller import Controller
from muster.controller.loop.counters import Counts
from muster.controller.messages import Caller, DatesHeld, DatesHeldIn, Health
from muster.controller.rights import demand
from muster.controller.world.journal import Clock, Journal
from muster.model.dates import KeptDate
from muster.model.site import Role
from muster.model.value import DAY, ClassName, Duration, Instant, QueuePath

NAMED = 5
"""So many failed GPUs are named; a list of all does not help at a glance."""


MOST_COUNTED = 20_000
COUNT_EVERY = Duration(10_000)
"""So many of the latest dates are judged, and so often."""

MOST_GROUPS = 50
"""Of so many queues and classes it is said how many dates held there: those with the most dates."""


class StatusQueries:
    """The controller itself."""

    def __init__(
        self,
        journal: Journal,
        controller: Controller,
        clock: Clock,
        problems: Callable[[], tuple[str, ...]],
    ) -> None:
        self._journal = journal
        self._controller = controller
        self._clock = clock
        self._problems = problems
        # Of which version of the nodes it was found, and what.
        self._failed: tuple[int, list[str]] = (0, [])
        # When it was counted, and what.
        self._counted: tuple[Instant, DatesHeld] = (Instant(0), DatesHeld())

    def health(self) -> Health:
        """Does it lead, where does it keep things, and how is its planning?"""
        last_plan = self._controller.last_plan
        return Health(
            leading=self._controller.is_leading,
            store=type(self._journal.store).__name__.removesuffix("Store"),
            last_event=self._journal.last_event,
            plan_ms=last_plan.plan_ms,
            planned_at=last_plan.planned_at,
            dates=self._dates_held(),
            problems=(
                *filter(None, (last_plan.problem,)),
                *self._failed_gpus(),
                *self._orphans(),
                *self._problems(),
            ),
        )

    def _dates_held(self) -> DatesHeld:
        """How many of last week's dates held; counted again after a while."""
        now = self._clock()
        if now - self._counted[0] >= COUNT_EVERY:
            since = Instant(max(0, now - 7 * DAY))
            dates = self._journal.store.dates(since=since, limit=MOST_COUNTED)
            self._counted = (now, dates_held(dates))
        return self._counted[1]

    def _orphans(self) -> Iterator[str]:
        """What carries our mark on a cluster, and nobody here knows."""
        for cluster in self._journal.record.clusters.values():
            if cluster.orphans:
                named = ", ".join(cluster.orphans[:NAMED])
                more = ", ..." if len(cluster.orphans) > NAMED else ""
                yield (
                    f"cluster {cluster.name} runs {named}{more} with Muster's mark and no job of "
                    "Muster's behind it; it is left alone: look whose it is, and end it there"
                )

    def _failed_gpus(self) -> Iterator[str]:
        """GPUs that take no work because something is wrong with them."""
        record = self._journal.record
        if self._failed[0] != record.nodes_version:
            found = [
                f"GPU {device.index} of node {node.id} has failed: {device.reason or 'no reason'}"
                for node in record.nodes.values()
                for device in node.devices
                if not device.healthy
            ]
            self._failed = (record.nodes_version, found)
        failed = self._failed[1]
        yield from failed[:NAMED]
        if len(failed) > NAMED:
            yield f"{len(failed) - NAMED} more GPUs have failed; see: muster nodes --devices"

    def counts(self) -> Counts:
        """What happened since the start, or since the counts were reset."""
        return self._controller.counters.counts

    def reset_counts(self, caller: Caller) -> None:
        """Count from now on. Counts are no facts: nothing is written."""
        demand(caller, self._journal.record.site, Role.ADMIN, to="reset the counts")
        self._controller.counters.reset(self._clock())

    def mail_program(self) -> str | None:
        """What sends mail: None if nothing does, empty if another process knows."""
        return self._controller.parts.mail_program


def dates_held(dates: Iterable[KeptDate]) -> DatesHeld:
    """How many of these held, in all and by queue and class."""
    told, held = Counter[tuple[QueuePath, ClassName]](), Counter[tuple[QueuePath, ClassName]]()
    for each in dates:
        group = each.foreseen.queue, each.foreseen.job_class
        told[group] += 1
        held[group] += each.held
    most_first = sorted(told, key=lambda group: (-told[group], group))
    return DatesHeld(
        held=held.total(),
        told=told.total(),
        groups=tuple(
            DatesHeldIn(queue=queue, job_class=job_class, held=held[group], told=told[group])
            for group in most_first[:MOST_GROUPS]
            for queue, job_class in [group]
        ),
    )
