"""Every metric that Muster exports: its name, its type, its unit and what it says (pure).

The table is the only place that knows them: families are made from its rows, and the page of the
reference is made from it. To add a metric, write its row, and give its points in the source that
knows them.

What a GPU does is named in the words of NVIDIA's dcgm-exporter, so that dashboards and rules which
people have go on working; the rest is `muster_*`.
"""

from collections.abc import Iterable

from muster.model.value import Value
from muster.telemetry.family import Family, FamilyKind, Point


class Metric(Value):
    """One row. labels: those besides `DEVICE_LABELS`, which all rows of a device have."""

    name: str
    kind: FamilyKind
    help: str
    unit: str = ""
    labels: tuple[str, ...] = ()

    def family(self, points: Iterable[Point]) -> Family:
        """These points under this name."""
        return Family(
            name=self.name, kind=self.kind, help=self.help, unit=self.unit, points=tuple(points)
        )


_C, _G, _H = FamilyKind.COUNTER, FamilyKind.GAUGE, FamilyKind.HISTOGRAM

DEVICE_LABELS = (
    "gpu UUID pci_bus_id device modelName GPU_I_PROFILE GPU_I_ID Hostname hostname"
    " DCGM_FI_DRIVER_VERSION pretend namespace pod container hpc_job"
).split()
"""On every series of a device, where there is something to say: MIG, pods, jobs, pretend GPUs."""


def _row(name: str, kind: FamilyKind, help: str, unit: str = "", labels: str = "") -> Metric:
    return Metric(name=name, kind=kind, help=help, unit=unit, labels=tuple(labels.split()))


def _dcgm(name: str, kind: FamilyKind, help: str, unit: str = "", labels: str = "") -> Metric:
    return _row(f"DCGM_FI_{name}", kind, help, unit, labels)


SM_CLOCK = _dcgm("DEV_SM_CLOCK", _G, "Clock of the SMs, in MHz.")
MEM_CLOCK = _dcgm("DEV_MEM_CLOCK", _G, "Clock of the memory, in MHz.")
GPU_TEMP = _dcgm("DEV_GPU_TEMP", _G, "Temperature of the GPU, in degrees Celsius.")
MEMORY_TEMP = _dcgm("DEV_MEMORY_TEMP", _G, "Temperature of its memory, in degrees Celsius.")
POWER_USAGE = _dcgm("DEV_POWER_USAGE", _G, "Power that it draws, in watts.")
ENERGY = _dcgm(
    "DEV_TOTAL_ENERGY_CONSUMPTION", _C, "Energy since the driver was loaded, in millijoules."
)
PCIE_REPLAYS = _dcgm("DEV_PCIE_REPLAY_COUNTER", _C, "PCIe packets that were sent again.")
GPU_UTIL = _dcgm("DEV_GPU_UTIL", _G, "Part of the time in which any kernel ran, in percent.")
MEM_COPY_UTIL = _dcgm(
    "DEV_MEM_COPY_UTIL", _G, "Part of the time in which memory was read or written, in percent."
)
ENC_UTIL = _dcgm("DEV_ENC_UTIL", _G, "Use of the video encoder, in percent.")
DEC_UTIL = _dcgm("DEV_DEC_UTIL", _G, "Use of the video decoder, in percent.")
FB_USED = _dcgm("DEV_FB_USED", _G, "Memory in use, in MiB.")
FB_FREE = _dcgm("DEV_FB_FREE", _G, "Memory that is free, in MiB.")
FB_RESERVED = _dcgm("DEV_FB_RESERVED", _G, "Memory that the driver keeps for itself, in MiB.")
XID_ERRORS = _dcgm(
    "DEV_XID_ERRORS", _G, "Number of the last Xid; it stays.", labels="err_code err_msg"
)
NVLINK_TOTAL = _dcgm(
    "DEV_NVLINK_BANDWIDTH_TOTAL", _C, "What went over all NVLinks, both ways, in KiB."
)
REMAPPED_BAD = _dcgm(
    "DEV_UNCORRECTABLE_REMAPPED_ROWS", _C, "Rows replaced after errors that were not corrected."
)
REMAPPED_GOOD = _dcgm(
    "DEV_CORRECTABLE_REMAPPED_ROWS", _C, "Rows replaced after errors that were corrected."
)
REMAP_FAILURE = _dcgm("DEV_ROW_REMAP_FAILURE", _G, "Could a row not be replaced?")
REMAP_PENDING = _dcgm("DEV_ROW_REMAP_PENDING", _G, "Is a row replaced at the next reset?")
VGPU_LICENSE = _dcgm("DEV_VGPU_LICENSE_STATUS", _G, "License of virtual GPUs; always 0.")
GR_ENGINE = _dcgm("PROF_GR_ENGINE_ACTIVE", _G, "Part of the time in which it computed, 0 to 1.")
SM_ACTIVE = _dcgm("PROF_SM_ACTIVE", _G, "Part of the SMs that had work, 0 to 1.")
SM_OCCUPANCY = _dcgm("PROF_SM_OCCUPANCY", _G, "Part of the warps that were there, 0 to 1.")
TENSOR = _dcgm("PROF_PIPE_TENSOR_ACTIVE", _G, "Use of the tensor cores, 0 to 1.")
DRAM = _dcgm("PROF_DRAM_ACTIVE", _G, "Use of the memory's bandwidth, 0 to 1.")
FP64 = _dcgm("PROF_PIPE_FP64_ACTIVE", _G, "Use of the FP64 pipes, 0 to 1.")
FP32 = _dcgm("PROF_PIPE_FP32_ACTIVE", _G, "Use of the FP32 pipes, 0 to 1.")
FP16 = _dcgm("PROF_PIPE_FP16_ACTIVE", _G, "Use of the FP16 pipes, 0 to 1.")
PCIE_TX = _dcgm("PROF_PCIE_TX_BYTES", _G, "Sent over PCIe, in bytes per second.")
PCIE_RX = _dcgm("PROF_PCIE_RX_BYTES", _G, "Received over PCIe, in bytes per second.")
NVLINK_TX = _dcgm("PROF_NVLINK_TX_BYTES", _G, "Sent over NVLink, in bytes per second.")
NVLINK_RX = _dcgm("PROF_NVLINK_RX_BYTES", _G, "Received over NVLink, in bytes per second.")
ECC_SBE_VOL = _dcgm(
    "DEV_ECC_SBE_VOL_TOTAL", _C, "Corrected memory errors since the driver was loaded."
)
ECC_DBE_VOL = _dcgm(
    "DEV_ECC_DBE_VOL_TOTAL", _C, "Memory errors that were not corrected, since then."
)
ECC_SBE_AGG = _dcgm("DEV_ECC_SBE_AGG_TOTAL", _C, "Corrected memory errors ever.")
ECC_DBE_AGG = _dcgm("DEV_ECC_DBE_AGG_TOTAL", _C, "Memory errors ever that were not corrected.")
POWER_VIOLATION = _dcgm("DEV_POWER_VIOLATION", _C, "Time slowed by the power limit, in ns.")
THERMAL_VIOLATION = _dcgm("DEV_THERMAL_VIOLATION", _C, "Time slowed by heat, in ns.")
BOARD_VIOLATION = _dcgm("DEV_BOARD_LIMIT_VIOLATION", _C, "Time slowed by the board, in ns.")
LOW_UTIL_VIOLATION = _dcgm("DEV_LOW_UTIL_VIOLATION", _C, "Time slowed for want of work, in ns.")
RELIABILITY_VIOLATION = _dcgm(
    "DEV_RELIABILITY_VIOLATION", _C, "Time slowed to stay reliable, in ns."
)
SYNC_BOOST_VIOLATION = _dcgm("DEV_SYNC_BOOST_VIOLATION", _C, "Time slowed by sync boost, in ns.")
NVLINK_CRC_FLIT = _dcgm(
    "DEV_NVLINK_CRC_FLIT_ERROR_COUNT_TOTAL", _C, "Damaged flits on all NVLinks."
)
NVLINK_CRC_DATA = _dcgm("DEV_NVLINK_CRC_DATA_ERROR_COUNT_TOTAL", _C, "Damaged data on all NVLinks.")
NVLINK_REPLAY = _dcgm("DEV_NVLINK_REPLAY_ERROR_COUNT_TOTAL", _C, "Sent again, on all NVLinks.")
NVLINK_RECOVERY = _dcgm(
    "DEV_NVLINK_RECOVERY_ERROR_COUNT_TOTAL", _C, "Times that an NVLink was set up again."
)
PSTATE = _dcgm("DEV_PSTATE", _G, "Performance state: 0 is the fastest, 15 the slowest.")
EVENT_REASONS = _dcgm("DEV_CLOCKS_EVENT_REASONS", _G, "Why clocks are low, as NVML's mask.")
POWER_LIMIT = _dcgm("DEV_ENFORCED_POWER_LIMIT", _G, "Power that it may draw, in watts.")
POWER_LIMIT_SET = _dcgm("DEV_POWER_MGMT_LIMIT", _G, "Power limit that was set, in watts.")
SLOWDOWN_TEMP = _dcgm("DEV_SLOWDOWN_TEMP", _G, "It slows down from so many degrees Celsius.")
SHUTDOWN_TEMP = _dcgm("DEV_SHUTDOWN_TEMP", _G, "It shuts down from so many degrees Celsius.")
PCIE_GEN = _dcgm("DEV_PCIE_LINK_GEN", _G, "Generation of its PCIe link now.")
PCIE_WIDTH = _dcgm("DEV_PCIE_LINK_WIDTH", _G, "Lanes of its PCIe link now.")
PCIE_MAX_GEN = _dcgm("DEV_PCIE_MAX_LINK_GEN", _G, "Generation that its PCIe link could have.")
PCIE_MAX_WIDTH = _dcgm("DEV_PCIE_MAX_LINK_WIDTH", _G, "Lanes that its PCIe link could have.")
CLOCK_EVENTS = _row(
    "DCGM_EXP_CLOCK_EVENTS_COUNT",
    _G,
    "How often clocks were seen low for this reason in the last 5 minutes.",
    labels="clock_event",
)
HEALTH_STATUS = _row(
    "DCGM_EXP_GPU_HEALTH_STATUS",
    _G,
    "How far the GPU is trusted: 0 well, 10 suspect or on probation, 20 broken or retired.",
    labels="health_watch",
)
XIDS_COUNT = _row(
    "DCGM_EXP_XID_ERRORS_COUNT", _G, "How often this Xid came in the last 5 minutes.", labels="xid"
)

XIDS = _row(
    "muster_gpu_xids_total",
    _C,
    "Xids of the GPU since Muster began to run, by what we make of them.",
    labels="gpu UUID Hostname cluster pool verdict",
)
TEMPERATURE = _row("dcgm_temperature_gpu", _G, "Temperature of the GPU, in degrees Celsius.")
MEMORY_TEMPERATURE = _row("dcgm_memory_temp", _G, "Temperature of its memory, in degrees Celsius.")
POWER = _row("dcgm_gpu_power_usage", _G, "Power that it draws, in watts.")
ECC = _row(
    "dcgm_ecc_errors", _C, "Memory errors since the driver was loaded, by type.", labels="type"
)

MARGIN = _row(
    "muster_gpu_temperature_margin_celsius", _G, "Degrees left before it slows down.", "celsius"
)
THROTTLED = _row(
    "muster_gpu_throttled_seconds_total",
    _C,
    "Time in which clocks were low, by reason.",
    "seconds",
    "cluster pool reason",
)
DEVICE_JOB = _row(
    "muster_device_job_info",
    _G,
    "Which job has which GPU, or which share of it: 1 while it does.",
    labels="UUID GPU_I_ID Hostname job attempt user queue class share",
)
NODE_PRESSURE = _row(
    "muster_node_pressure_ratio",
    _G,
    "Part of the last ten seconds in which somebody waited for cpu, memory or io.",
    "ratio",
    "node kind",
)
NODE_DISK_FREE = _row(
    "muster_node_disk_free_bytes", _G, "Room left on this disk.", "bytes", "node kind"
)
NODE_DISK = _row("muster_node_disk_bytes", _G, "Size of this disk.", "bytes", "node kind")
GPU_HEALTH = _row(
    "muster_gpu_health",
    _G,
    "1 for a GPU that is not well, with what it is.",
    labels="gpu UUID Hostname cluster pool pretend state",
)
NODE_TROUBLE = _row(
    "muster_node_trouble", _G, "1 while this is wrong with the node.", labels="cluster node kind"
)
NODE_INFO = _row(
    "muster_node_info",
    _G,
    "Where a node is whose GPUs are measured: 1.",
    labels="cluster pool Hostname rack",
)

JOBS = _row("muster_jobs", _G, "Jobs that are not over, by state.", labels="queue state")
JOBS_WAITING = _row(
    "muster_jobs_waiting", _G, "Jobs that wait, by why they do.", labels="queue reason"
)
SUBMITTED = _row(
    "muster_jobs_submitted_total", _C, "Jobs that were submitted, by door.", labels="queue door"
)
ENDED = _row(
    "muster_jobs_ended_total", _C, "Jobs that are over, by how.", labels="queue state reason"
)
PREEMPTIONS = _row(
    "muster_job_preemptions_total", _C, "Attempts that had to make room.", labels="queue reason"
)
REQUEUES = _row(
    "muster_job_requeues_total",
    _C,
    "Attempts after which the job waits again, by how they ended.",
    labels="queue reason",
)
LOST = _row(
    "muster_lost_gpu_seconds_total",
    _C,
    "GPU time that must be computed again, by how its attempt ended.",
    "seconds",
    "queue reason",
)
WAIT_SECONDS = _row(
    "muster_job_wait_seconds", _H, "From submission to the first start.", "seconds", "queue"
)
STARTING_SECONDS = _row(
    "muster_job_starting_seconds", _H, "From placement to start.", "seconds", "pool"
)
RUN_SECONDS = _row("muster_job_run_seconds", _H, "From start to end.", "seconds", "queue")
COMPLETION_SECONDS = _row(
    "muster_job_completion_seconds", _H, "From submission to end.", "seconds", "queue"
)
JOBS_LATE = _row(
    "muster_jobs_late",
    _G,
    "Jobs that have run twice as long as expected, or are near their limit with no checkpoint.",
    labels="queue",
)
USED_GPUS = _row("muster_queue_used_gpus", _G, "GPUs that its jobs hold.", labels="queue")
GUARANTEED_GPUS = _row("muster_queue_guaranteed_gpus", _G, "GPUs that are its own.", labels="queue")
LIMIT_GPUS = _row("muster_queue_limit_gpus", _G, "GPUs that it may hold at most.", labels="queue")
BORROWED_GPUS = _row(
    "muster_queue_borrowed_gpus", _G, "GPUs that it holds above its own.", labels="queue"
)
READY_GPUS = _row(
    "muster_queue_ready_gpus",
    _G,
    "GPUs that its jobs want which lack nothing but room.",
    labels="queue",
)
OLDEST_WAIT = _row(
    "muster_queue_oldest_wait_seconds", _G, "How long its oldest job waits.", "seconds", "queue"
)
TOP_USER = _row(
    "muster_queue_top_user_ratio",
    _G,
    "Part of its GPUs that the user holds who has most.",
    "ratio",
    "queue",
)
WAITING_USERS = _row(
    "muster_queue_waiting_users", _G, "Users whose jobs wait in it.", labels="queue"
)
POOL_GPUS = _row(
    "muster_pool_gpus", _G, "GPUs of a pool, by state.", labels="cluster pool model state"
)
POOL_FILLABLE = _row(
    "muster_pool_fillable_gpus",
    _G,
    "Free GPUs that fit jobs which wait for nothing else; it must be 0.",
    labels="cluster pool",
)
POOL_STRANDED = _row(
    "muster_pool_stranded_gpus",
    _G,
    "Free GPUs on nodes where no task fits of those that wait for room.",
    labels="cluster pool",
)
POOL_GPU_SECONDS = _row(
    "muster_pool_gpu_seconds_total",
    _C,
    "What became of every second of its GPUs; together they are all there were.",
    "seconds",
    "cluster pool use",
)
QUEUE_GPU_SECONDS = _row(
    "muster_queue_gpu_seconds_total",
    _C,
    "What its jobs did with the GPUs that they held.",
    "seconds",
    "queue pool use",
)
GPU_COST = _row(
    "muster_gpu_cost_total",
    _C,
    "What GPUs cost by the prices of their pools, by what became of them.",
    labels="currency pool queue use",
)
JOB_FINDING = _row(
    "muster_job_finding",
    _G,
    "What a cause costs a job in an hour; GPUs that it wastes, where the pool has no price.",
    labels="job queue user cause",
)

BUILD = _row("muster_build_info", _G, "1; the version is a label.", labels="version")
LEADS = _row("muster_leads", _G, "Does this process lead?")
PLAN_SECONDS = _row("muster_plan_seconds", _H, "How long plans take.", "seconds")
PLANS = _row("muster_plans_total", _C, "Plans, by what became of them.", labels="outcome")
APPEND_SECONDS = _row(
    "muster_store_append_seconds", _H, "How long the store takes to write.", "seconds"
)
STORE_ERRORS = _row("muster_store_errors_total", _C, "Writes that the store refused.")
STORE_BYTES = _row("muster_store_bytes", _G, "Size of the database.", "bytes")
STORE_FREE = _row("muster_store_free_bytes", _G, "Room left where the database is.", "bytes")
JOURNAL_WAITING = _row("muster_journal_waiting", _G, "Changes that wait to be written.")
BACKEND_UP = _row("muster_backend_up", _G, "Does the cluster answer?", labels="cluster")
BACKEND_SEEN = _row(
    "muster_backend_seen_timestamp_seconds",
    _G,
    "When samples of the cluster last came; if none did, since when it is asked for them.",
    "seconds",
    "cluster",
)
SAMPLED = _row(
    "muster_telemetry_sampled_timestamp_seconds",
    _G,
    "When everything was last looked at.",
    "seconds",
)
SAMPLE_SECONDS = _row(
    "muster_telemetry_sample_seconds", _G, "How long the last look took.", "seconds"
)
SERIES = _row("muster_telemetry_series", _G, "Series on this page.")
LEFT_OUT = _row(
    "muster_telemetry_left_out_total",
    _C,
    "What was left out because there is too much of it.",
    labels="what",
)
DOOR_REQUESTS = _row(
    "muster_door_requests_total", _C, "Requests that were answered.", labels="door operation code"
)
DOOR_SECONDS = _row(
    "muster_door_request_seconds", _H, "How long answers took.", "seconds", "door operation"
)
NOTICES = _row(
    "muster_notices_total",
    _C,
    "Messages to receivers of alerts: sent, tries that failed, and dropped in the end.",
    labels="receiver outcome",
)
LOGS_PUSHED = _row(
    "muster_logs_pushed_total",
    _C,
    "Log lines to sinks: sent, tries that failed, and dropped because there were too many.",
    labels="sink outcome",
)
METRICS_PUSHED = _row(
    "muster_metrics_pushed_total",
    _C,
    "Series to sinks: sent, tries that failed, and dropped.",
    labels="sink outcome",
)
OUTPUT_SKIPPED = _row(
    "muster_output_skipped_bytes_total",
    _C,
    "What jobs wrote faster than it could be read for sinks.",
    "bytes",
)

METRICS: tuple[Metric, ...] = tuple(
    each for each in tuple(globals().values()) if isinstance(each, Metric)
)
"""All rows, in the order of this file."""
