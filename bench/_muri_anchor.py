"""The published simulation, in our words: SRTF, SRSF and Tiresias as Muri's authors ran them.

Things happen when a job comes, when one ends and, for Tiresias, when one falls to a lower queue.
At each such moment every running job loses its start time from the progress since the moment
before, and all are placed again from an empty cluster. That is how the published figures came
about, so it is kept, oddities included.
"""

from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from math import ceil, inf

from bench._muri_trace import GPUS_PER_NODE, NODES, TraceJob

LIMITS_GPU_S = (3250, 7200)
"""How much service lets a job fall, from the first and from the second queue of Tiresias."""


@dataclass(slots=True, eq=False)
class Running:
    """One job on its way."""

    job: TraceJob
    gpus: int
    iteration_s: float
    left: float
    key: float = 0.0
    checked_s: float = 0.0
    had_s: float = 0.0
    queue: int = 0
    seat: int = 0

    @property
    def left_s(self) -> float:
        return self.left * self.iteration_s


Ended = dict[int, float]
"""When each job ended, by its number."""


def srtf(jobs: Iterable[TraceJob]) -> Ended:
    """The shortest remaining time goes first."""
    return ByLength(jobs, lambda each: each.left_s).run()


def srsf(jobs: Iterable[TraceJob]) -> Ended:
    """The least remaining GPU-time goes first."""
    return ByLength(jobs, lambda each: each.left_s * each.gpus).run()


def tiresias(jobs: Iterable[TraceJob], limits: tuple[float, ...] = LIMITS_GPU_S) -> Ended:
    """Who had little GPU-time goes first, in three coarse classes; nobody knows durations."""
    return ByService(jobs, limits).run()


class _Coming:
    """Those who come at one instant come together."""

    def __init__(self, jobs: Iterable[TraceJob]) -> None:
        self._rest = deque(jobs)

    @property
    def at(self) -> float:
        return self._rest[0].submit_s if self._rest else inf

    def take(self) -> list[Running]:
        at, found = self.at, list[Running]()
        while self._rest and self._rest[0].submit_s == at:
            job = self._rest.popleft()
            found.append(Running(job, job.gpus, job.iteration_s, job.iterations, checked_s=at))
        return found


class ByLength:
    """Shortest first, whatever short means; who does not fit is passed over."""

    def __init__(self, jobs: Iterable[TraceJob], key: Callable[[Running], float]) -> None:
        self._coming = _Coming(jobs)
        self._key = key
        self._here: list[Running] = []
        self._running: list[Running] = []
        self._ended: Ended = {}

    def run(self) -> Ended:
        ends_s: float = inf
        enders: list[Running] = []
        while (now := min(ends_s, self._coming.at)) < inf:
            for each in enders if ends_s == now else ():
                self._end(each, now)
            if self._coming.at == now:
                self._let_in()
            self._pass_until(now)
            self._here.sort(key=_by_key)
            self._place(now)
            ends_s, enders = _first_to_end(self._running, now)
        return self._ended

    def _end(self, one: Running, now: float) -> None:
        self._ended[one.job.number] = now
        self._here.remove(one)
        self._running.remove(one)

    def _let_in(self) -> None:
        for each in self._coming.take():
            each.key = self._key(each)
            self._here.append(each)

    def _pass_until(self, now: float) -> None:
        for each in self._running:
            progress(each, now)
            each.key = self._key(each)

    def _place(self, now: float) -> None:
        nodes = [GPUS_PER_NODE] * NODES
        free = GPUS_PER_NODE * NODES
        running = self._running = list[Running]()
        for each in self._here:
            if each.gpus <= free and fits(each.gpus, nodes):
                each.checked_s = now
                running.append(each)
                free -= each.gpus
                if not free:
                    break


def _by_key(one: Running) -> float:
    return one.key


def progress(one: Running, now: float) -> None:
    """What it computed since it was last looked at, less one start."""
    one.left -= max(now - one.checked_s - one.job.start_s, 0) / one.iteration_s
    one.had_s = one.had_s + now - one.checked_s
    one.checked_s = now


def fits(gpus: int, nodes: list[int]) -> bool:
    """Take the GPUs: on the first node that has so many, or on whole nodes and one for the rest."""
    if gpus <= GPUS_PER_NODE:
        for node, free in enumerate(nodes):
            if free >= gpus:
                nodes[node] -= gpus
                return True
        return False
    many, rest = divmod(gpus, GPUS_PER_NODE)
    idle = [node for node, free in enumerate(nodes) if free == GPUS_PER_NODE][:many]
    last = [node for node, free in enumerate(nodes) if rest and free >= rest and node not in idle]
    if len(idle) < many or (rest and not last):
        return False
    for node in idle:
        nodes[node] = 0
    if rest:
        nodes[last[0]] -= rest
    return True


def _first_to_end(running: Iterable[Running], now: float) -> tuple[float, list[Running]]:
    first: float = inf
    found: list[Running] = []
    for each in running:
        at = now + each.left_s
        if at < first:
            first, found = at, [each]
        elif at == first:
            found.append(each)
    return first, found


@dataclass(slots=True)
class _Queue:
    """First come, first served: those who ran go before those who wait, and who fell in comes last.

    Those who wait are kept by size, with their seat, so that a pass need not look at all of them.
    """

    ran: list[Running] = field(default_factory=list[Running])
    waits: dict[int, deque[Running]] = field(default_factory=dict[int, deque[Running]])
    fell: list[Running] = field(default_factory=list[Running])
    first_seat: int = 0
    last_seat: int = 0

    def put_last(self, one: Running) -> None:
        self.last_seat += 1
        one.seat = self.last_seat
        self.waits.setdefault(one.gpus, deque()).append(one)

    def put_first(self, one: Running) -> None:
        self.first_seat -= 1
        one.seat = self.first_seat
        self.waits.setdefault(one.gpus, deque()).appendleft(one)

    def next_that_fits(self, free: int) -> Running | None:
        heads = [line[0] for gpus, line in self.waits.items() if line and gpus <= free]
        return min(heads, key=lambda one: one.seat, default=None)

    def let_run(self, free: int, now: float) -> int:
        """Who of them runs, with so many GPUs; how many are left for the queues below."""
        ran, self.ran = self.ran, []
        stopped = list[Running]()
        for one in ran:
            free = self._try(one, free, stopped)
        while (one := self.next_that_fits(free)) is not None:
            self.waits[one.gpus].popleft()
            one.checked_s = now
            free = self._try(one, free, stopped)
        fell, self.fell = self.fell, []
        late = list[Running]()
        for one in fell:
            free = self._try(one, free, late)
        for one in reversed(stopped):
            self.put_first(one)
        for one in late:
            self.put_last(one)
        return free

    def _try(self, one: Running, free: int, stopped: list[Running]) -> int:
        if one.gpus > free:
            stopped.append(one)
            return free
        self.ran.append(one)
        return free - one.gpus


class ByService:
    """Tiresias: GPUs are counted and not placed, and nobody rises again."""

    def __init__(self, jobs: Iterable[TraceJob], limits: tuple[float, ...]) -> None:
        self._coming = _Coming(jobs)
        self._limits = (*limits, inf)
        self._queues = [_Queue() for _ in self._limits]
        self._ended: Ended = {}

    def run(self) -> Ended:
        ends_s: float = inf
        falls_s: float = inf
        enders: list[Running] = []
        while (now := min(ends_s, self._coming.at, falls_s)) < inf:
            for each in enders if ends_s == now else ():
                self._end(each, now)
            if self._coming.at == now:
                self._let_in()
            self._pass_until(now)
            free = GPUS_PER_NODE * NODES
            for queue in self._queues:
                free = queue.let_run(free, now)
            ends_s, enders = _first_to_end(self._running(), now)
            falls_s = min((self._falls_at(each, now) for each in self._running()), default=inf)
        return self._ended

    def _running(self) -> list[Running]:
        return [one for queue in self._queues for one in queue.ran]

    def _end(self, one: Running, now: float) -> None:
        self._ended[one.job.number] = now
        self._queues[one.queue].ran.remove(one)

    def _let_in(self) -> None:
        for each in self._coming.take():
            self._queues[0].put_last(each)

    def _pass_until(self, now: float) -> None:
        """In the order of their coming, as it decides who falls behind whom."""
        for each in sorted(self._running(), key=lambda one: one.job.number):
            progress(each, now)
            if each.had_s * each.gpus >= self._limits[each.queue]:
                self._queues[each.queue].ran.remove(each)
                each.queue += 1
                self._queues[each.queue].fell.append(each)

    def _falls_at(self, one: Running, now: float) -> float:
        limit = self._limits[one.queue]
        return inf if limit == inf else ceil(limit / one.gpus) - one.had_s + now
