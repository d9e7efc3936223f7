"""Everything that looks at what runs, put together: what a leader does beside its work."""

from collections.abc import Callable, Mapping

from muster.backends.base import Backend
from muster.controller.alerting.board import AlertBoard
from muster.controller.loop.controller import Controller
from muster.controller.watching.device_source import DeviceSource
from muster.controller.watching.diagnosing import Diagnosing
from muster.controller.watching.diagnosis_source import DiagnosisSource
from muster.controller.watching.keeping import Keeping
from muster.controller.watching.left_out import LeftOut
from muster.controller.watching.live_series import LiveSeries
from muster.controller.watching.metrics import Metrics
from muster.controller.watching.other_sources import OtherSources
from muster.controller.watching.own_source import OwnSource, ProcessFacts, always_source
from muster.controller.watching.pool_source import PoolSource
from muster.controller.watching.queue_names import QueueNames
from muster.controller.watching.queue_source import QueueSource
from muster.controller.watching.tally import Tally
from muster.controller.watching.tenancies import Tenancies
from muster.controller.watching.watcher import Watcher
from muster.controller.watching.xids import Xids
from muster.controller.world.journal import Clock, Journal
from muster.controller.world.transaction import Transaction
from muster.model.value import ClusterName, Instant
from muster.stores.measured.base import MeasuredStore
from muster.telemetry.look import Look


class Watching:
    """A companion of the controller.

    watcher: subscribe to it to hear of every look. metrics: add a source to export more.
    live: what was measured of jobs in the last hour. names: by which queues appear in metrics.
    board: how alerts stand, written by whoever judges them.
    diagnosing: why jobs are slow, and what became of GPUs. past: what is kept of that.
    of_problems: whoever knows what does not work says so here.
    """

    def __init__(
        self,
        journal: Journal,
        controller: Controller,
        backends: Mapping[ClusterName, Backend],
        clock: Clock,
        facts: ProcessFacts = ProcessFacts(),  # noqa: B008 -- a frozen value
    ) -> None:
        record = journal.record
        self.watcher = Watcher(record, backends, clock, OtherSources(record, clock))
        self.metrics = Metrics(lambda: controller.is_leading)
        self.names = QueueNames()
        self.tally = Tally(record)
        self.live = LiveSeries()
        self.left_out = LeftOut()
        self.past: MeasuredStore | None = None
        self.of_problems: list[Callable[[], tuple[str, ...]]] = [self.watcher.problems]
        self._keeping: Keeping | None = None
        self._clock = clock
        self.board = AlertBoard()
        tenancies, xids = Tenancies(), Xids()
        self.diagnosing = Diagnosing(record, controller.last_plan, tenancies)
        journal.subscribers.add(self.tally.note)
        journal.subscribers.add(tenancies.note)
        journal.subscribers.add(xids.note)
        self.watcher.subscribers.extend([self.live.look, self.diagnosing.look])
        self.metrics.of_every_process.append(always_source(controller, facts.version))
        self.metrics.sources.extend(
            [
                DeviceSource(self.watcher, record, self.left_out, xids),
                QueueSource(record, self.tally, controller.last_plan, self.names),
                PoolSource(record, self.tally, controller.last_plan),
                DiagnosisSource(self.diagnosing, self.names, self.left_out),
                OwnSource(controller, journal, self.watcher, facts),
                self.left_out,
            ]
        )

    def keep_in(self, store: MeasuredStore) -> None:
        """Keep there what was judged, and find there what was."""
        self.past = store
        self._keeping = Keeping(store, self.left_out, self._clock)
        self.diagnosing.keep = self._keeping.put

    def problems(self) -> tuple[str, ...]:
        """What does not work, for the administrator."""
        return tuple(text for told in self.of_problems for text in told())

    def fresh_look(self, now: Instant) -> Look | None:
        """The last look, as long as it is not too old to be shown."""
        return self.watcher.fresh(now)

    def begin(self, transaction: Transaction) -> None:
        """This process leads from now on."""
        self.tally.begin()
        self.diagnosing.begin()
        self.watcher.begin(transaction)

    def rest(self) -> None:
        """Another process leads."""
        self.watcher.rest()

    def close(self) -> None:
        """Stop looking."""
        self.watcher.close()
        if self._keeping is not None:
            self._keeping.close()
