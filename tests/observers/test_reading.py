"""A real Prometheus is asked how the GPUs of a cluster are."""

import json
from pathlib import Path

import pytest

from doors.rest.running import running
from muster.api.site import TokenAsked
from muster.model.cluster import Node
from muster.model.errors import BackendDownError
from muster.model.gpu import Device
from muster.model.site import MeasuredElsewhere
from muster.model.value import ClusterName, DeviceId, GpuModel, Instant, NodeId, PoolName
from muster.settings import Listen
from muster.telemetry.readers.asking import OthersReader
from observers.observing import free_port, program, prometheus, until

pytestmark = pytest.mark.slow

NOW = Instant(1_800_000_000_000)
LOAD = {"busy_milli": 870, "temperature_c": 71, "activity": {"sm_milli": 600}}
SITE = """
queues: {default: {}}
classes: {normal: {}}
telemetry: {interval: 5s}
"""


def reader(url: str, match: str = "") -> OthersReader:
    devices = tuple(
        Device(
            id=DeviceId(f"elsewhere-{index}"),
            index=index,
            model=GpuModel("A100-40GB"),
            memory_mib=40_960,
        )
        for index in range(4)
    )
    node = Node(
        id=NodeId("pretend1"),
        cluster=ClusterName("far"),
        pool=PoolName("p"),
        cpu_milli=1,
        memory_mib=1,
        devices=devices,
    )
    source = MeasuredElsewhere(cluster=ClusterName("far"), prometheus=url, match=match)
    return OthersReader(source, lambda: [node], lambda: NOW)


def test_what_prometheus_knows_of_a_cluster_is_taken_and_not_told_again(tmp_path: Path) -> None:
    program("prometheus")
    port = free_port()
    with running(Listen(host="127.0.0.1", port=port)) as daemon, daemon.client() as client:
        load = json.dumps({"*": [LOAD]})
        (daemon.home / "pretend-load.json").write_text(load, encoding="utf-8")
        client.apply(SITE)
        token = client.make_token(TokenAsked(role="viewer")).secret or ""
        with prometheus(tmp_path, port, token) as found:
            until(lambda: found.ask("DCGM_FI_PROF_SM_ACTIVE"), bool)
            ours, others = reader(found.url, '{job="muster"}'), reader(found.url, '{job="other"}')
            ours.ask_once()
            others.ask_once()
            samples, none = ours.samples(NOW), others.samples(NOW)
            # Three pauses later what it told is too old.
            with pytest.raises(BackendDownError):
                ours.samples(Instant(NOW + 180_001))

    assert samples.secondhand
    assert [each.device for each in samples.devices] == [f"elsewhere-{n}" for n in range(4)]
    first = samples.devices[0]
    # Means of the last minute, in which it was idle at first.
    assert first.activity is not None
    assert (first.node, first.activity.sm_milli) == ("pretend1", 600)
    assert 35 < (first.temperature_c or 0) <= 71
    assert none.devices == ()


def test_a_prometheus_that_is_gone_is_said_to_be() -> None:
    gone = reader(f"http://127.0.0.1:{free_port()}")

    gone.ask_once()

    with pytest.raises(BackendDownError, match="told nothing"):
        gone.samples(NOW)
