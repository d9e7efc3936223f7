"""What is measured costs a bounded amount, however it is asked for."""

import json

import msgspec
import pytest

from hostile.people import OTHER, ROOT, SITE
from muster.app.parts import Muster
from muster.controller.queries.telemetry import PageWanted
from muster.doors.rest import of_diagnosis, of_telemetry
from muster.model.cluster import Node
from muster.model.errors import UnknownError
from muster.model.gpu import Device
from muster.model.site import TelemetryRules
from muster.model.value import (
    ClusterName,
    DeviceId,
    GpuModel,
    Instant,
    NodeId,
    PoolName,
    QueuePath,
    replace,
)
from muster.telemetry.readers.dcgm_queries import Fleet, UnreadableAnswerError, all_samples, rows


def test_who_asks_for_much_of_it_takes_turns() -> None:
    operations = (*of_telemetry.OPERATIONS, *of_diagnosis.OPERATIONS)

    assert [each.path for each in operations if not each.costly] == []


NODE = Node(
    id=NodeId("n1"),
    cluster=ClusterName("others"),
    pool=PoolName("p"),
    cpu_milli=1_000,
    memory_mib=1_024,
    devices=(Device(id=DeviceId("GPU-1"), index=0, model=GpuModel("A100"), memory_mib=40_000),),
)


def answer(**labels: str) -> bytes:
    metric = {"UUID": "GPU-1", "Hostname": "n1", "gpu": "0", **labels}
    series = [{"metric": metric, "value": [0, "4e18"]}]
    return json.dumps({"status": "success", "data": {"result": series}}).encode()


@pytest.mark.parametrize("name", ["modelName", "GPU_I_PROFILE"])
@pytest.mark.parametrize("text", ["\x1b[2J\nroot", "A" * 1_000_000, "\u202e\u2028\0"])
def test_names_that_a_prometheus_of_others_says_reach_no_terminal(name: str, text: str) -> None:
    said = answer(**{name: text})

    (sample,) = all_samples(lambda _: said, "", Fleet((NODE,)), Instant(0), 60)

    for shown in (sample.product, sample.profile):
        assert shown.isprintable()
        assert len(shown) <= 100
    assert msgspec.json.encode(sample)


@pytest.mark.parametrize(
    "said",
    [
        b"[" * 100_000,
        b'{"status":"success","data":{"result":[{"value":[0,"1"],"metric":["a"]}]}}',
        b'{"status":"success","data":{"result":[{"value":[0,"1"],"metric":"a"}]}}',
        b'{"status":"success","data":{"result":{"a":1}}}',
        b'{"status":"success","data":[]}',
        b'{"status":"success","data":{"result":[{"value":[0,"' + b"9" * 5_000 + b'e"]}]}}',
        b'{"status":' + b'{"a":' * 5_000,
        b"\xff\xfe",
    ],
    ids=range(8),
)
def test_an_answer_that_is_none_is_a_trouble_of_whoever_sent_it(said: bytes) -> None:
    with pytest.raises(UnreadableAnswerError):
        rows(said)


def test_there_are_no_pages_of_queues_that_are_not_there(fresh: Muster) -> None:
    """Else everybody here could have a page made for each name that they think of."""
    opened = replace(SITE, telemetry=TelemetryRules(metrics_open=True))
    fresh.service.apply(ROOT, lambda _: opened).result()
    telemetry = fresh.service.queries.telemetry

    for who in (OTHER, ROOT):
        with pytest.raises(UnknownError, match="no queue"):
            telemetry.page(who, PageWanted(queue=QueuePath("none"), is_open=True))
    assert telemetry.page(OTHER, PageWanted(is_open=True))
