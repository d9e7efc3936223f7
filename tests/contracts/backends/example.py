"""A whole backend in 150 lines: attempts as subprocesses, each with a folder named after its key.

What it drives is `example_engine.py`, which stays with the tasks of an attempt, obeys its orders,
and notes when the tasks started and how they ended.
"""

import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

from contracts.backends import example_engine as engine
from muster.backends.base import Action, Continue, Forget, Limit, Run, Signal, Stop, Suspend
from muster.launch.attempt import DeviceAccess, in_rank_order
from muster.launch.prepare import prepare
from muster.model import event
from muster.model.cluster import Cluster, Node
from muster.model.job import Exited, NodeFailed, Signaled, TimedOut
from muster.model.placement import Allocation
from muster.model.value import Duration, Instant, JobId, replace

SHELL = ("/bin/sh", "-c", 'exec "$@" >>"$0" 2>&1')


class ExampleBackend:
    """Runs the attempts of all its nodes on this machine."""

    def __init__(
        self, home: Path, cluster: Cluster, nodes: tuple[Node, ...], clock: Callable[[], Instant]
    ) -> None:
        self._home, self._nodes, self._clock = home, nodes, clock
        self.cluster = cluster
        self._news: list[event.Event] = []
        self._reported: set[event.Event] = set()

    def adopt(self, allocations: tuple[Allocation, ...]) -> None:
        kept, now = {f"{each.job}.{each.attempt}": each for each in allocations}, self._clock()
        for folder in self._home.iterdir():
            if folder.name not in kept:
                engine.delete(folder)
        self._reported.clear()
        self._news = [event.ClusterSeen(at=now, cluster=self.cluster)]
        self._news += [event.NodeSeen(at=now, node=node) for node in self._nodes]
        for name, held in kept.items():
            if held.started_at is not None and not (self._home / name).exists():
                why = NodeFailed(node=held.placements[0].node)
                self._news.append(
                    event.JobEnded(at=now, job=held.job, attempt=held.attempt, why=why)
                )

    def do(self, action: Action) -> None:
        match action:
            case Run():
                self._run(in_rank_order(action))
            case Forget():
                engine.delete(self._home / f"{action.job}.{action.attempt}")
            case Stop() | Suspend() | Continue() | Signal() | Limit():
                folder = self._home / f"{action.job}.{action.attempt}"
                if folder.exists() and not engine.note(folder, "ended"):
                    _order(folder, action, self._clock())
            case _:
                """Its abilities exclude MIG, and no node of it is ever found broken."""

    def observe(self, now: Instant) -> tuple[event.Event, ...]:  # noqa: ARG002 -- the port's
        found, self._news = self._news, []
        for folder in sorted(self._home.iterdir()):
            fresh = [each for each in _story(folder) if each not in self._reported]
            self._reported.update(fresh)
            found += fresh
        return tuple(found)

    def close(self) -> None:
        """Nothing is held: wrappers and jobs go on."""

    def _run(self, run: Run) -> None:
        folder = self._home / f"{run.job.id}.{run.allocation.attempt}"
        if folder.exists():
            return
        access = [DeviceAccess()] * len(run.allocation.placements)
        prepared, cwd = prepare(run, access, master="127.0.0.1"), run.launch.workdir or "/"
        args, env = run.launch.argv, {**os.environ, **prepared.env}
        tasks = [
            {"args": [*SHELL, each.stdout, *args], "cwd": cwd, "env": {**env, **each.env}}
            for each in prepared.tasks
        ]
        orders = engine.Orders(limit=run.job.spec.time_limit, grace=run.grace)
        if (wanted := prepared.checkpoint) is not None:
            path = str(Path(cwd, wanted.path))
            orders = replace(orders, saves=path, signal=wanted.signal or 0)
        engine.start(folder, tasks, orders)


def _order(folder: Path, action: Action, now: Instant) -> None:
    orders = engine.orders_of(folder)
    match action:
        case Stop():
            kills_at = Instant(now + action.grace)
            if orders.why is None:
                asks = action.checkpoint and orders.signal > 0
                orders = replace(orders, why=action.why, stopped_at=now, asks=asks)
                orders = replace(orders, kills_at=kills_at, suspended_at=None)
            engine.write(folder, replace(orders, kills_at=min(orders.kills_at, kills_at)))
            engine.send(folder, signal.SIGCONT)
        case Suspend():
            engine.send(folder, signal.SIGSTOP)
            engine.write(folder, replace(orders, suspended_at=now))
        case Continue():
            engine.write(folder, replace(orders, suspended_at=None))
            engine.send(folder, signal.SIGCONT)
        case Limit():
            engine.write(folder, replace(orders, limit=None, ends_at=action.ends_at))
        case Signal():
            engine.send(folder, action.signal)
        case _:
            """Nothing else is ordered of a running attempt."""


def _story(folder: Path) -> Iterator[event.Event]:
    """Everything that happened to an attempt and still holds."""
    orders, started, ended = (
        engine.orders_of(folder),
        engine.note(folder, "started"),
        engine.note(folder, "ended"),
    )
    job, attempt = JobId(int(folder.name.partition(".")[0])), int(folder.name.partition(".")[2])
    if started:
        yield event.JobStarted(at=Instant(started[0]), job=job, attempt=attempt)
    if orders.saves and (path := Path(orders.saves)).exists():
        yield event.JobCheckpointed(
            at=Instant(path.stat().st_mtime_ns // 1_000_000), job=job, attempt=attempt
        )
    if orders.suspended_at is not None and not ended:
        yield event.JobSuspended(at=orders.suspended_at, job=job, attempt=attempt)
    if ended:
        at, code, limit = ended
        own = Exited(code=code) if code >= 0 else Signaled(signal=-code)
        why = orders.why or (TimedOut(limit=Duration(limit)) if limit else own)
        yield event.JobEnded(at=Instant(at), why=why, job=job, attempt=attempt)
