"""A Slurm cluster as a backend: one thread asks, orders and keeps time, and nobody waits for it."""

import logging
import queue
import threading
from collections import deque
from collections.abc import Callable, Iterable
from pathlib import Path

from muster.backends.base import Action, OutputQuery, Wake
from muster.backends.local.attempt.output import read_output
from muster.backends.slurm.images import Containers
from muster.backends.slurm.measuring import Measuring, Running
from muster.backends.slurm.nodes import Fleet
from muster.backends.slurm.orders import Orders
from muster.backends.slurm.pod_files import pod_output
from muster.backends.slurm.register import IDLE_LOOK_MS, Register
from muster.backends.slurm.submission import Manner
from muster.backends.slurm.watch import Watch
from muster.backends.slurm.wire import SlurmDownError, SlurmRefusedError, Wire
from muster.model.cluster import Abilities, BackendKind, Cluster
from muster.model.event import ClusterSeen, Event
from muster.model.placement import Allocation
from muster.model.running import Output
from muster.model.samples import Samples
from muster.model.value import ClusterName, GpuModel, Instant, NodeId, Value, replace

Clock = Callable[[], Instant]

log = logging.getLogger(__name__)

_NODES_MS = 10_000
_AT_ONCE = 20
"""So many submissions in a row; then it is looked at what became of the others."""


class SlurmLink(Value):
    """A cluster as the administrator named it.

    site: which Muster this is, in the marks on our jobs. suspends: the way to it can do that.
    """

    name: ClusterName
    site: str
    manner: Manner = Manner()
    only: tuple[str, ...] = ()
    models: dict[str, GpuModel] = {}  # noqa: RUF012 -- copied by the value
    order: int = 0
    suspends: bool = True


class SlurmBackend:
    """What is sent is queued for the thread; what it finds out is kept until it is observed."""

    def __init__(self, link: SlurmLink, wire: Wire, folder: Path, wake: Wake, clock: Clock) -> None:
        self._link, self._wake, self._clock = link, wake, clock
        self._fleet = Fleet(
            cluster=link.name, only=link.only, models=link.models, prefix=link.manner.prefix
        )
        self._abilities = Abilities(
            repartition=False,
            suspend=link.suspends,
            device_wall=False,
            images=link.manner.containers is not Containers.NONE,
            image_files=link.manner.containers is not Containers.NONE,
            # Which node a pod has is known only where we choose it: they find each other by that.
            pod_gangs=not link.manner.delegates and link.manner.containers is not Containers.PYXIS,
            containers=False,
            volumes=False,
            host_paths=False,
            tokens=False,
            probes=False,
            stop_signals=False,
            checkpoint_probes=False,
            entrypoints=False,
            pod_addresses=False,
            pod_users=False,
            pod_input=False,
            terminals=False,
            steps=False,
        )
        self._register = Register(link.name, link.site, folder)
        self._orders = Orders(self._register, wire, link.manner, clock)
        self._watch = Watch(self._register, wire, link.manner, clock)
        self._measuring = Measuring(link.name, wire, clock)
        self._reachable = False
        self._levels: tuple[str, ...] = ()
        self._actions: queue.SimpleQueue[Action | None] = queue.SimpleQueue()
        self._backlog: deque[Action] = deque()
        self._told: tuple[Event, ...] = ()
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None

    @property
    def cluster(self) -> Cluster:
        return Cluster(
            name=self._link.name,
            backend=BackendKind.SLURM,
            abilities=self._abilities,
            order=self._link.order,
            reachable=self._reachable,
            place=f"slurm:{self._link.site}",
            levels=self._levels,
            orphans=self._register.orphans,
        )

    def adopt(self, allocations: tuple[Allocation, ...]) -> None:
        """What Slurm still knows goes on; what was begun and is not wanted any more ends."""
        self._stop_thread()
        self._told = ()
        self._backlog.clear()
        self._reachable = False
        self._register.adopt(allocations)
        self._watch.from_the_start()
        self._turn(())
        if not self._reachable:
            self._report_cluster(self._clock())
            self._publish()
        self._thread = threading.Thread(target=self._work, name=f"slurm-{self._link.name}")
        self._thread.start()

    def do(self, action: Action) -> None:
        self._actions.put(action)

    def observe(self, now: Instant) -> tuple[Event, ...]:  # noqa: ARG002 -- the port's
        with self._lock:
            found, self._told = self._told, ()
        return found

    def samples(self, now: Instant) -> Samples:
        return self._measuring.samples(now)

    def output(self, query: OutputQuery) -> Output:
        """Where this machine sees the cluster's files."""
        if query.launch.pods:
            return pod_output(self._link.site, query)
        prefix = self._link.manner.prefix
        nodes = tuple(NodeId(each.removeprefix(prefix)) for each in query.nodes)
        return read_output(replace(query, nodes=nodes))

    def close(self) -> None:
        self._stop_thread()

    def _stop_thread(self) -> None:
        if self._thread is not None:
            self._actions.put(None)
            self._thread.join()
            self._thread = None

    # The thread: take what was sent, look, do what is due, wait.

    def _work(self) -> None:
        while True:
            try:
                action = self._actions.get(timeout=self._wait_ms() / 1_000)
            except queue.Empty:
                self._turn(())
                continue
            taken = [action]
            while len(taken) < _AT_ONCE and not self._actions.empty():
                taken.append(self._actions.get())
            self._turn([each for each in taken if each is not None])
            if None in taken:
                return

    def _turn(self, actions: Iterable[Action]) -> None:
        now, pace, orphans = self._clock(), self._register.pace, self._register.orphans
        try:
            self._backlog.extend(actions)
            while self._backlog:
                self._orders.take(self._backlog[0])
                self._backlog.popleft()
            self._orders.submit()
            self._see_nodes_if_due(now)
            if now - pace.looked_at >= pace.pause_ms or self._register.unsubmitted:
                self._watch.look(now)
            # A node failed under a job: that is told with its end, so that none goes there.
            self._see_nodes_if_due(now)
            self._orders.submit_again()
            self._orders.act()
            self._measure_if_due(now)
            self._set_reachable(reachable=True)
        except (SlurmDownError, SlurmRefusedError, OSError) as error:
            log.warning("cluster %s does not answer: %s", self._link.name, error)
            self._give_up_for_now(now)
        except Exception:
            # What it says makes no sense: that is no better than silence, and must not end us.
            log.exception("cluster %s answers what nobody understands", self._link.name)
            self._give_up_for_now(now)
        self._tell_orphans(orphans)
        self._publish()

    def _give_up_for_now(self, now: Instant) -> None:
        self._register.pace.rest(now)
        self._set_reachable(reachable=False)

    def _see_nodes_if_due(self, now: Instant) -> None:
        if now - self._register.pace.nodes_at >= _NODES_MS:
            seen = self._watch.see_nodes(self._fleet, now)
            self._orders.heed(seen)
            if seen.levels != self._levels:
                self._levels = seen.levels
                self._report_cluster(now)

    def _measure_if_due(self, now: Instant) -> None:
        if self._measuring.is_due(now):
            allocations = self._register.allocations
            self._measuring.ask(
                [
                    Running(handle=each.note.handle, allocation=allocations[key])
                    for key, each in self._register.attempts.items()
                    if each.note.handle and each.timeline is not None and key in allocations
                ]
            )

    def _publish(self) -> None:
        """What one turn found is observed together: a cluster that answers, and all its nodes."""
        news = self._register.news
        if not news:
            return
        with self._lock:
            self._told = (*self._told, *news)
        news.clear()
        self._wake()

    def _wait_ms(self) -> int:
        now, pace = self._clock(), self._register.pace
        dues = [each.next_due() for each in self._register.attempts.values()]
        soonest = min((due for due in dues if due is not None), default=now + IDLE_LOOK_MS)
        return max(20, min(soonest, pace.looked_at + pace.pause_ms) - now)

    def _tell_orphans(self, before: tuple[str, ...]) -> None:
        orphans = self._register.orphans
        if orphans != before:
            names = ", ".join(orphans) or "none"
            log.warning("cluster %s: jobs with our mark, and unknown: %s", self._link.name, names)
            self._report_cluster(self._clock())

    def _set_reachable(self, *, reachable: bool) -> None:
        if reachable != self._reachable:
            self._reachable = reachable
            self._report_cluster(self._clock())

    def _report_cluster(self, now: Instant) -> None:
        self._register.news.append(ClusterSeen(at=now, cluster=self.cluster))
