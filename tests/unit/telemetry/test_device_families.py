"""What is known of devices, in the words of dcgm-exporter."""

from pathlib import Path

import pytest

from muster.model.samples import Activity, DeviceSample, Links, MemoryErrors, Throttle
from muster.model.value import DeviceId, Instant, NodeId, replace
from muster.telemetry.device_families import ROWS, device_families, labels_of, throttled
from muster.telemetry.family import Family, FamilyKind
from muster.telemetry.names import METRICS
from muster.telemetry.page import page

WHOLE = DeviceSample(
    device=DeviceId("GPU-1"),
    node=NodeId("n1"),
    at=Instant(1),
    index=3,
    product="NVIDIA H200",
    bus_id="00000000:3B:00.0",
    driver="570.1",
    busy_milli=935,
    memory_used_bytes=3 << 30,
    power_mw=412_500,
    temperature_c=61,
    energy_mj_total=123_456_789_012,
    throttles=(Throttle.POWER_CAP, Throttle.HW_THERMAL),
    throttled_ns={"thermal": 2_500_000_000},
    activity=Activity(sm_milli=812, pcie_sent_bytes_per_s=1_000),
    links=Links(pcie_generation=5),
    memory_errors=MemoryErrors(corrected_total=7, remap_pending=False),
)
PART = replace(WHOLE, instance=9, profile="1g.18gb", activity=Activity(sm_milli=1_040))


def told(*samples: DeviceSample) -> dict[str, Family]:
    families = device_families([(each, labels_of(each)) for each in samples])
    return {family.name: family for family in families if family.points}


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("DCGM_FI_DEV_GPU_UTIL", 93.5),
        ("DCGM_FI_DEV_FB_USED", 3_072),
        ("DCGM_FI_DEV_POWER_USAGE", 412.5),
        ("DCGM_FI_DEV_GPU_TEMP", 61),
        ("DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION", 123_456_789_012),
        ("DCGM_FI_DEV_CLOCKS_EVENT_REASONS", 0x4 | 0x40),
        ("DCGM_FI_DEV_THERMAL_VIOLATION", 2_500_000_000),
        ("DCGM_FI_PROF_SM_ACTIVE", 0.812),
        ("DCGM_FI_PROF_PCIE_TX_BYTES", 1_000),
        ("DCGM_FI_DEV_PCIE_LINK_GEN", 5),
        ("DCGM_FI_DEV_ECC_SBE_VOL_TOTAL", 7),
        ("DCGM_FI_DEV_ROW_REMAP_PENDING", 0),
        ("DCGM_FI_DEV_VGPU_LICENSE_STATUS", 0),
        ("dcgm_temperature_gpu", 61),
        ("dcgm_gpu_power_usage", 412.5),
    ],
)
def test_signals_have_dcgms_names_and_units(name: str, value: float) -> None:
    assert [point.value for point in told(WHOLE)[name].points] == [value]


def test_a_signal_that_is_not_there_is_no_series() -> None:
    assert "DCGM_FI_DEV_MEMORY_TEMP" not in told(WHOLE)
    assert "DCGM_FI_PROF_PIPE_TENSOR_ACTIVE" not in told(WHOLE)


def test_memory_errors_are_told_apart_by_type() -> None:
    (point,) = told(WHOLE)["dcgm_ecc_errors"].points

    assert (dict(point.labels)["type"], point.value) == ("corrected", 7)


def test_labels_are_those_that_dashboards_ask_for() -> None:
    assert labels_of(WHOLE) == (
        ("gpu", "3"),
        ("UUID", "GPU-1"),
        ("pci_bus_id", "00000000:3B:00.0"),
        ("device", "nvidia3"),
        ("modelName", "NVIDIA H200"),
        ("Hostname", "n1"),
        ("hostname", "n1"),
        ("DCGM_FI_DRIVER_VERSION", "570.1"),
    )
    assert ("pretend", "true") in labels_of(replace(WHOLE, pretend=True))


def test_an_instance_has_its_gpus_uuid_and_no_utilisation_of_its_own() -> None:
    found = told(PART)

    labels = dict(found["DCGM_FI_DEV_FB_USED"].points[0].labels)
    assert (labels["UUID"], labels["GPU_I_ID"], labels["GPU_I_PROFILE"]) == (
        "GPU-1",
        "9",
        "1g.18gb",
    )
    assert "DCGM_FI_DEV_GPU_UTIL" not in found


def test_an_instance_is_never_more_than_all_active() -> None:
    assert told(PART)["DCGM_FI_PROF_SM_ACTIVE"].points[0].value == 1.0


def test_lost_time_is_told_in_seconds_by_reason() -> None:
    (point,) = throttled([(WHOLE, labels_of(WHOLE))]).points

    assert (point.labels[-1], point.value) == (("reason", "thermal"), 2.5)


def test_names_are_there_once_and_counters_of_ours_end_in_total() -> None:
    names = [metric.name for metric in METRICS]

    assert len(set(names)) == len(names)
    for metric in METRICS:
        if metric.name.startswith("muster_"):
            assert metric.name.endswith("_total") == (metric.kind is FamilyKind.COUNTER)
    assert {metric.name for metric, _ in ROWS} <= set(names)


def test_the_reference_page_is_what_the_table_says() -> None:
    page_file = Path(__file__).parents[3] / "docs" / "reference" / "metrics.md"

    assert page_file.read_text(encoding="utf-8") == page(), (
        "run: python -m muster.telemetry.page > docs/reference/metrics.md"
    )
