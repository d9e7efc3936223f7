"""All that doors may ask, in one place."""

from collections.abc import Mapping

from muster.backends.base import Backend
from muster.controller.alerting.queries import AlertQueries
from muster.controller.loop.controller import Controller
from muster.controller.queries.advising import Advising
from muster.controller.queries.attempts import AttemptQueries
from muster.controller.queries.diagnosis import DiagnosisQueries
from muster.controller.queries.history import HistoryQueries
from muster.controller.queries.jobs import JobQueries
from muster.controller.queries.nodes import NodeQueries
from muster.controller.queries.objects import ObjectQueries
from muster.controller.queries.people import PeopleQueries
from muster.controller.queries.plan import PlanQueries
from muster.controller.queries.queues import QueueQueries
from muster.controller.queries.status import StatusQueries
from muster.controller.queries.telemetry import TelemetryQueries
from muster.controller.queries.waits import CurrentWaits
from muster.controller.watching.watching import Watching
from muster.controller.world.journal import Clock, Journal
from muster.model.site import Site
from muster.model.value import ClusterName


class Queries:
    """One object for each subject."""

    def __init__(
        self,
        journal: Journal,
        controller: Controller,
        backends: Mapping[ClusterName, Backend],
        clock: Clock,
        watching: Watching,
    ) -> None:
        self._record = journal.record
        waits = CurrentWaits(journal, controller.last_plan)
        self.jobs = JobQueries(journal, waits)
        self.history = HistoryQueries(journal, self.jobs)
        self.attempts = AttemptQueries(self.jobs, backends)
        self.nodes = NodeQueries(journal.record, clock)
        self.queues = QueueQueries(journal.record, clock)
        self.people = PeopleQueries(journal.record, clock)
        self.objects = ObjectQueries(journal)
        self.plan = PlanQueries(journal, controller, clock, jobs=self.jobs, waits=waits)
        self.alerts = AlertQueries(journal.record, watching.board, clock)
        self.status = StatusQueries(
            journal, controller, clock, lambda: (*self.alerts.problems(), *watching.problems())
        )
        self.diagnosis = DiagnosisQueries(
            journal.record, self.jobs, watching, self.history, self.attempts
        )
        self.advising = Advising(
            journal.record, self.diagnosis, self.plan, controller.last_plan, clock
        )
        self.telemetry = TelemetryQueries(journal.record, self.jobs, watching, clock)

    def site(self) -> Site:
        """The administrators' rules."""
        return self._record.site
