"""What a Prometheus with dcgm-exporter answers, as samples."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muster.model.cluster import Node
from muster.model.gpu import Device
from muster.model.samples import DeviceSample, Throttle
from muster.model.value import ClusterName, DeviceId, GpuModel, Instant, NodeId, PoolName
from muster.telemetry.readers.dcgm_queries import (
    SIGNALS,
    Fleet,
    Row,
    UnreadableAnswerError,
    all_samples,
    query,
    rows,
    samples_of,
)

NOW = Instant(1_800_000_000_000)
BY_FIELD = {signal.field: signal for signal in SIGNALS}


def node(name: str, *ids: str) -> Node:
    return Node(
        id=NodeId(name),
        cluster=ClusterName("a"),
        pool=PoolName("p"),
        cpu_milli=1,
        memory_mib=1,
        devices=tuple(
            Device(id=DeviceId(each), index=index, model=GpuModel("H100-80GB"), memory_mib=81_920)
            for index, each in enumerate(ids)
        ),
    )


FLEET = Fleet([node("n1", "GPU-1", "GPU-2"), node("n2", "n2/gpu0")])


def answer(*series: tuple[dict[str, str], str]) -> bytes:
    result = [{"metric": metric, "value": [1.5, value]} for metric, value in series]
    return json.dumps({"status": "success", "data": {"result": result}}).encode()


def told(field: str, *found: Row) -> tuple[DeviceSample, ...]:
    return samples_of({BY_FIELD[field]: found}, FLEET, NOW, 60)


def test_all_devices_are_asked_for_at_once_under_old_and_new_names() -> None:
    asked = query(BY_FIELD["sm_milli"], '{cluster="a"}', 60)

    assert asked == (
        "avg by (UUID, Hostname, hostname, gpu, GPU_I_ID, GPU_I_PROFILE, modelName) ("
        'avg_over_time(DCGM_FI_PROF_SM_ACTIVE{cluster="a"}[60s]) or '
        'avg_over_time(DCGM_FI_PROF_SM_UTIL_RATIO{cluster="a"}[60s]))'
    )


def test_units_are_ours() -> None:
    (found,) = told("power_mw", ({"UUID": "GPU-2"}, 412.5))

    assert (found.device, found.node, found.index, found.power_mw) == ("GPU-2", "n1", 1, 412_500)
    assert found.busy_milli is None


def test_of_counters_the_last_value_is_asked_for() -> None:
    asked = query(BY_FIELD["energy_mj_total"], "", 60)

    assert "max by" in asked
    assert "last_over_time(DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION[60s])" in asked


def test_what_names_slow_clocks_links_and_pipes_is_where_causes_look_for_it() -> None:
    values = {
        "fp32_milli": 0.75,
        "pcie_sent_bytes_per_s": 5e9,
        "pcie_width": 8.0,
        "thermal": 2e9,
        "throttles": 0x24,
        "uncorrected_total": 3.0,
        "energy_mj_total": 1e12,
        "performance_state": 2.0,
    }
    answers = {BY_FIELD[field]: [({"UUID": "GPU-1"}, value)] for field, value in values.items()}

    (found,) = samples_of(answers, FLEET, NOW, 60)

    assert found.activity is not None
    assert (found.activity.fp32_milli, found.activity.pcie_sent_bytes_per_s) == (750, 5 * 10**9)
    assert (found.links.pcie_width, found.memory_errors.uncorrected_total) == (8, 3)
    assert found.throttled_ns == {"thermal": 2 * 10**9}
    assert found.throttles == (Throttle.POWER_CAP, Throttle.SW_THERMAL)
    assert (found.energy_mj_total, found.performance_state) == (10**12, 2)


def test_where_the_cluster_knows_no_uuid_a_gpu_is_known_by_its_place() -> None:
    (found,) = told("busy_milli", ({"UUID": "GPU-9", "Hostname": "N2.lab.org", "gpu": "0"}, 93.0))

    assert (found.device, found.busy_milli) == ("n2/gpu0", 930)


def test_gpus_of_others_are_left_out() -> None:
    assert told("busy_milli", ({"UUID": "GPU-8", "Hostname": "elsewhere", "gpu": "0"}, 1.0)) == ()


def test_an_instance_is_told_beside_its_gpu() -> None:
    part = {"UUID": "GPU-1", "GPU_I_ID": "7", "GPU_I_PROFILE": "1g.10gb"}

    found = told("sm_milli", ({"UUID": "GPU-1"}, 0.5), (part, 1.04))

    assert [(each.instance, each.profile) for each in found] == [(None, ""), (7, "1g.10gb")]
    assert [each.activity.sm_milli for each in found if each.activity] == [500, 1_000]


@pytest.mark.parametrize("value", ["NaN", "+Inf", "9223372036854775794", "4611686018427387904"])
def test_what_says_nothing_is_left_out(value: str) -> None:
    assert rows(answer(({"UUID": "GPU-1"}, value))) == ()


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"<html>502</html>",
        b"[]",
        b"{}",
        b'{"status":"success"}',
        b'{"status":"success","data":{"result":[{}]}}',
        b'{"status":"success","data":{"result":[{"metric":{},"value":[1,"x"]}]}}',
        b'{"status":"error","error":"query timed out"}',
        b"\xff\xfe",
    ],
)
def test_an_answer_that_is_none_says_so(text: bytes) -> None:
    with pytest.raises(UnreadableAnswerError):
        rows(text)


@given(
    st.lists(
        st.tuples(
            st.dictionaries(
                st.sampled_from(["UUID", "Hostname", "gpu", "GPU_I_ID", "modelName"]), st.text()
            ),
            st.floats(),
        )
    )
)
def test_nothing_that_is_answered_breaks_it(series: list[tuple[dict[str, str], float]]) -> None:
    page = answer(*((metric, str(value)) for metric, value in series))

    found = all_samples(lambda _: page, "", FLEET, NOW, 60)

    assert {each.device for each in found} <= {"GPU-1", "GPU-2", "n2/gpu0"}
