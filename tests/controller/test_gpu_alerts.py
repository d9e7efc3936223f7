"""What breaks is told under its name within two evaluations, and nothing else is told."""

from collections.abc import Callable
from pathlib import Path

import pytest

from controller.desk import SITE, node
from muster.backends.local.hardware.pretend import (
    PretendInventory,
    break_devices,
    parse_pretend,
)
from muster.controller.alerting.loop import shipped_rules
from muster.controller.watching.device_source import DeviceSource
from muster.controller.watching.left_out import LeftOut
from muster.controller.watching.watcher import Watcher
from muster.controller.watching.xids import Xids
from muster.controller.world.record import Record
from muster.model.cluster import Abilities, BackendKind, Cluster, Node, NodeState
from muster.model.event import DeviceErred
from muster.model.value import ClusterName, Instant, JobId, replace
from muster.model.xid import XIDS, xid_of, xid_text
from muster.stores.base import Batch, LiveState
from muster.telemetry.alerting.judging import AlertState, Judge
from muster.telemetry.alerting.reading import rule_groups
from muster.telemetry.family import Family

STEP_MS = 15_000


def broken(well: Node) -> Node:
    first, *others = well.devices
    return replace(well, devices=(replace(first, healthy=False, reason="Xid 79"), *others))


def gone(well: Node) -> Node:
    return replace(well, state=NodeState.DOWN)


@pytest.mark.parametrize(
    ("becomes", "expected", "turns"), [(broken, "GpuBroken", 1), (gone, "NodeGone", 10)]
)
def test_a_fault_is_told_under_its_name_alone(
    becomes: Callable[[Node], Node], expected: str, turns: int
) -> None:
    well = node("n1", 4)
    judge = Judge(rule_groups(shipped_rules()))

    before = [each.name for each in judge.look(_told(well, 0), Instant(0)).alerts]
    looks = [
        judge.look(_told(becomes(well), now), Instant(now)).alerts
        for now in range(STEP_MS, turns * STEP_MS + 1, STEP_MS)
    ]

    after = looks[-1]
    assert before == []
    assert [(each.name, each.state) for each in after] == [(expected, AlertState.FIRING)]
    assert after[0].label("Hostname") == "n1" or after[0].label("node") == "n1"


@pytest.mark.parametrize("number", sorted({*XIDS, 9_999}))
def test_an_xid_is_told_if_it_leaves_the_gpu_out_of_use_and_not_otherwise(
    number: int, tmp_path: Path
) -> None:
    inventory = PretendInventory(tmp_path, (parse_pretend("1xA100-40GB", nodes=2),))
    xids, judge = Xids(), Judge(rule_groups(shipped_rules()))
    (first, second) = inventory.nodes()
    before = judge.look(_told(first, 0, xids), Instant(0)).alerts

    break_devices(tmp_path, {first.devices[0].id: xid_text(number)})
    inventory.poll(Instant(STEP_MS))
    errors = tuple(
        DeviceErred(at=Instant(STEP_MS), node=each.node, device=each.device, xid=each.xid)
        for each in inventory.errors()
    )
    xids.note(Batch(version=1, next_job=JobId(1), events=errors), ())
    (first, _) = inventory.nodes()
    for now in (STEP_MS, 2 * STEP_MS):
        after = judge.look(_told(first, now, xids), Instant(now)).alerts

    fires = {each.name for each in after if each.state is AlertState.FIRING}
    breaks = xid_of(number).verdict.breaks
    assert before == ()
    assert fires == ({"GpuBroken", "GpuXidFatal"} if breaks else set())
    assert first.devices[0].healthy is not breaks
    assert second.devices[0].healthy


def _told(machine: Node, now: int, xids: Xids | None = None) -> tuple[Family, ...]:
    record = Record(LiveState(nodes=(machine,), clusters=(LOCAL,)), {}, SITE)
    watcher = Watcher(record, {}, lambda: Instant(now))
    return tuple(DeviceSource(watcher, record, LeftOut(), xids or Xids())(Instant(now)))


LOCAL = Cluster(name=ClusterName("local"), backend=BackendKind.LOCAL, abilities=Abilities())
