"""This machine as a backend: gives orders to spawner and supervisors, reads what they write."""

import contextlib
import os
import platform
import secrets
import socket
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Protocol

import msgspec

from muster.backends.base import (
    Action,
    Continue,
    Cut,
    Forget,
    Limit,
    Mend,
    OutputQuery,
    Run,
    Signal,
    Stop,
    Supplies,
    Supply,
    Suspend,
    Wake,
)
from muster.backends.kept import JOB, kept
from muster.backends.local.attempt import cleanup, processes, spool, translate
from muster.backends.local.attempt.events import AttemptEvents
from muster.backends.local.attempt.live_usage import measured
from muster.backends.local.attempt.notifications import Notifications
from muster.backends.local.attempt.output import read_output
from muster.backends.local.attempt.spawner_client import SpawnerClient, reachable
from muster.backends.local.attempt.terminal_client import SocketTerminal
from muster.backends.local.hardware.inventory import DeviceError
from muster.backends.local.isolation import cgroup, container
from muster.backends.local.isolation.devices import DeviceWall
from muster.backends.local.measuring.sampling import Sampling
from muster.backends.local.pods.reading import pod_output
from muster.backends.local.pods.visiting import visit
from muster.launch.attempt import DeviceAccess, in_rank_order
from muster.launch.prepare import prepare
from muster.model.cluster import Cluster, Node
from muster.model.errors import UnknownError
from muster.model.event import ClusterSeen, DeviceErred, Event, JobEnded, NodeGone, NodeSeen
from muster.model.job import EndReason, NodeFailed
from muster.model.placement import Allocation, DeviceShare, Placement
from muster.model.running import Measured, Output, TerminalStream, Visit, VisitStream
from muster.model.samples import DeviceSample, Samples
from muster.model.value import Duration, Instant, JobId, NodeId, replace

Clock = Callable[[], Instant]

HERE = "127.0.0.1"
"""All tasks of an attempt run on this machine."""

_SCAN = Duration(5_000)


class MachineLike(Protocol):
    """What is here, and how jobs get at its devices."""

    def nodes(self) -> tuple[Node, ...]: ...
    def cluster(self) -> Cluster: ...
    def adopt(self, allocations: tuple[Allocation, ...]) -> None: ...
    def visible(self, share: DeviceShare) -> str: ...
    def sharing(self, placement: Placement) -> Mapping[str, str]: ...
    def release(self, placement: Placement) -> None: ...
    def cpus(self, allocation: Allocation) -> tuple[int, ...]: ...
    def free(self, job: JobId, attempt: int) -> None: ...
    def wall(self, allocation: Allocation) -> DeviceWall | None: ...
    def cut(self, action: Cut) -> None: ...
    def resume(self, node: NodeId) -> None: ...
    def poll(self, now: Instant) -> bool: ...
    def errors(self) -> tuple[DeviceError, ...]: ...
    def samples(self, now: Instant) -> tuple[DeviceSample, ...]: ...
    def close(self) -> None: ...


class LocalBackend:
    """Jobs as processes of this machine, in `home`/spool."""

    def __init__(self, home: Path, machine: MachineLike, wake: Wake, clock: Clock) -> None:
        self._spool = _made_spool(home.resolve())
        self._place = place_of(home)
        self._token = _token(self._spool)
        self._roots = cgroup.roots(f"muster-{self._token[:12]}")
        self._why_no_wall = cgroup.why_no_wall(self._roots)
        self._machine = machine
        self._clock = clock
        self._spawner = SpawnerClient(home.resolve(), machine.cluster().name)
        self._notifications = Notifications(self._spool, wake)
        self._facts: dict[str, AttemptEvents] = {}
        self._placements: dict[str, tuple[Placement, ...]] = {}
        self._nodes: dict[NodeId, Node] = {}
        self._cluster: Cluster | None = None
        self._scanned_at = Instant(0)
        self._tools = (container.can_run(), container.can_run_pods())
        self._orders = 0
        self._sampling = Sampling(self._roots, home.resolve())

    @property
    def cluster(self) -> Cluster:
        found = self._machine.cluster()
        # Behind pretend GPUs there is nothing that could be reached.
        has_gpus = any(node.devices and not node.pretend for node in self._machine.nodes())
        can_wall = self._why_no_wall is None or not has_gpus
        is_walled = found.abilities.device_wall and can_wall
        (images, image_files), (pods, host_paths) = self._tools
        abilities = replace(
            found.abilities,
            device_wall=is_walled,
            images=images,
            image_files=image_files,
            pods=pods,
            host_paths=host_paths,
        )
        return replace(found, place=self._place, abilities=abilities)

    def adopt(self, allocations: tuple[Allocation, ...]) -> None:
        kept = {spool.key_of(each.job, each.attempt): each for each in allocations}
        self._report_from_the_start()
        self._machine.adopt(allocations)
        for key in sorted(name for name in os.listdir(self._spool) if spool.parts_of(name)):
            if key not in kept:
                self._remove(key)
        cleanup.kill_strays(self._token, kept)
        for key, allocation in kept.items():
            self._take_over(key, allocation)

    def do(self, action: Action) -> None:
        match action:
            case Run():
                self._run(in_rank_order(action))
            case Stop() | Suspend() | Continue() | Signal() | Limit():
                self._order(action)
            case Supply(sources=sources):
                self._supply(spool.key_of(action.job, action.attempt), sources)
                self._order(action)
            case Cut():
                self._machine.cut(action)
            case Mend(node=node):
                self._machine.resume(node)
            case Forget(job=job, attempt=attempt):
                self._forget(spool.key_of(job, attempt))

    def observe(self, now: Instant) -> tuple[Event, ...]:
        events = [*self._seen(now)]
        keys = self._notifications.taken()
        if now - self._scanned_at >= _SCAN:
            self._scanned_at = now
            keys |= self._scan()
            events.extend(self._container_tools(now))
        for key in sorted(keys):
            events.extend(self._news(key))
        return tuple(events)

    def output(self, query: OutputQuery) -> Output:
        if query.launch.pod is None:
            return read_output(query)
        return pod_output(self._spool.parent, query)

    def attach(self, job: JobId, attempt: int) -> TerminalStream:
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            with reachable(self._spool / spool.key_of(job, attempt)) as folder:
                connection.connect(f"{folder}/{spool.TERMINAL_SOCKET}")
        except OSError:
            connection.close()
            raise UnknownError(f"job {job} has no terminal to attach to now") from None
        return SocketTerminal(connection)

    def visit(self, job: JobId, attempt: int, task: int, wanted: Visit) -> VisitStream:
        return visit(self._spool / spool.key_of(job, attempt), task, wanted)

    def step_address(self, job: JobId, attempt: int) -> str:
        path = self._spool / spool.key_of(job, attempt) / spool.STEP_SOCKET
        if not path.exists():
            raise UnknownError(f"job {job} does not run, so it cannot have steps")
        return f"unix://{path}"

    def usage(self, job: JobId, attempt: int) -> tuple[Measured, ...]:
        begun = spool.begun(self._spool / spool.key_of(job, attempt))
        if begun is None or processes.born(begun["pid"]) != begun["born"]:
            return ()
        return measured(begun["pid"])

    def pinned_cpus(self, job: JobId, attempt: int) -> Mapping[NodeId, tuple[int, ...]]:
        launch = spool.read(self._spool / spool.key_of(job, attempt) / spool.LAUNCH)
        return {} if launch is None else {NodeId(launch["node"]): tuple(launch["cpus"])}

    def samples(self, now: Instant) -> Samples:
        real = (node.id for node in self._machine.nodes() if not node.pretend)
        # Copied whole: another thread gives orders meanwhile.
        placed = dict(self._placements)
        return self._sampling.look(self._machine.samples(now), placed, next(real, None), now)

    def stop_spawner(self, *, even_if_busy: bool = False) -> bool:
        """End the spawner; False when it stays because jobs run. Their supervisors go on anyway."""
        return self._spawner.stop(even_if_busy=even_if_busy)

    def problems(self) -> tuple[str, ...]:
        """What this machine cannot do for jobs, in words for the administrator."""
        return (*self._roots.problems, *filter(None, [self._why_no_wall]))

    def close(self) -> None:
        self._notifications.close()
        if self._spawner.leave():
            cgroup.give_up(self._roots)
        self._machine.close()

    def _report_from_the_start(self) -> None:
        """A controller that adopts gets every report again: it may not have kept the first."""
        self._facts.clear()
        self._placements.clear()
        self._nodes.clear()
        self._cluster = None

    def _take_over(self, key: str, allocation: Allocation) -> None:
        self._placements[key] = allocation.placements
        if (self._spool / key).is_dir():
            self._facts[key] = AttemptEvents(self._spool / key)
            self._ensure_supervised(key)
            self._notifications.add(key)
        elif allocation.started_at is not None:
            # It ran, and nothing is left to say how it ended.
            self._end_unbegun(key, NodeFailed(node=allocation.placements[0].node))

    def _run(self, run: Run) -> None:
        key = spool.key_of(run.job.id, run.allocation.attempt)
        folder = self._spool / key
        with contextlib.suppress(FileExistsError):
            # The user must reach the script that lies in it, and nothing else.
            _make_passage(folder)
        self._facts.setdefault(key, AttemptEvents(folder))
        self._placements.setdefault(key, run.allocation.placements)
        if not (folder / spool.LAUNCH).exists():
            spool.write_text(folder / JOB, kept(run).decode())
            if run.supplies:
                self._supply(key, run.supplies)
            spool.write(folder / spool.LAUNCH, self._launch_file(run, key))
        self._ensure_supervised(key)

    def _supply(self, key: str, supplies: Supplies) -> None:
        """Only root may read it: Secrets are in it."""
        if (self._spool / key).is_dir():
            spool.write(self._spool / key / spool.SUPPLIES, translate.supplies_file(supplies))

    def _launch_file(self, run: Run, key: str) -> spool.LaunchFile:
        devices = tuple(
            DeviceAccess(
                devices=tuple(self._machine.visible(share) for share in placement.devices),
                env=self._machine.sharing(placement),
            )
            for placement in run.allocation.placements
        )
        access = translate.LocalAccess(
            mark=cleanup.marker(key, self._token),
            cpus=self._machine.cpus(run.allocation),
            wall=self._machine.wall(run.allocation) if self._why_no_wall is None else None,
        )
        return translate.launch_file(run, prepare(run, devices, master=HERE), access)

    def _ensure_supervised(self, key: str) -> None:
        folder = self._spool / key
        if (folder / spool.BEGUN).exists() or not (folder / spool.LAUNCH).exists():
            return
        if not (folder / spool.END).exists():
            self._spawner.run(key)

    def _order(self, order: translate.Order) -> None:
        key = spool.key_of(order.job, order.attempt)
        folder = self._spool / key
        if not (folder / spool.LAUNCH).exists():
            if isinstance(order, Stop):
                self._end_unbegun(key, order.why)
            return
        if (folder / spool.END).exists():
            self._notifications.add(key)
            return
        self._orders += 1
        name = f"{spool.ORDER}{self._clock():015d}-{self._orders:06d}"
        spool.write(folder / name, translate.order_file(order))
        spool.signal_orders(folder)

    def _end_unbegun(self, key: str, why: EndReason) -> None:
        """Nothing of it is here, and after this nothing will be."""
        folder = self._spool / key
        with contextlib.suppress(FileExistsError):
            _make_passage(folder)
        end = {"at": self._clock(), "why": msgspec.to_builtins(why), "used": None}
        spool.write(folder / spool.END, end)
        self._facts.setdefault(key, AttemptEvents(folder))
        self._notifications.add(key)

    def _forget(self, key: str) -> None:
        self._facts.pop(key, None)
        self._release(key)
        self._remove(key)

    def _remove(self, key: str) -> None:
        folder = self._spool / key
        if not (folder / spool.END).exists() and folder.is_dir():
            cleanup.kill_supervisor(folder)
            cleanup.end_abandoned(folder, self._roots)
            cleanup.clear(key, cleanup.marker(key, self._token), self._roots)
        spool.remove(folder)

    def _release(self, key: str) -> None:
        parts = spool.parts_of(key)
        for placement in self._placements.pop(key, ()):
            self._machine.release(placement)
        if parts is not None:
            self._machine.free(JobId(parts[0]), parts[1])

    def _seen(self, now: Instant) -> list[Event]:
        """The cluster, its nodes as far as they differ from the last report, and errors."""
        is_news = self._cluster is None or self._machine.poll(now)
        errors: list[Event] = [
            DeviceErred(at=now, node=each.node, device=each.device, xid=each.xid)
            for each in self._machine.errors()
        ]
        return [*errors, *self._nodes_seen(now)] if is_news else errors

    def _nodes_seen(self, now: Instant) -> list[Event]:
        events: list[Event] = []
        cluster = self.cluster
        if cluster != self._cluster:
            self._cluster = cluster
            events.append(ClusterSeen(at=now, cluster=cluster))
        nodes = {node.id: node for node in self._machine.nodes()}
        for id, node in nodes.items():
            if self._nodes.get(id) != node:
                events.append(NodeSeen(at=now, node=node))
        events.extend(NodeGone(at=now, node=id) for id in self._nodes if id not in nodes)
        self._nodes = nodes
        return events

    def _container_tools(self, now: Instant) -> list[Event]:
        """Tools are installed, and docker's daemon comes and goes, while we run."""
        tools = (container.can_run(), container.can_run_pods())
        if tools == self._tools:
            return []
        self._tools = tools
        self._cluster = self.cluster
        return [ClusterSeen(at=now, cluster=self._cluster)]

    def _scan(self) -> set[str]:
        """Every attempt that goes on: one whose supervisor died silently is found here."""
        ahead = [key for key, facts in self._facts.items() if not facts.is_over]
        for key in ahead:
            # Without room on the disk nothing can be written; the next scan tries again.
            with contextlib.suppress(OSError):
                self._ensure_supervised(key)
                cleanup.end_abandoned(self._spool / key, self._roots)
        return set(ahead)

    def _news(self, key: str) -> list[Event]:
        facts = self._facts.get(key)
        if facts is None:
            return []
        events = facts.news()
        if any(isinstance(event, JobEnded) for event in events):
            self._release(key)
        return events


def place_of(home: Path) -> str:
    """What tells this folder from every other, on this machine and elsewhere."""
    return f"{platform.node()}:{home.resolve()}"


def _made_spool(home: Path) -> Path:
    folder = home / spool.FOLDER
    home.mkdir(mode=0o711, parents=True, exist_ok=True)
    with contextlib.suppress(FileExistsError):
        _make_passage(folder)
    return folder


def _make_passage(folder: Path) -> None:
    """A folder that users pass and cannot list, whatever our umask is."""
    folder.mkdir(mode=0o700)
    folder.chmod(0o711)


def _token(folder: Path) -> str:
    """Tells our processes and groups from those of another Muster on this machine."""
    path = folder / spool.TOKEN
    with contextlib.suppress(FileNotFoundError):
        return path.read_text(encoding="ascii")
    token = secrets.token_hex(16)
    spool.write_text(path, token)
    return token
