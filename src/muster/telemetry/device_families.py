"""What is known of devices, as metrics: the names of dcgm-exporter, and ours beside them (pure)."""

from collections.abc import Callable, Iterable, Iterator, Sequence

from muster.model.holding import Holding
from muster.model.samples import Activity, DeviceSample, Throttle
from muster.telemetry import names
from muster.telemetry.family import Family, Labels, Point
from muster.telemetry.names import Metric

MOST_DEVICES = 512
"""GPUs and MIG instances that have series of their own; more are no single machine."""

MOST_HOLDINGS = 2_000

_MIB = 1_048_576

Read = Callable[[DeviceSample], float | None]


def _milli(value: int | None) -> float | None:
    return None if value is None else value / 1_000


def _percent(value: int | None) -> float | None:
    return None if value is None else value / 10


def _mib(value: int | None) -> float | None:
    return None if value is None else value // _MIB


def _of_gpu(value: int | None, sample: DeviceSample) -> float | None:
    """Utilisation is counted for whole GPUs alone."""
    return _percent(value) if sample.instance is None else None


def _truth(value: bool | None) -> float | None:  # noqa: FBT001 -- it is what is read
    return None if value is None else int(value)


def _active(read: Callable[[Activity], int | None]) -> Read:
    """A share of the time, 0 to 1; counters were seen to say more of MIG instances."""

    def share(sample: DeviceSample) -> float | None:
        value = None if sample.activity is None else read(sample.activity)
        return None if value is None else min(1.0, value / 1_000)

    return share


def _rate(read: Callable[[Activity], int | None]) -> Read:
    return lambda sample: None if sample.activity is None else read(sample.activity)


def _slowed(word: str) -> Read:
    return lambda sample: sample.throttled_ns.get(word)


_BITS = {reason: 1 << place for place, reason in enumerate(Throttle)}


def _mask(sample: DeviceSample) -> float | None:
    throttles = sample.throttles
    return None if throttles is None else sum(_BITS[each] for each in throttles)


ROWS: tuple[tuple[Metric, Read], ...] = (
    (names.SM_CLOCK, lambda it: it.sm_clock_mhz),
    (names.MEM_CLOCK, lambda it: it.memory_clock_mhz),
    (names.GPU_TEMP, lambda it: it.temperature_c),
    (names.MEMORY_TEMP, lambda it: it.memory_temperature_c),
    (names.POWER_USAGE, lambda it: _milli(it.power_mw)),
    (names.ENERGY, lambda it: it.energy_mj_total),
    (names.PCIE_REPLAYS, lambda it: it.links.pcie_replays_total),
    (names.GPU_UTIL, lambda it: _of_gpu(it.busy_milli, it)),
    (names.MEM_COPY_UTIL, lambda it: _of_gpu(it.copy_milli, it)),
    (names.ENC_UTIL, lambda it: _of_gpu(it.encoder_milli, it)),
    (names.DEC_UTIL, lambda it: _of_gpu(it.decoder_milli, it)),
    (names.FB_USED, lambda it: _mib(it.memory_used_bytes)),
    (names.FB_FREE, lambda it: _mib(it.memory_free_bytes)),
    (names.FB_RESERVED, lambda it: _mib(it.memory_reserved_bytes)),
    (names.NVLINK_TOTAL, lambda it: _kib(it.links.nvlink_bytes_total)),
    (names.REMAPPED_BAD, lambda it: it.memory_errors.remapped_uncorrected),
    (names.REMAPPED_GOOD, lambda it: it.memory_errors.remapped_corrected),
    (names.REMAP_FAILURE, lambda it: _truth(it.memory_errors.remap_failed)),
    (names.REMAP_PENDING, lambda it: _truth(it.memory_errors.remap_pending)),
    (names.VGPU_LICENSE, lambda it: 0 if it.instance is None else None),
    (names.GR_ENGINE, _active(lambda it: it.graphics_milli)),
    (names.SM_ACTIVE, _active(lambda it: it.sm_milli)),
    (names.SM_OCCUPANCY, _active(lambda it: it.occupancy_milli)),
    (names.TENSOR, _active(lambda it: it.tensor_milli)),
    (names.DRAM, _active(lambda it: it.dram_milli)),
    (names.FP64, _active(lambda it: it.fp64_milli)),
    (names.FP32, _active(lambda it: it.fp32_milli)),
    (names.FP16, _active(lambda it: it.fp16_milli)),
    (names.PCIE_TX, _rate(lambda it: it.pcie_sent_bytes_per_s)),
    (names.PCIE_RX, _rate(lambda it: it.pcie_received_bytes_per_s)),
    (names.NVLINK_TX, _rate(lambda it: it.nvlink_sent_bytes_per_s)),
    (names.NVLINK_RX, _rate(lambda it: it.nvlink_received_bytes_per_s)),
    (names.ECC_SBE_VOL, lambda it: it.memory_errors.corrected_total),
    (names.ECC_DBE_VOL, lambda it: it.memory_errors.uncorrected_total),
    (names.ECC_SBE_AGG, lambda it: it.memory_errors.corrected_ever),
    (names.ECC_DBE_AGG, lambda it: it.memory_errors.uncorrected_ever),
    (names.POWER_VIOLATION, _slowed("power")),
    (names.THERMAL_VIOLATION, _slowed("thermal")),
    (names.BOARD_VIOLATION, _slowed("board_limit")),
    (names.LOW_UTIL_VIOLATION, _slowed("low_util")),
    (names.RELIABILITY_VIOLATION, _slowed("reliability")),
    (names.SYNC_BOOST_VIOLATION, _slowed("sync_boost")),
    (names.NVLINK_CRC_FLIT, lambda it: it.links.nvlink_crc_flit_total),
    (names.NVLINK_CRC_DATA, lambda it: it.links.nvlink_crc_data_total),
    (names.NVLINK_REPLAY, lambda it: it.links.nvlink_replays_total),
    (names.NVLINK_RECOVERY, lambda it: it.links.nvlink_recoveries_total),
    (names.PSTATE, lambda it: it.performance_state),
    (names.EVENT_REASONS, _mask),
    (names.POWER_LIMIT, lambda it: _milli(it.power_limit_mw)),
    (names.POWER_LIMIT_SET, lambda it: _milli(it.power_limit_set_mw)),
    (names.SLOWDOWN_TEMP, lambda it: it.slowdown_c),
    (names.SHUTDOWN_TEMP, lambda it: it.shutdown_c),
    (names.PCIE_GEN, lambda it: it.links.pcie_generation),
    (names.PCIE_WIDTH, lambda it: it.links.pcie_width),
    (names.PCIE_MAX_GEN, lambda it: it.links.pcie_generation_most),
    (names.PCIE_MAX_WIDTH, lambda it: it.links.pcie_width_most),
    (names.TEMPERATURE, lambda it: it.temperature_c),
    (names.MEMORY_TEMPERATURE, lambda it: it.memory_temperature_c),
    (names.POWER, lambda it: _milli(it.power_mw)),
    (names.MARGIN, lambda it: it.margin_c),
)
"""One value of a device for each name. To export another one, write its row."""


Labelled = tuple[DeviceSample, Labels]
"""A device beside the labels that all its series have."""


def labels_of(sample: DeviceSample, more: Labels = ()) -> Labels:
    """As dcgm-exporter has them; it renamed Hostname to hostname, and people use both."""
    mig = (
        ()
        if sample.instance is None
        else (("GPU_I_PROFILE", sample.profile), ("GPU_I_ID", str(sample.instance)))
    )
    return (
        ("gpu", str(sample.index)),
        ("UUID", sample.device),
        ("pci_bus_id", sample.bus_id),
        ("device", f"nvidia{sample.index}"),
        ("modelName", sample.product),
        *mig,
        ("Hostname", sample.node),
        ("hostname", sample.node),
        ("DCGM_FI_DRIVER_VERSION", sample.driver),
        *((("pretend", "true"),) if sample.pretend else ()),
        *more,
    )


def device_families(devices: Sequence[Labelled]) -> Iterator[Family]:
    """All rows; a signal that a device does not have has no series, and is never 0."""
    for metric, read in ROWS:
        yield metric.family(
            Point(labels, value)
            for sample, labels in devices
            if (value := read(sample)) is not None
        )
    yield names.ECC.family(_ecc(devices))


def throttled(devices: Iterable[tuple[DeviceSample, Labels]]) -> Family:
    """Seconds in which clocks were low, for every reason that the driver counts."""
    return names.THROTTLED.family(
        Point((*labels, ("reason", reason)), ns / 1e9)
        for sample, labels in devices
        for reason, ns in sorted(sample.throttled_ns.items())
    )


def job_family(holdings: Sequence[Holding]) -> Family:
    """Which job has which device; rules join with it, so that no series of a device is doubled."""
    return names.DEVICE_JOB.family(Point(_holder(each), 1) for each in holdings)


def _holder(holding: Holding) -> Labels:
    """share: its part of this GPU or instance; of those with `share="1"` there is one at most."""
    share = 1 if holding.instance is not None else holding.gpu_milli / 1_000
    return (
        ("UUID", holding.device),
        ("GPU_I_ID", "" if holding.instance is None else str(holding.instance)),
        ("Hostname", holding.node),
        ("job", str(holding.job)),
        ("attempt", str(holding.attempt)),
        ("user", holding.user),
        ("queue", holding.queue),
        ("class", holding.job_class),
        ("share", f"{share:g}"),
    )


def _ecc(devices: Sequence[Labelled]) -> Iterator[Point]:
    for sample, labels in devices:
        errors = sample.memory_errors
        for kind, value in (
            ("corrected", errors.corrected_total),
            ("uncorrected", errors.uncorrected_total),
        ):
            if value is not None:
                yield Point((*labels, ("type", kind)), value)


def _kib(value: int | None) -> float | None:
    return None if value is None else value // 1_024
