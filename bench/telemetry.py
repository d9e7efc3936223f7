"""What telemetry costs: a series on the page of metrics, a whole page, a look, and the rest of us.

    make bench NAME=telemetry [BEFORE=CHECKOUT] [ARGS="--batches 100 --jobs 25"]

- Text is made of 50,000 series as a large installation has them, and beside it by prometheus_client
  where that is installed (it is no dependency of ours).
- A whole page is made of a record of 10,000 nodes with 80,000 GPUs, 1,000 queues and 100,000 jobs.
- A look is that of a leader at 8 pretend GPUs that 8 jobs hold: without NVML, whose own time is
  measured in bench/gpu, where there is a GPU.
- Submissions and no-op jobs are measured with telemetry and without it, in turn, batch by batch;
  looked at every 15 s and read by a Prometheus every 15 s. Without it is the same code, and nobody
  follows commits, looks, judges or sends. BEFORE, a checkout with its .venv, takes turns too.
"""

import argparse
import gzip
import http.client
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from statistics import median
from typing import NamedTuple, TypeVar

from bench._musters import Home, muster, percentile, until
from bench.report import Cell, Row, report
from muster.api.requests import SubmitDocument
from muster.app.daemon import running_pid
from muster.client.errors import ClientError, UnreachableError
from muster.controller.loop.controller import LastPlan
from muster.controller.watching.device_source import DeviceSource
from muster.controller.watching.left_out import LeftOut
from muster.controller.watching.live_series import LiveSeries
from muster.controller.watching.pool_source import PoolSource
from muster.controller.watching.queue_names import QueueNames
from muster.controller.watching.queue_source import QueueSource
from muster.controller.watching.tally import Tally
from muster.controller.watching.watcher import Watcher
from muster.controller.watching.xids import Xids
from muster.controller.world.record import Record
from muster.model.cluster import Cluster, Node, Pool
from muster.model.gpu import Device, GpuAsk
from muster.model.job import Ask, Job, JobSpec, JobState, TaskGroup
from muster.model.placement import Allocation, DeviceShare, Placement
from muster.model.plan import Plan, Wait
from muster.model.queue import Queue
from muster.model.reason import NoRoom
from muster.model.resources import Resources
from muster.model.samples import Activity, DeviceSample, Samples
from muster.model.site import Site
from muster.model.value import (
    ClusterName,
    DeviceId,
    GpuModel,
    Instant,
    JobId,
    NodeId,
    PoolName,
    QueuePath,
    UserName,
)
from muster.stores.base import LiveState
from muster.telemetry.exposition import classic, openmetrics
from muster.telemetry.family import Family, FamilyKind, Point

T = TypeVar("T")

CLUSTER, POOL, MODEL = ClusterName("lab"), PoolName("main"), GpuModel("H100-80GB")
NOW = Instant(1_800_000_000_000)
NAMES, QUEUES = 50, 1_000

OFF, ON = "off", "on"
NODES, GPUS = 4, "8xA100-40GB"
READ_EVERY_S = 15


def main() -> None:
    options = _options()
    rows: list[Row] = [*_text_rows(), *_page_rows()]
    figures = _look_figures()
    figures |= _others(options.before, options.batches, options.jobs)
    report("telemetry", figures, rows)


def _text_rows() -> Iterator[Row]:
    families = _families()
    series = sum(len(each.points) for each in families)
    for name, write in (("classic text", classic), ("OpenMetrics", openmetrics)):
        seconds, text = _best(lambda write=write: write(families))
        yield _row(name, series, seconds, len(text.encode()))
        packed_s, packed = _best(lambda text=text: gzip.compress(text.encode(), 1))
        yield _row(f"{name}, gzip of it", series, packed_s, len(packed))
    theirs = _prometheus_client(families)
    if theirs is not None:
        seconds, text = _best(theirs, tries=3)
        yield _row("prometheus_client", series, seconds, len(text))


def _families() -> list[Family]:
    labels = [(("queue", f"team{number % 40}/group{number}"),) for number in range(QUEUES)]
    return [
        Family(
            name=f"muster_queue_metric_number_{number}",
            kind=FamilyKind.GAUGE,
            help="What it says.",
            points=tuple(Point(each, place * 0.5) for place, each in enumerate(labels)),
        )
        for number in range(NAMES)
    ]


def _prometheus_client(families: list[Family]) -> Callable[[], bytes] | None:
    try:
        import prometheus_client as theirs  # noqa: PLC0415 -- only where somebody installed it
    except ImportError:
        print("prometheus_client is not installed: not measured beside it")
        return None
    registry = theirs.CollectorRegistry()
    for family in families:
        gauge = theirs.Gauge(family.name, family.help, ["queue"], registry=registry)
        for labels, value, _ in family.points:
            gauge.labels(labels[0][1]).set(value)

    def written() -> bytes:
        return theirs.generate_latest(registry)

    return written


def _page_rows() -> Iterator[Row]:
    record, last_plan = _record(nodes=10_000, jobs=100_000), LastPlan()
    waits = {
        job.id: Wait(job=job.id, why=NoRoom(group="", placed=0, wanted=1, nodes=1))
        for job in record.jobs.values()
        if not job.attempt
    }
    last_plan.settle(Plan(snapshot_version=1, policy=record.site.policy, waits=waits), NOW, 1)
    tally = Tally(record)
    tally.begin()
    queues = QueueSource(record, tally, last_plan, QueueNames())
    pools = PoolSource(record, tally, last_plan)
    seconds, families = _best(lambda: [*queues(NOW), *pools(NOW)])
    text_s, text = _best(lambda: classic(families))
    series = sum(len(each.points) for each in families)
    yield _row("page: what is so of queues and pools", series, seconds, len(text))
    yield _row("page: its text", series, text_s, len(text))


def _look_figures() -> dict[str, Cell]:
    record = _record(nodes=1, jobs=8)
    watcher = Watcher(record, {CLUSTER: _Cluster()}, lambda: NOW)  # pyright: ignore[reportArgumentType]
    source = DeviceSource(watcher, record, LeftOut(), Xids())
    watcher.subscribers.append(LiveSeries().look)
    looks, now = 200, NOW
    began = time.process_time()
    for _ in range(looks):
        now = Instant(now + 15_000)
        watcher.look(now)
        classic(source(now))
    seconds = (time.process_time() - began) / looks
    return {
        "look_at_8_gpus_series": sum(len(each.points) for each in source(now)),
        "look_at_8_gpus_and_text_ms": round(1_000 * seconds, 2),
        "look_at_8_gpus_percent_of_a_core": round(100 * seconds / 15, 4),
    }


class _Cluster:
    cluster = Cluster(name=CLUSTER)

    def samples(self, now: Instant) -> Samples:
        activity = Activity(graphics_milli=900, sm_milli=800, tensor_milli=300, dram_milli=200)
        return Samples(
            at=now,
            devices=tuple(
                DeviceSample(
                    device=DeviceId(f"n0/gpu{index}"),
                    node=NodeId("n0"),
                    at=now,
                    index=index,
                    busy_milli=900,
                    memory_used_bytes=1 << 34,
                    memory_free_bytes=1 << 36,
                    memory_reserved_bytes=1 << 20,
                    temperature_c=61,
                    power_mw=500_000,
                    power_limit_mw=700_000,
                    energy_mj_total=1 << 40,
                    sm_clock_mhz=1_800,
                    throttles=(),
                    throttled_ns={"power": 1, "thermal": 2},
                    activity=activity,
                )
                for index in range(8)
            ),
        )


def _record(*, nodes: int, jobs: int) -> Record:
    paths = [QueuePath(f"team{number % 40}/group{number}") for number in range(QUEUES)]
    machines = tuple(_node(number) for number in range(nodes))
    held = tuple(
        _allocation(number, machines[number // 8]) for number in range(min(jobs, 8 * nodes))
    )
    waiting = tuple(_job(number, paths) for number in range(jobs))
    live = tuple(
        each if number >= len(held) else _running(number, paths)
        for number, each in enumerate(waiting)
    )
    state = LiveState(jobs=live, allocations=held, nodes=machines, clusters=(_Cluster.cluster,))
    site = Site(
        queues={path: Queue(path=path) for path in paths},
        pools={POOL: Pool(name=POOL, cluster=CLUSTER)},
    )
    return Record(state, {}, site)


def _node(number: int) -> Node:
    return Node(
        id=NodeId(f"n{number}"),
        cluster=CLUSTER,
        pool=POOL,
        cpu_milli=128_000,
        memory_mib=1_000_000,
        devices=tuple(
            Device(
                id=DeviceId(f"n{number}/gpu{index}"), index=index, model=MODEL, memory_mib=81_920
            )
            for index in range(8)
        ),
    )


def _job(number: int, paths: list[QueuePath]) -> Job:
    spec = JobSpec(
        name="job",
        user=UserName(f"user{number % 200}"),
        queue=paths[number % len(paths)],
        groups=(TaskGroup(each=Ask(gpus=GpuAsk(count=1))),),
    )
    return Job(id=JobId(number + 1), spec=spec, submitted_at=NOW)


def _running(number: int, paths: list[QueuePath]) -> Job:
    waiting = _job(number, paths)
    return Job(
        id=waiting.id, spec=waiting.spec, submitted_at=NOW, attempt=1, state=JobState.RUNNING
    )


def _allocation(number: int, node: Node) -> Allocation:
    share = DeviceShare(device=node.devices[number % 8].id)
    placement = Placement(
        group="",
        index=0,
        node=node.id,
        pool=POOL,
        amount=Resources(gpu_milli=1_000),
        devices=(share,),
    )
    return Allocation(
        job=JobId(number + 1),
        attempt=1,
        cluster=CLUSTER,
        placements=(placement,),
        placed_at=NOW,
        started_at=NOW,
    )


# Beside a Muster without telemetry.


class _Site(NamedTuple):
    """A Muster that is measured, and its daemon: all others stand still meanwhile."""

    home: Home
    daemon: int

    def pause(self) -> None:
        os.kill(self.daemon, signal.SIGSTOP)

    def go_on(self) -> None:
        os.kill(self.daemon, signal.SIGCONT)

    def cpu_ms(self) -> float:
        """What all threads of the daemon had of the processors until now."""
        tasks = Path(f"/proc/{self.daemon}/task").glob("*/schedstat")
        return sum(int(each.read_text().split()[0]) for each in tasks) / 1e6


class _Taken(NamedTuple):
    """What one batch of jobs took."""

    submits_s: Sequence[float]
    lasted_s: float
    cpu_ms: float


def _others(before: Path | None, batches: int, jobs: int) -> dict[str, Cell]:
    """All of them are up at once and take turns, so that they meet the same load of the machine.

    Looks and pages come by the clock, also by that of the time in which a daemon stands still: so
    a job here bears more of them than it would alone.
    """
    with ExitStack() as stack:
        sites = {OFF: stack.enter_context(_unwatched()), ON: stack.enter_context(_watched())}
        if before is not None:
            program = str(before / ".venv/bin/muster")
            sites["before"] = _site(
                stack.enter_context(muster(nodes=NODES, gpus=GPUS, program=program))
            )
        taken: dict[str, list[_Taken]] = {name: [] for name in sites}
        for site in sites.values():
            _batch(site, jobs)
            site.pause()
        try:
            for number in range(batches):
                turn = sorted(sites) if number % 2 else sorted(sites, reverse=True)
                for name in turn:
                    sites[name].go_on()
                    taken[name].append(_batch(sites[name], jobs))
                    sites[name].pause()
        finally:
            for site in sites.values():
                site.go_on()
        return dict(_compared(taken, jobs))


def _batch(site: _Site, jobs: int) -> _Taken:
    cpu_ms, began = site.cpu_ms(), time.monotonic()
    submits = [_seconds(lambda: site.home.client.submit_document(_no_op())) for _ in range(jobs)]
    until(lambda: site.home.live() == 0, 0.005)
    return _Taken(submits, time.monotonic() - began, site.cpu_ms() - cpu_ms)


def _compared(taken: Mapping[str, Sequence[_Taken]], jobs: int) -> Iterator[tuple[str, Cell]]:
    """Medians of pairs beside the sums: where others work too, some batches tell of them alone."""
    p99 = {
        name: percentile([each for batch in batches for each in batch.submits_s], 99)
        for name, batches in taken.items()
    }
    lasted_s = {name: sum(each.lasted_s for each in taken[name]) for name in taken}
    count = jobs * len(taken[OFF])
    yield "no_op_jobs_of_each", count
    yield "submit_p99_ratio", round(p99[ON] / p99[OFF], 3)
    slowest = (
        max(on.submits_s) / max(off.submits_s)
        for off, on in zip(taken[OFF], taken[ON], strict=True)
    )
    yield "submit_slowest_of_batch_ratio_median", round(median(slowest), 3)
    yield "no_op_jobs_ratio", round(lasted_s[OFF] / lasted_s[ON], 3)
    pairs = zip(taken[OFF], taken[ON], strict=True)
    yield "no_op_jobs_ratio_median", round(median(a.lasted_s / b.lasted_s for a, b in pairs), 3)
    for name, batches in taken.items():
        yield f"submit_p99_ms_{name}", round(1_000 * p99[name], 2)
        yield f"no_op_jobs_per_s_{name}", round(count / lasted_s[name], 1)
        cpu_ms = sum(each.cpu_ms for each in batches)
        yield f"daemon_cpu_ms_a_job_{name}", round(cpu_ms / count, 3)


@contextmanager
def _watched() -> Generator[_Site]:
    """As it is by default, and read by a Prometheus."""
    with muster(nodes=NODES, gpus=GPUS) as home:
        ended = _scraping(home)
        yield _site(home)
        ended.set()


@contextmanager
def _unwatched() -> Generator[_Site]:
    with tempfile.TemporaryDirectory(prefix="muster-") as folder:
        home = Home(Path(folder))
        (home.folder / "logs").mkdir()
        command = [sys.executable, "-m", "bench._unwatched", folder, str(NODES), GPUS]
        environ = {**home.environ, "PYTHONPATH": str(Path(__file__).parents[1])}
        daemon = subprocess.Popen(command, env=environ)  # noqa: S603 -- our own program
        try:
            until(lambda: _leads(home), 0.05, 60)
            yield _Site(home, daemon.pid)
        finally:
            home.stop()
            daemon.wait()


def _leads(home: Home) -> bool:
    try:
        return home.client.status().leading
    except (UnreachableError, ClientError):
        return False


def _site(home: Home) -> _Site:
    pid = running_pid(home.folder)
    if pid is None:
        raise RuntimeError(f"no Muster runs in {home.folder}")
    return _Site(home, pid)


def _scraping(home: Home) -> threading.Event:
    """Reads the page again and again until the event is set."""
    ended = threading.Event()

    def scrape() -> None:
        connection = _UnixConnection(home.folder / "muster.sock")
        while not ended.wait(READ_EVERY_S):
            connection.request("GET", "/metrics")
            connection.getresponse().read()
        connection.close()

    threading.Thread(target=scrape, daemon=True).start()
    return ended


class _UnixConnection(http.client.HTTPConnection):
    """To the socket of a Muster."""

    def __init__(self, path: Path) -> None:
        super().__init__("localhost", timeout=60)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.connect(str(self._path))


def _no_op() -> SubmitDocument:
    return SubmitDocument(command=("true",), stdout="/dev/null")


def _seconds(act: Callable[[], object]) -> float:
    began = time.perf_counter()
    act()
    return time.perf_counter() - began


def _best(act: Callable[[], T], tries: int = 5) -> tuple[float, T]:
    found: list[tuple[float, T]] = []
    for _ in range(tries):
        began = time.perf_counter()
        answer = act()
        found.append((time.perf_counter() - began, answer))
    return min(found, key=lambda each: each[0])


def _row(what: str, series: int, seconds: float, size: int) -> Row:
    return {
        "what": what,
        "series": series,
        "ms": round(1_000 * seconds, 1),
        "us a series": round(1e6 * seconds / series, 3),
        "bytes a series": round(size / series, 1),
    }


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    before = os.environ.get("BEFORE")
    parser.add_argument("--before", type=Path, default=Path(before) if before else None)
    parser.add_argument("--batches", type=int, default=100)
    parser.add_argument("--jobs", type=int, default=25, help="in each batch")
    return parser.parse_args()


if __name__ == "__main__":
    main()
