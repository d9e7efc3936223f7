"""For every alert: series with which it fires, and others with which it just does not.

Values are written as promtool writes them, every 15 seconds from 0 on.
"""

from dataclasses import dataclass, field

GPU = 'UUID="GPU-1",gpu="0",Hostname="n1",instance="n1",job="muster"'
OTHERS = 'UUID="GPU-1",gpu="0",Hostname="n1",instance="n1",job="dcgm"'
POOL = 'cluster="here",pool="a"'

Series = dict[str, str]


@dataclass(frozen=True, kw_only=True)
class Case:
    """fires_at: in minutes. with_it: other alerts that the same series mean."""

    alert: str
    fires: Series
    quiet: Series
    at: float
    with_it: tuple[str, ...] = field(default=())


def gpu(name: str, values: str, more: str = "") -> Series:
    return {f"{name}{{{GPU}{',' if more else ''}{more}}}": values}


def both(*series: Series) -> Series:
    return {name: values for each in series for name, values in each.items()}


def pool_gpus(values: str = "8x400", state: str = "held") -> Series:
    return {f'muster_pool_gpus{{{POOL},state="{state}"}}': values}


HELD = {'muster_device_job_info{UUID="GPU-1",Hostname="n1",job="7",user="ada"}': "1x400"}


def throttled(devices: int, step: str) -> Series:
    return {
        f'muster_gpu_throttled_seconds_total{{{POOL},UUID="GPU-{n}",gpu="{n}",Hostname="n1",'
        f'instance="n1",reason="hw_thermal"}}': f"0+{step}x80"
        for n in range(devices)
    }


def buckets(name: str, labels: str, fast: int, slow: int) -> Series:
    """So many more each time, up to 60 and above 86,400."""
    comma = "," if labels else ""
    counts = {"60": fast, "86400": fast + slow, "+Inf": fast + slow}
    return {
        f'{name}_bucket{{{labels}{comma}le="{bound}"}}': f"0+{count}x400"
        for bound, count in counts.items()
    }


def ended(failed: int, completed: int, reason: str = "exited") -> Series:
    """All at once, after 5 minutes."""
    return {
        'muster_jobs_ended_total{queue="acme",state="failed",reason="' + reason + '"}': (
            f"0x19 {failed}x100"
        ),
        'muster_jobs_ended_total{queue="acme",state="completed",reason="exited"}': (
            f"0x19 {completed}x100"
        ),
    }


CASES: tuple[Case, ...] = (
    Case(
        alert="GPUTemperatureTooHigh",
        fires=gpu("dcgm_temperature_gpu", "70x3 90x20"),
        quiet=gpu("dcgm_temperature_gpu", "70x3 90x6 85x1 90x10"),
        at=3,
    ),
    Case(
        alert="GpuMemoryTemperatureTooHigh",
        fires=gpu("DCGM_FI_DEV_MEMORY_TEMP", "96x20"),
        quiet=gpu("DCGM_FI_DEV_MEMORY_TEMP", "95x20"),
        at=2,
    ),
    Case(
        alert="GpuHeatMarginThin",
        fires=gpu("muster_gpu_temperature_margin_celsius", "2x40"),
        quiet=gpu("muster_gpu_temperature_margin_celsius", "3x40"),
        at=5,
    ),
    Case(
        alert="GpuThermalThrottle",
        fires=throttled(1, "1.5"),
        quiet=throttled(1, "0.7"),
        at=10,
    ),
    Case(
        alert="GpuThermalThrottle",
        fires=gpu("DCGM_FI_DEV_THERMAL_VIOLATION", "0+1500000000x80"),
        quiet=gpu("DCGM_FI_DEV_THERMAL_VIOLATION", "0+700000000x80"),
        at=10,
    ),
    Case(
        alert="CoolingFailureSuspected",
        fires=both(throttled(3, "1.5"), pool_gpus("8x80")),
        quiet=both(throttled(3, "1.5"), pool_gpus("12x80")),
        at=10,
        with_it=("GpuThermalThrottle",),
    ),
    Case(
        alert="GpuStuckInLowPowerState",
        fires=both(gpu("DCGM_FI_DEV_PSTATE", "8x80"), gpu("DCGM_FI_DEV_GPU_UTIL", "90x80"), HELD),
        quiet=both(gpu("DCGM_FI_DEV_PSTATE", "8x80"), gpu("DCGM_FI_DEV_GPU_UTIL", "20x80"), HELD),
        at=10,
    ),
    Case(
        alert="GpuPowerBrake",
        fires=gpu("muster_gpu_throttled_seconds_total", "0+1x40", 'reason="hw_power_brake"'),
        quiet=gpu("muster_gpu_throttled_seconds_total", "9x40", 'reason="hw_power_brake"'),
        at=5,
    ),
    Case(
        alert="GpuPowerOverLimit",
        fires=both(
            gpu("DCGM_FI_DEV_POWER_USAGE", "740x40"),
            gpu("DCGM_FI_DEV_ENFORCED_POWER_LIMIT", "700x40"),
            HELD,
        ),
        quiet=both(
            gpu("DCGM_FI_DEV_POWER_USAGE", "735x40"),
            gpu("DCGM_FI_DEV_ENFORCED_POWER_LIMIT", "700x40"),
            HELD,
        ),
        at=2,
    ),
    Case(
        alert="GpuHotWhileUnheld",
        fires=both(
            gpu("DCGM_FI_DEV_POWER_USAGE", "300x40"),
            gpu("DCGM_FI_DEV_ENFORCED_POWER_LIMIT", "700x40"),
            pool_gpus("8x40"),
        ),
        quiet=both(
            gpu("DCGM_FI_DEV_POWER_USAGE", "300x40"),
            gpu("DCGM_FI_DEV_ENFORCED_POWER_LIMIT", "700x40"),
            pool_gpus("8x40"),
            HELD,
        ),
        at=5,
    ),
    Case(
        alert="GpuBroken",
        fires=gpu("muster_gpu_health", "1x10", 'state="broken"'),
        quiet=gpu("muster_gpu_health", "1x10", 'state="suspect"'),
        at=0,
    ),
    Case(
        alert="GpuXidFatal",
        fires=gpu("muster_gpu_xids_total", "0x8 1x8", 'verdict="reset"'),
        quiet=both(
            gpu("muster_gpu_xids_total", "1x16", 'verdict="reset"'),
            gpu("muster_gpu_xids_total", "0x8 1x8", 'verdict="app"'),
        ),
        at=3,
    ),
    Case(
        alert="GpuXidFatalDcgm",
        fires={f'DCGM_EXP_XID_ERRORS_COUNT{{{OTHERS},xid="79"}}': "1x10"},
        quiet={f'DCGM_EXP_XID_ERRORS_COUNT{{{OTHERS},xid="31"}}': "1x10"},
        at=0,
    ),
    Case(
        alert="GpuEccUncorrected",
        fires=gpu("DCGM_FI_DEV_ECC_DBE_VOL_TOTAL", "0x8 1x8"),
        quiet=gpu("DCGM_FI_DEV_ECC_DBE_VOL_TOTAL", "1x16"),
        at=3,
    ),
    Case(
        alert="GpuEccCorrectedRising",
        fires=gpu("DCGM_FI_DEV_ECC_SBE_VOL_TOTAL", "0x40 120x40"),
        quiet=gpu("DCGM_FI_DEV_ECC_SBE_VOL_TOTAL", "0x40 90x40"),
        at=15,
    ),
    Case(
        alert="GpuRowRemapFailed",
        fires=gpu("DCGM_FI_DEV_ROW_REMAP_FAILURE", "1x4"),
        quiet=gpu("DCGM_FI_DEV_ROW_REMAP_FAILURE", "0x4"),
        at=0,
    ),
    Case(
        alert="GpuRowRemapPending",
        fires=gpu("DCGM_FI_DEV_ROW_REMAP_PENDING", "1x80"),
        quiet=gpu("DCGM_FI_DEV_ROW_REMAP_PENDING", "0x4 1x80"),
        at=15,
    ),
    Case(
        alert="GpuNvlinkErrors",
        fires=gpu("DCGM_FI_DEV_NVLINK_REPLAY_ERROR_COUNT_TOTAL", "0x8 2x8"),
        quiet=gpu("DCGM_FI_DEV_NVLINK_CRC_FLIT_ERROR_COUNT_TOTAL", "0+1400x16"),
        at=3,
    ),
    Case(
        alert="GpuPcieReplays",
        # Generation 5 with 16 lanes: 30.72 a minute.
        fires=both(
            gpu("DCGM_FI_DEV_PCIE_REPLAY_COUNTER", "0+8x90"),
            gpu("DCGM_FI_DEV_PCIE_LINK_GEN", "5x90"),
            gpu("DCGM_FI_DEV_PCIE_LINK_WIDTH", "16x90"),
        ),
        quiet=both(
            gpu("DCGM_FI_DEV_PCIE_REPLAY_COUNTER", "0+7.6x90"),
            gpu("DCGM_FI_DEV_PCIE_LINK_GEN", "5x90"),
            gpu("DCGM_FI_DEV_PCIE_LINK_WIDTH", "16x90"),
        ),
        at=22,
    ),
    Case(
        alert="GpuPcieLinkNarrow",
        fires=both(
            gpu("DCGM_FI_DEV_PCIE_LINK_WIDTH", "8x80"),
            gpu("DCGM_FI_DEV_PCIE_MAX_LINK_WIDTH", "16x80"),
        ),
        # An idle link lowers its generation.
        quiet=both(
            gpu("DCGM_FI_DEV_PCIE_LINK_GEN", "1x80"),
            gpu("DCGM_FI_DEV_PCIE_MAX_LINK_GEN", "5x80"),
            gpu("DCGM_FI_DEV_GPU_UTIL", "5x80"),
        ),
        at=15,
    ),
    Case(
        alert="GpuPcieLinkNarrow",
        fires=both(
            gpu("DCGM_FI_DEV_PCIE_LINK_GEN", "3x80"),
            gpu("DCGM_FI_DEV_PCIE_MAX_LINK_GEN", "5x80"),
            gpu("DCGM_FI_DEV_GPU_UTIL", "90x80"),
        ),
        quiet=both(
            gpu("DCGM_FI_DEV_PCIE_LINK_GEN", "5x80"),
            gpu("DCGM_FI_DEV_PCIE_MAX_LINK_GEN", "5x80"),
            gpu("DCGM_FI_DEV_GPU_UTIL", "90x80"),
        ),
        at=15,
    ),
    Case(
        alert="NodeGone",
        fires={'muster_node_trouble{cluster="here",node="n1",kind="gone"}': "1x20"},
        quiet={'muster_node_trouble{cluster="here",node="n1",kind="gone"}': "1x6 _ stale _ 1x4"},
        at=2.5,
    ),
    Case(
        alert="NodePressure",
        fires={'muster_node_pressure_ratio{node="n1",kind="io"}': "0.3x80"},
        quiet={'muster_node_pressure_ratio{node="n1",kind="io"}': "0.25x80"},
        at=15,
    ),
    Case(
        alert="NodeDiskFilling",
        fires={
            'muster_node_disk_free_bytes{node="n1",kind="state"}': "9e9x80",
            'muster_node_disk_bytes{node="n1",kind="state"}': "1e11x80",
        },
        quiet={
            'muster_node_disk_free_bytes{node="n1",kind="state"}': "1e10x80",
            'muster_node_disk_bytes{node="n1",kind="state"}': "1e11x80",
        },
        at=15,
    ),
    Case(
        alert="JobHoldsIdleGpus",
        fires={'muster_job_finding{job="7",queue="acme",user="ada",cause="idle"}': "2.5x130"},
        quiet={'muster_job_finding{job="7",queue="acme",user="ada",cause="idle"}': "2.5x110 0x20"},
        at=30,
    ),
    Case(
        alert="JobHangs",
        fires={'muster_job_finding{job="7",queue="acme",user="ada",cause="hang"}': "20x40"},
        quiet={'muster_job_finding{job="7",queue="acme",user="ada",cause="host"}': "20x40"},
        at=5,
    ),
    Case(
        alert="QueueWastesMoney",
        # 0.25 in 15 seconds are 60 an hour; 0.2 are 48.
        fires={'muster_gpu_cost_total{pool="a",queue="acme",use="held_idle"}': "0+0.25x600"},
        quiet={'muster_gpu_cost_total{pool="a",queue="acme",use="held_idle"}': "0+0.2x600"},
        at=125,
    ),
    Case(alert="JobFailuresHigh", fires=ended(5, 7), quiet=ended(3, 9), at=10),
    Case(alert="JobFailuresHigh", fires=ended(8, 4), quiet=ended(4, 2), at=10),
    Case(
        alert="JobsRunOutOfMemory",
        fires=ended(3, 30, "out_of_memory"),
        quiet=ended(2, 30, "out_of_memory"),
        at=15,
    ),
    Case(
        alert="JobsLateAgainstExpected",
        fires={'muster_jobs_late{queue="acme"}': "1x80"},
        quiet={'muster_jobs_late{queue="acme"}': "0x80"},
        at=15,
    ),
    Case(
        alert="JobStartSlow",
        fires=buckets("muster_job_starting_seconds", 'pool="a"', 5, 5),
        quiet=buckets("muster_job_starting_seconds", 'pool="a"', 10, 0),
        at=16,
    ),
    Case(
        alert="GpusFreeWhileJobsWait",
        fires=both(
            {f"muster_pool_fillable_gpus{{{POOL}}}": "2x60"}, pool_gpus("2x60", state="free")
        ),
        quiet=both(
            {f"muster_pool_fillable_gpus{{{POOL}}}": "2x60"}, pool_gpus("0x60", state="free")
        ),
        at=10,
    ),
    Case(
        alert="QueueWaitLong",
        fires={'muster_queue_oldest_wait_seconds{queue="acme"}': "86400+15x130"},
        quiet={'muster_queue_oldest_wait_seconds{queue="acme"}': "84000+15x130"},
        at=31,
    ),
    Case(
        alert="QueueWaitLong",
        fires=buckets("muster_job_wait_seconds", 'queue="acme"', 5, 5),
        quiet=buckets("muster_job_wait_seconds", 'queue="acme"', 10, 0),
        at=31,
    ),
    Case(
        alert="QueueBelowGuarantee",
        fires={
            'muster_queue_used_gpus{queue="acme"}': "4x130",
            'muster_queue_guaranteed_gpus{queue="acme"}': "8x130",
            'muster_queue_ready_gpus{queue="acme"}': "2x130",
        },
        quiet={
            'muster_queue_used_gpus{queue="acme"}': "4x130",
            'muster_queue_guaranteed_gpus{queue="acme"}': "8x130",
            'muster_queue_ready_gpus{queue="acme"}': "0x130",
        },
        at=30,
    ),
    Case(
        alert="OneUserHoldsMost",
        fires={
            'muster_queue_top_user_ratio{queue="acme"}': "0.9x250",
            'muster_queue_waiting_users{queue="acme"}': "2x250",
        },
        quiet={
            'muster_queue_top_user_ratio{queue="acme"}': "0.9x250",
            'muster_queue_waiting_users{queue="acme"}': "1x250",
        },
        at=60,
    ),
    Case(
        alert="PreemptionStorm",
        fires=both(
            {'muster_job_preemptions_total{queue="acme",reason="priority"}': "0+1x40"},
            {'muster_lost_gpu_seconds_total{queue="acme",reason="priority"}': "0+300x40"},
            pool_gpus("8x40"),
        ),
        quiet=both(
            {'muster_job_preemptions_total{queue="acme",reason="priority"}': "0+1x40"},
            {'muster_lost_gpu_seconds_total{queue="acme",reason="priority"}': "0+10x40"},
            pool_gpus("8x40"),
        ),
        at=10,
    ),
    Case(
        alert="FleetUseLow",
        fires=both(
            {f'muster_pool_gpu_seconds_total{{{POOL},use="working"}}': "0+45x300"},
            {f'muster_pool_gpu_seconds_total{{{POOL},use="held_idle"}}': "0+75x300"},
            {'muster_jobs{queue="acme",state="pending"}': "3x300"},
        ),
        quiet=both(
            {f'muster_pool_gpu_seconds_total{{{POOL},use="working"}}': "0+50x300"},
            {f'muster_pool_gpu_seconds_total{{{POOL},use="held_idle"}}': "0+70x300"},
            {'muster_jobs{queue="acme",state="pending"}': "3x300"},
        ),
        at=65,
    ),
    Case(
        alert="PoolFragmented",
        fires=both({f"muster_pool_stranded_gpus{{{POOL}}}": "1x250"}, pool_gpus("8x250")),
        quiet=both({f"muster_pool_stranded_gpus{{{POOL}}}": "1x250"}, pool_gpus("10x250")),
        at=60,
    ),
    Case(
        alert="MusterDown",
        fires={'up{job="muster",instance="m1"}': "0x20"},
        quiet={'up{job="muster",instance="m1"}': "0x7 1x20"},
        at=2,
    ),
    Case(
        alert="MusterHasNoLeader",
        fires={'muster_leads{instance="m1"}': "0x20", 'muster_leads{instance="m2"}': "0x20"},
        quiet={'muster_leads{instance="m1"}': "0x20", 'muster_leads{instance="m2"}': "1x20"},
        at=1,
    ),
    Case(
        alert="BackendUnreachable",
        fires={'muster_backend_up{cluster="slurm"}': "0x20"},
        quiet={'muster_backend_up{cluster="slurm"}': "0x7 1x20"},
        at=2,
    ),
    Case(
        alert="PlansRefused",
        fires={'muster_plans_total{outcome="refused"}': "0x4 1x4"},
        quiet={'muster_plans_total{outcome="stale"}': "0x4 1x4"},
        at=2,
    ),
    Case(
        alert="StoreTrouble",
        fires={'muster_store_errors_total{kind="full"}': "0x4 1x4"},
        quiet={'muster_store_errors_total{kind="full"}': "1x8"},
        at=2,
    ),
    Case(
        alert="StoreTrouble",
        fires={"muster_store_free_bytes": "9e8x4"},
        quiet={"muster_store_free_bytes": "1e9x4"},
        at=0,
    ),
    Case(
        alert="PlanSlow",
        fires=buckets("muster_plan_seconds", "", 9, 1),
        quiet=buckets("muster_plan_seconds", "", 1000, 0)
        | {'muster_plan_seconds_bucket{le="1"}': "0+999x400"},
        at=16,
    ),
    Case(
        alert="DoorErrors",
        fires={
            'muster_door_requests_total{door="rest",operation="jobs",code="500"}': "0+1x80",
            'muster_door_requests_total{door="rest",operation="jobs",code="200"}': "0+15x80",
        },
        quiet={
            'muster_door_requests_total{door="rest",operation="jobs",code="500"}': "0+1x80",
            'muster_door_requests_total{door="rest",operation="jobs",code="200"}': "0+20x80",
        },
        at=12,
    ),
    Case(
        alert="TelemetryStale",
        fires={'muster_backend_seen_timestamp_seconds{cluster="here"}': "0x40"},
        quiet={'muster_backend_seen_timestamp_seconds{cluster="here"}': "0x30 450x10"},
        at=8,
    ),
    Case(
        alert="TelemetryStale",
        fires={
            'muster_backend_seen_timestamp_seconds{cluster="here"}': "0x40",
            'muster_backend_up{cluster="here"}': "1x40",
        },
        quiet={
            'muster_backend_seen_timestamp_seconds{cluster="here"}': "0x40",
            'muster_backend_up{cluster="here"}': "0x40",
        },
        at=8,
    ),
    Case(
        alert="NoticesNotSent",
        fires={'muster_notices_total{receiver="ops",outcome="failed"}': "0x4 1x4"},
        quiet={'muster_notices_total{receiver="ops",outcome="sent"}': "0x4 1x4"},
        at=2,
    ),
    Case(
        alert="TelemetryLeftOut",
        fires={'muster_telemetry_left_out_total{what="jobs"}': "0x4 10x4"},
        quiet={'muster_telemetry_left_out_total{what="jobs"}': "10x8"},
        at=2,
    ),
)
