"""What one look at a device, a job or a machine found. These values are measured, never decided.

They lie here because backends measure them and telemetry reads them, and neither may know the
other. A signal that is not there is None and never 0: a GPU without a counter is not an idle one.
Shares are in thousandths. `_total` grows from some beginning and may fall back to 0.
"""

from collections.abc import Mapping
from enum import StrEnum

from muster.model.value import DeviceId, Instant, JobId, NodeId, Value


class Throttle(StrEnum):
    """Why clocks are lower than they could be, in dcgm-exporter's words for clock events."""

    GPU_IDLE = "gpu_idle"
    CLOCKS_SETTING = "clocks_setting"
    POWER_CAP = "power_cap"
    HW_SLOWDOWN = "hw_slowdown"
    SYNC_BOOST = "sync_boost"
    SW_THERMAL = "sw_thermal"
    HW_THERMAL = "hw_thermal"
    HW_POWER_BRAKE = "hw_power_brake"
    DISPLAY_CLOCKS = "display_clocks"


class ProcessSample(Value, gc=False):
    """One process on a device, and the attempt that it belongs to.

    No job: a stray, which nobody gave the device to. sm_milli: its part of the time in which the
    device computed since the last look.
    """

    pid: int
    job: JobId | None = None
    attempt: int | None = None
    memory_bytes: int | None = None
    sm_milli: int | None = None


class Activity(Value, gc=False):
    """What the parts of a GPU did, as means since the last look: GPM, on Hopper and later."""

    graphics_milli: int | None = None
    sm_milli: int | None = None
    occupancy_milli: int | None = None
    tensor_milli: int | None = None
    dram_milli: int | None = None
    fp64_milli: int | None = None
    fp32_milli: int | None = None
    fp16_milli: int | None = None
    pcie_sent_bytes_per_s: int | None = None
    pcie_received_bytes_per_s: int | None = None
    nvlink_sent_bytes_per_s: int | None = None
    nvlink_received_bytes_per_s: int | None = None


class Links(Value, gc=False):
    """How a GPU is connected, and what went wrong there; NVLink counts are over all its links."""

    pcie_generation: int | None = None
    pcie_generation_most: int | None = None
    pcie_width: int | None = None
    pcie_width_most: int | None = None
    pcie_replays_total: int | None = None
    nvlink_bytes_total: int | None = None
    nvlink_crc_flit_total: int | None = None
    nvlink_crc_data_total: int | None = None
    nvlink_replays_total: int | None = None
    nvlink_recoveries_total: int | None = None


class MemoryErrors(Value, gc=False):
    """Errors of a GPU's memory: since the driver was loaded, ever, and the rows replaced."""

    corrected_total: int | None = None
    uncorrected_total: int | None = None
    corrected_ever: int | None = None
    uncorrected_ever: int | None = None
    remapped_corrected: int | None = None
    remapped_uncorrected: int | None = None
    remap_pending: bool | None = None
    remap_failed: bool | None = None


class DeviceSample(Value):
    """One look at a GPU, or at one MIG instance of it.

    device is the whole GPU also for an instance, which `instance` (NVML's number of it) and
    `profile` name; start: the memory slice at which it begins.
    interval_ms: how long means and shares reach back. throttles: why clocks are
    low at this moment; throttled_ns: for how long they were, by what. pretend: nothing was
    measured; a script said so.
    """

    device: DeviceId
    node: NodeId
    at: Instant
    index: int
    product: str = ""
    bus_id: str = ""
    driver: str = ""
    instance: int | None = None
    profile: str = ""
    start: int | None = None
    pretend: bool = False
    interval_ms: int | None = None
    busy_milli: int | None = None
    copy_milli: int | None = None
    encoder_milli: int | None = None
    decoder_milli: int | None = None
    memory_used_bytes: int | None = None
    memory_free_bytes: int | None = None
    memory_reserved_bytes: int | None = None
    temperature_c: int | None = None
    memory_temperature_c: int | None = None
    margin_c: int | None = None
    slowdown_c: int | None = None
    shutdown_c: int | None = None
    power_mw: int | None = None
    power_limit_mw: int | None = None
    power_limit_set_mw: int | None = None
    energy_mj_total: int | None = None
    sm_clock_mhz: int | None = None
    sm_clock_most_mhz: int | None = None
    memory_clock_mhz: int | None = None
    performance_state: int | None = None
    throttles: tuple[Throttle, ...] | None = None
    throttled_ns: Mapping[str, int] = {}
    activity: Activity | None = None
    links: Links = Links()
    memory_errors: MemoryErrors = MemoryErrors()
    processes: tuple[ProcessSample, ...] | None = None

    @property
    def memory_bytes(self) -> int | None:
        """All of its memory; None where one part of it is not told."""
        parts = (self.memory_used_bytes, self.memory_free_bytes, self.memory_reserved_bytes)
        known = [part for part in parts if part is not None]
        return sum(known) if len(known) == len(parts) else None


class Pressure(Value, gc=False):
    """How much of the last ten seconds somebody waited for this: Linux' pressure, `some`."""

    cpu_milli: int | None = None
    memory_milli: int | None = None
    io_milli: int | None = None


class JobSample(Value):
    """One look at what one attempt does on one node, outside its GPUs.

    cpu_granted_milli: what it asked for. busiest_thread_milli: of one CPU. blocked_milli: how much
    of its processes' time went into waiting for a disk, where there is no pressure to read.
    used_milli and the like are means since the last look; totals count from the attempt's start.
    """

    job: JobId
    attempt: int
    node: NodeId
    at: Instant
    interval_ms: int | None = None
    pretend: bool = False
    processes: int | None = None
    cpu_granted_milli: int | None = None
    cpu_used_milli: int | None = None
    cpu_ns_total: int | None = None
    cpu_throttled_milli: int | None = None
    busiest_thread_milli: int | None = None
    memory_bytes: int | None = None
    memory_peak_bytes: int | None = None
    memory_limit_bytes: int | None = None
    read_bytes_total: int | None = None
    written_bytes_total: int | None = None
    read_bytes_per_s: int | None = None
    written_bytes_per_s: int | None = None
    blocked_milli: int | None = None
    pressure: Pressure = Pressure()


class Disk(Value, gc=False):
    """One file system that Muster depends on: where its state lies, or jobs' work."""

    what: str
    bytes: int
    free_bytes: int


class HostSample(Value):
    """One look at a machine."""

    node: NodeId
    at: Instant
    pretend: bool = False
    cpu_used_milli: int | None = None
    memory_bytes: int | None = None
    memory_free_bytes: int | None = None
    pressure: Pressure = Pressure()
    disks: tuple[Disk, ...] = ()
    received_bytes_total: int | None = None
    sent_bytes_total: int | None = None


class Samples(Value):
    """Everything that one pass over a cluster found.

    secondhand: somebody else measured it, and exports it already: we do not export it again.
    """

    at: Instant
    devices: tuple[DeviceSample, ...] = ()
    jobs: tuple[JobSample, ...] = ()
    hosts: tuple[HostSample, ...] = ()
    secondhand: bool = False
