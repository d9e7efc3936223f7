"""A small installation that is looked at every fifteen seconds, in pretend time."""

from controller.desk import LAB, MAIN, Desk
from muster.controller.loop.controller import Controller, LastPlan
from muster.controller.queries.advising import Advising
from muster.controller.queries.attempts import AttemptQueries
from muster.controller.queries.diagnosis import DiagnosisQueries
from muster.controller.queries.history import HistoryQueries
from muster.controller.queries.jobs import JobQueries
from muster.controller.queries.plan import PlanQueries
from muster.controller.queries.waits import CurrentWaits
from muster.controller.watching.diagnosing import Diagnosing
from muster.controller.watching.holdings import holdings_of
from muster.controller.watching.tenancies import Tenancies
from muster.model.cluster import Pool
from muster.model.efficiency import FleetUse
from muster.model.samples import Activity, DeviceSample, JobSample, ProcessSample, Samples
from muster.model.value import SECOND, Duration, Instant, NodeId
from muster.stores.measured.base import MeasuredStore, Settled
from muster.stores.measured.memory import MemoryMeasured
from muster.stores.memory import MemoryStore
from muster.telemetry.look import Look

PRICE = 3_600_000
"""A thousand micro-units a second."""


class Observed:
    """A desk that is looked at every fifteen seconds."""

    def __init__(self, gpus: int = 4) -> None:
        self.desk = Desk(nodes=1, gpus=gpus)
        self.desk.changes_site(pools={MAIN: Pool(name=MAIN, cluster=LAB, gpu_hour_micros=PRICE)})
        self.kept: list[Settled] = []
        tenancies = Tenancies()
        journal = self.desk.simulation.journal
        journal.subscribers.add(tenancies.note)
        self._last_plan = plan = LastPlan()
        self.diagnosing = Diagnosing(self.desk.record, plan, tenancies, self.kept.append)
        self.past: MeasuredStore | None = MemoryMeasured()
        waits = CurrentWaits(journal, plan)
        jobs = JobQueries(journal, waits)
        self.queries = DiagnosisQueries(
            self.desk.record, jobs, self, HistoryQueries(journal, jobs), AttemptQueries(jobs, {})
        )
        controller = Controller(self.desk.simulation.parts, journal, self._clock, MemoryStore())
        plans = PlanQueries(journal, controller, self._clock, jobs=jobs, waits=waits)
        self.advising = Advising(self.desk.record, self.queries, plans, plan, self._clock)

    def passes(self, minutes: int, busy: int, cpu: int = 300, thread: int = 300) -> None:
        """What every GPU and every job does meanwhile."""
        for _ in range(4 * minutes):
            self.passes_once(busy, cpu, thread)

    def passes_once(self, busy: int, cpu: int = 300, thread: int = 300) -> None:
        """Fifteen seconds, and one look."""
        self.desk.lets_pass(15)
        if (plan := self.desk.simulation.plan) is not None:
            self._last_plan.settle(plan, self.desk.simulation.now, 0)
        self.diagnosing.look(self._look(busy, cpu, thread))

    def uses(self) -> tuple[FleetUse, ...]:
        return tuple(use for each in self.kept for use in each.uses)

    def _clock(self) -> Instant:
        return self.desk.simulation.now

    def _look(self, busy: int, cpu: int, thread: int) -> Look:
        now, record = self.desk.simulation.now, self.desk.record
        holdings = holdings_of(record.allocations.values(), record.jobs)
        devices = tuple(
            DeviceSample(
                device=each.device,
                node=each.node,
                at=now,
                index=0,
                busy_milli=busy,
                memory_used_bytes=2**30,
                memory_free_bytes=2**30,
                memory_reserved_bytes=0,
                power_mw=100_000 + 500 * busy,
                power_limit_mw=700_000,
                activity=Activity(
                    sm_milli=busy * 8 // 10, tensor_milli=busy // 3, dram_milli=busy // 3
                ),
                processes=(ProcessSample(pid=1, job=each.job, attempt=each.attempt),),
            )
            for each in holdings
        )
        jobs = tuple(
            JobSample(
                job=job,
                attempt=1,
                node=NodeId("n1"),
                at=now,
                cpu_granted_milli=1_000,
                cpu_used_milli=cpu,
                cpu_ns_total=10**9,
                busiest_thread_milli=thread,
                memory_peak_bytes=2**30,
                blocked_milli=0,
            )
            for job in {each.job for each in holdings}
        )
        samples = {LAB: Samples(at=now, devices=devices, jobs=jobs)}
        return Look(at=now, interval=Duration(15 * SECOND), samples=samples, holdings=holdings)
