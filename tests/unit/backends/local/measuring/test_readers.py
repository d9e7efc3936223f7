from pathlib import Path

import pytest

from muster.backends.local.isolation.cgroup import CgroupRoots
from muster.backends.local.measuring.host_reader import TICKS_A_SECOND, HostReader
from muster.backends.local.measuring.job_reader import Held, JobReader
from muster.model.placement import Placement
from muster.model.resources import Resources
from muster.model.samples import JobSample
from muster.model.value import Instant, NodeId, PoolName

KEY = "7.1"
MIB = 1 << 20


class Recorded:
    """Folders as the kernel shows them."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self.proc = str(root / "proc")

    def says(self, path: str, text: str) -> None:
        file = self._root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)

    def group(self, hierarchy: str, name: str, text: str) -> None:
        self.says(f"{hierarchy}/{KEY}/{name}", text)

    def process(self, pid: int, *, ticks: int, state: str = "S", read: int = 0) -> None:
        stat = f"{pid} (python) {state} 1 2 3 4 5 6 7 8 9 10 {ticks} 0 0 0"
        self.says(f"proc/{pid}/stat", stat)
        self.says(f"proc/{pid}/task/{pid}/stat", stat)
        self.says(f"proc/{pid}/io", f"read_bytes: {read}\nwrite_bytes: 0\n")

    def reader(self, *hierarchies: str) -> JobReader:
        folders = {each: str(self._root / each) for each in hierarchies}
        return JobReader(CgroupRoots(folders=folders), self.proc)


@pytest.fixture
def recorded(tmp_path: Path) -> Recorded:
    return Recorded(tmp_path)


def held(*pids: int) -> tuple[Held, ...]:
    placement = Placement(
        group="main",
        index=0,
        node=NodeId("n1"),
        pool=PoolName("gpus"),
        amount=Resources(cpu_milli=4_000),
    )
    return (Held(key=KEY, placements=(placement,), pids=pids),)


def only(samples: tuple[JobSample, ...]) -> JobSample:
    assert len(samples) == 1
    return samples[0]


def test_the_first_look_has_totals_and_no_means(recorded: Recorded) -> None:
    recorded.group("v2", "cpu.stat", "usage_usec 500\nthrottled_usec 0\n")
    recorded.process(10, ticks=5)

    sample = only(recorded.reader("v2").look(held(10), Instant(1_000)))

    assert (sample.job, sample.attempt, sample.node) == (7, 1, "n1")
    assert (sample.cpu_ns_total, sample.cpu_used_milli, sample.interval_ms) == (500_000, None, None)
    assert sample.cpu_granted_milli == 4_000


def test_a_group_of_version_2_counts_for_its_processes(recorded: Recorded) -> None:
    reader = recorded.reader("v2")
    recorded.group("v2", "memory.current", f"{3 * MIB}\n")
    recorded.group("v2", "memory.peak", f"{5 * MIB}\n")
    recorded.group("v2", "memory.max", "max\n")
    recorded.group("v2", "io.pressure", "some avg10=25.00 avg60=0.00 avg300=0.00 total=1\n")
    recorded.process(10, ticks=0)
    for at, used in ((0, 0), (10_000, 15_000_000)):
        recorded.group("v2", "cpu.stat", f"usage_usec {used}\nthrottled_usec {used // 15}\n")
        recorded.group("v2", "io.stat", f"8:0 rbytes={used} wbytes=0\n")
        samples = reader.look(held(10), Instant(1_000 + at))

    sample = only(samples)

    assert sample.interval_ms == 10_000
    assert (sample.cpu_used_milli, sample.cpu_throttled_milli) == (1_500, 100)
    assert (sample.memory_bytes, sample.memory_peak_bytes) == (3 * MIB, 5 * MIB)
    assert sample.memory_limit_bytes is None
    assert (sample.read_bytes_per_s, sample.written_bytes_per_s) == (1_500_000, 0)
    assert sample.pressure.io_milli == 250


def test_groups_of_version_1_count_memory_and_processes_the_rest(recorded: Recorded) -> None:
    reader = recorded.reader("cpu", "memory")
    recorded.group("memory", "memory.usage_in_bytes", f"{MIB}\n")
    recorded.group("memory", "memory.max_usage_in_bytes", f"{2 * MIB}\n")
    recorded.group("memory", "memory.limit_in_bytes", "9223372036854771712\n")
    recorded.process(10, ticks=0, read=0)
    recorded.process(11, ticks=0, state="D")
    reader.look(held(10, 11), Instant(0))
    recorded.process(10, ticks=10 * TICKS_A_SECOND, read=40)

    sample = only(reader.look(held(10, 11), Instant(10_000)))

    assert (sample.cpu_used_milli, sample.busiest_thread_milli) == (1_000, 1_000)
    assert (sample.memory_bytes, sample.memory_limit_bytes) == (MIB, None)
    assert sample.read_bytes_per_s == 4
    assert (sample.processes, sample.blocked_milli) == (2, 500)


def test_a_machine_that_tells_nothing_is_not_an_idle_job(recorded: Recorded) -> None:
    recorded.process(10, ticks=0)

    sample = only(recorded.reader().look(held(10), Instant(0)))

    assert (sample.memory_bytes, sample.pressure.io_milli) == (None, None)


def test_counters_and_clocks_that_go_back_make_no_numbers_below_zero(recorded: Recorded) -> None:
    reader = recorded.reader()
    recorded.process(10, ticks=100)
    reader.look(held(10), Instant(10_000))
    recorded.process(10, ticks=1)

    assert only(reader.look(held(10), Instant(5_000))).cpu_used_milli is None
    assert only(reader.look(held(10), Instant(9_000))).cpu_used_milli == 0


def test_an_attempt_without_processes_is_forgotten(recorded: Recorded) -> None:
    reader = recorded.reader()
    recorded.process(10, ticks=100)
    reader.look(held(10), Instant(0))

    assert reader.look(held(), Instant(1_000)) == ()
    assert only(reader.look(held(10), Instant(2_000))).interval_ms is None


def test_a_process_that_ends_while_we_look_is_left_out(recorded: Recorded) -> None:
    sample = only(recorded.reader().look(held(99), Instant(0)))

    assert (sample.processes, sample.blocked_milli) == (1, None)


def test_a_machine_tells_what_its_cpus_did_since_the_last_look(
    recorded: Recorded, tmp_path: Path
) -> None:
    reader = HostReader(tmp_path, recorded.proc)
    recorded.says("proc/stat", "cpu 0 0 0 0 0 0 0 0 0 0\n")
    recorded.says("proc/meminfo", "MemTotal: 8 kB\nMemAvailable: 2 kB\n")
    first = reader.look(NodeId("n1"), Instant(0))
    recorded.says("proc/stat", f"cpu {30 * TICKS_A_SECOND} 0 0 9 9 0 0 0 0 0\n")

    second = reader.look(NodeId("n1"), Instant(10_000))

    assert (first.cpu_used_milli, second.cpu_used_milli) == (None, 3_000)
    assert (second.memory_bytes, second.memory_free_bytes) == (8_192, 2_048)
    assert second.sent_bytes_total is None
    assert [disk.what for disk in second.disks] == ["state", "tmp"]
