"""What is made of what Slurm says that jobs use."""

from collections.abc import Mapping, Sequence

import pytest

from muster.backends.slurm.measuring import PAUSE_MS, Measuring, Running
from muster.backends.slurm.usage import Usage
from muster.backends.slurm.wire import SlurmDownError, SlurmRefusedError
from muster.model.errors import BackendDownError
from muster.model.gpu import MpsShare
from muster.model.launch import Launch
from muster.model.placement import DeviceShare
from muster.model.value import ClusterName, DeviceId, Instant, replace
from unit.backends.slurm.given import run
from unit.backends.slurm.test_watch import Slurm


class Telling(Slurm):
    """A cluster that says of its jobs what it is told to say."""

    def __init__(self) -> None:
        super().__init__()
        self.uses: Mapping[str, Usage] | Exception = {}
        self.asked: list[tuple[str, ...]] = []

    def usage(self, handles: Sequence[str]) -> Mapping[str, Usage]:
        self.asked.append(tuple(handles))
        if isinstance(self.uses, Exception):
            raise self.uses
        return self.uses


def measuring() -> tuple[Telling, Measuring]:
    slurm = Telling()
    return slurm, Measuring(ClusterName("lab"), slurm, slurm.clock)


def running(*where: tuple[str, int]) -> Running:
    return Running(handle="12", allocation=run(Launch(), *where).allocation)


def test_cpu_time_between_two_answers_is_what_is_used() -> None:
    slurm, found = measuring()
    slurm.uses = {"12": Usage(cpu_ms=30_000, memory_peak_bytes=1 << 30)}
    found.ask_once([running(("node1", 1))])
    (first,) = found.samples(slurm.now).jobs

    slurm.now = Instant(slurm.now + 60_000)
    slurm.uses = {"12": Usage(cpu_ms=90_000, memory_peak_bytes=1 << 30)}
    found.ask_once([running(("node1", 1))])
    (second,) = found.samples(slurm.now).jobs

    assert (first.cpu_used_milli, first.memory_peak_bytes) == (None, 1 << 30)
    assert (second.cpu_used_milli, second.cpu_granted_milli) == (1_000, 2_000)
    assert (second.job, second.attempt, second.interval_ms) == (7, 1, 60_000)
    assert second.cpu_ns_total == 90_000_000_000


def test_nodes_have_their_parts_of_the_sum() -> None:
    slurm, found = measuring()
    slurm.uses = {"12": Usage(memory_peak_bytes=4 << 30, gpu_milli=1_500, gpu_memory_bytes=9)}

    found.ask_once([running(("node1", 1), ("node2", 2))])

    told = found.samples(slurm.now)
    assert [(each.node, each.memory_peak_bytes) for each in told.jobs] == [
        ("node1", 2 << 30),
        ("node2", 2 << 30),
    ]
    assert [(each.device, each.index, each.busy_milli) for each in told.devices] == [
        ("node1/gpu0", 0, 500),
        ("node2/gpu0", 0, 500),
        ("node2/gpu1", 1, 500),
    ]
    assert told.secondhand


def test_parts_of_a_gpu_are_not_told_by_their_sum() -> None:
    slurm, found = measuring()
    slurm.uses = {"12": Usage(gpu_milli=900)}
    whole = running(("node1", 1))
    (placement,) = whole.allocation.placements
    share = DeviceShare(device=DeviceId("node1/gpu0"), slice=MpsShare(milli=500))
    placed = replace(placement, devices=(share,))

    found.ask_once([replace(whole, allocation=replace(whole.allocation, placements=(placed,)))])

    assert found.samples(slurm.now).devices == ()


def test_a_sum_that_got_smaller_says_nothing_of_what_is_used() -> None:
    slurm, found = measuring()
    for cpu_ms in (90_000, 30_000):
        slurm.now = Instant(slurm.now + 60_000)
        slurm.uses = {"12": Usage(cpu_ms=cpu_ms)}
        found.ask_once([running(("node1", 1))])

    (told,) = found.samples(slurm.now).jobs
    assert told.cpu_used_milli is None


def test_a_cluster_that_gathers_nothing_is_measured_as_nothing() -> None:
    slurm, found = measuring()
    slurm.uses = SlurmRefusedError("accounting gather is none")

    found.ask_once([running(("node1", 1))])

    assert found.samples(slurm.now).jobs == ()


def test_what_a_silent_cluster_told_is_forgotten() -> None:
    slurm, found = measuring()
    assert found.samples(slurm.now).jobs == ()
    slurm.uses = {"12": Usage(cpu_ms=1)}
    found.ask_once([running(("node1", 1))])
    slurm.uses = SlurmDownError("sstat had no answer in 30 s")
    slurm.now = Instant(slurm.now + 3 * PAUSE_MS)
    found.ask_once([running(("node1", 1))])

    assert len(found.samples(slurm.now).jobs) == 1
    with pytest.raises(BackendDownError, match="had no answer"):
        found.samples(Instant(slurm.now + 1))


def test_all_jobs_are_asked_for_together_and_none_are_not_asked_for() -> None:
    slurm, found = measuring()
    one = running(("node1", 1))

    found.ask_once([])
    found.ask_once([one, replace(one, handle="13")])

    assert slurm.asked == [("12", "13")]


def test_it_is_due_again_after_a_pause() -> None:
    slurm, found = measuring()
    assert found.is_due(slurm.now)

    found.ask([])

    assert not found.is_due(Instant(slurm.now + PAUSE_MS - 1))
