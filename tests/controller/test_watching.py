"""Looking at all clusters, and telling those who asked."""

import logging

import pytest

from controller.desk import LAB, SITE, Desk
from muster.backends.base import Backend
from muster.controller.watching.metrics import Metrics
from muster.controller.watching.watcher import Watcher
from muster.model.cluster import Cluster
from muster.model.errors import BackendDownError
from muster.model.gpu import Mig, MpsShare
from muster.model.samples import DeviceSample, Samples
from muster.model.site import TelemetryRules
from muster.model.value import (
    SECOND,
    ClusterName,
    DeviceId,
    Duration,
    Instant,
    JobId,
    NodeId,
    replace,
)
from muster.telemetry.family import Family, FamilyKind, Point
from muster.telemetry.look import Look

OTHER = ClusterName("other")


class Measured:
    """A cluster that measures what it is told, and fails when it is told to."""

    def __init__(self, *devices: str) -> None:
        self.cluster = Cluster(name=OTHER)
        self.devices = devices
        self.fails: Exception | None = None

    def samples(self, now: Instant) -> Samples:
        if self.fails is not None:
            raise self.fails
        found = tuple(
            DeviceSample(device=DeviceId(name), node=NodeId("n1"), at=now, index=0)
            for name in self.devices
        )
        return Samples(at=now, devices=found)


def watcher(desk: Desk, measured: Measured | None = None) -> Watcher:
    backends: dict[ClusterName, Backend] = {LAB: desk.backend}
    if measured is not None:
        backends[OTHER] = measured  # pyright: ignore[reportArgumentType]
    return Watcher(desk.record, backends, lambda: desk.simulation.now)


def test_a_look_says_who_holds_what() -> None:
    desk = Desk(nodes=1, gpus=4)
    job = desk.submits("ada", gpus=2, queue="a/b", lasts=600)
    desk.lets_pass(10)

    look = watcher(desk).look(desk.simulation.now)

    first = look.holdings[0]
    assert [each.device for each in look.holdings] == ["n1/gpu0", "n1/gpu1"]
    assert (first.job, first.attempt, first.user, first.queue) == (job, 1, "ada", "a/b")
    assert (first.cluster, first.pool, first.node, first.gpu_milli) == (LAB, "main", "n1", 1_000)
    assert first.since == desk.holds()[job].placed_at


def test_jobs_that_share_a_device_hold_their_parts_of_it() -> None:
    desk = Desk(nodes=1, gpus=1)
    desk.submits("ada", slice=MpsShare(milli=250), lasts=600)
    desk.submits("bob", slice=MpsShare(milli=500), lasts=600)
    desk.lets_pass(10)

    look = watcher(desk).look(desk.simulation.now)

    assert [(each.user, each.gpu_milli) for each in look.holdings] == [("ada", 250), ("bob", 500)]
    assert {each.device for each in look.holdings} == {"n1/gpu0"}


def test_mig_instances_are_held_one_by_one() -> None:
    desk = Desk(nodes=1, gpus=1)
    desk.submits("ada", gpus=2, slice=Mig(profile="1g.5gb"), lasts=600)
    desk.lets_pass(60)

    look = watcher(desk).look(desk.simulation.now)

    assert [each.profile for each in look.holdings] == ["1g.5gb", "1g.5gb"]
    assert len({each.start for each in look.holdings}) == 2


def test_nobody_holds_anything_when_jobs_are_over() -> None:
    desk = Desk()
    desk.submits(lasts=5)
    desk.lets_all_end()

    assert watcher(desk).look(desk.simulation.now).holdings == ()


def test_clusters_that_measure_are_asked_and_others_are_not() -> None:
    desk = Desk()

    look = watcher(desk, Measured("gpu0")).look(desk.simulation.now)

    assert [*look.samples] == [OTHER]
    assert look.samples[OTHER].devices[0].device == "gpu0"
    assert look.silent == ()


@pytest.mark.parametrize("fault", [BackendDownError(OTHER, "gone"), RuntimeError("a mistake")])
def test_a_cluster_that_does_not_answer_is_silent_and_logged_once(
    fault: Exception, caplog: pytest.LogCaptureFixture
) -> None:
    desk, measured = Desk(), Measured("gpu0")
    watching = watcher(desk, measured)
    watching.look(desk.simulation.now)
    measured.fails = fault

    with caplog.at_level(logging.WARNING):
        looks = [watching.look(Instant(desk.simulation.now + n * SECOND)) for n in (15, 30)]

    assert [(look.samples, look.silent) for look in looks] == [({}, (OTHER,))] * 2
    assert len(caplog.records) == 1
    assert len(watching.problems()) == 1


def test_what_cannot_be_measured_is_said_until_it_can() -> None:
    desk, measured = Desk(), Measured("gpu0")
    watching = watcher(desk, measured)
    measured.fails = BackendDownError(OTHER, "gone")
    watching.look(desk.simulation.now)

    (problem,) = watching.problems()
    measured.fails = None
    watching.look(Instant(desk.simulation.now + 15 * SECOND))

    assert problem.startswith("not measured: cluster other does not answer (gone)")
    assert watching.problems() == ()


def test_a_subscriber_that_fails_stops_no_other_and_is_logged_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    desk, heard = Desk(), list[Look]()

    def fails(_: Look) -> None:
        raise ValueError("a mistake")

    watching = watcher(desk)
    watching.subscribers.extend([fails, heard.append])

    with caplog.at_level(logging.ERROR):
        looks = [watching.look(Instant(desk.simulation.now + n * SECOND)) for n in (15, 30)]

    assert heard == looks
    assert len(caplog.records) == 1


def test_a_look_writes_nothing() -> None:
    desk = Desk()
    desk.submits(lasts=600)
    desk.lets_pass(10)
    version = desk.record.version

    watcher(desk, Measured("gpu0")).look(desk.simulation.now)

    assert desk.record.version == version


def test_the_interval_is_a_rule() -> None:
    rules = TelemetryRules(interval=Duration(30 * SECOND))
    desk = Desk(site=replace(SITE, telemetry=rules))

    assert watcher(desk).look(desk.simulation.now).interval == 30 * SECOND


def test_a_source_that_fails_is_left_out(caplog: pytest.LogCaptureFixture) -> None:
    family = Family(
        name="muster_leads",
        kind=FamilyKind.GAUGE,
        help="Does this process lead?",
        points=(Point(labels=(), value=1),),
    )

    def fails(_: Instant) -> tuple[Family, ...]:
        raise ValueError("a mistake")

    metrics = Metrics(lambda: True)
    metrics.sources.extend([fails, lambda _: (family,)])

    with caplog.at_level(logging.ERROR):
        told = [metrics.families(Instant(1)), metrics.families(Instant(2))]

    assert told == [(family,), (family,)]
    assert len(caplog.records) == 1


def test_a_process_that_no_longer_leads_has_no_last_look() -> None:
    desk = Desk()
    watching = watcher(desk)
    watching.look(desk.simulation.now)

    watching.rest()

    assert watching.last is None
    watching.close()


def test_jobs_are_held_by_id() -> None:
    desk = Desk(nodes=2, gpus=4)
    for _ in range(5):
        desk.submits(gpus=1, lasts=600)
    desk.lets_pass(10)

    look = watcher(desk).look(desk.simulation.now)

    assert [each.job for each in look.holdings] == [JobId(n) for n in range(1, 6)]
