"""GPM: what the parts of a GPU did between two looks. Hopper and later have it."""

import math
from typing import Any

from muster.backends.local.hardware.nvml import Nvml
from muster.model.samples import Activity

_MIB = 1_048_576

# NVML's numbers of metrics. Shares come as percent, traffic as MiB a second.
_SHARES = {
    "graphics_milli": 1,
    "sm_milli": 2,
    "occupancy_milli": 3,
    "tensor_milli": 5,
    "dram_milli": 10,
    "fp64_milli": 11,
    "fp32_milli": 12,
    "fp16_milli": 13,
}
_TRAFFIC = {
    "pcie_sent_bytes_per_s": 20,
    "pcie_received_bytes_per_s": 21,
    "nvlink_received_bytes_per_s": 60,
    "nvlink_sent_bytes_per_s": 61,
}


class Gpm:
    """Keeps the last look at each GPU or instance, so that a value is the mean since then."""

    def __init__(self, nvml: Nvml) -> None:
        self._nvml = nvml
        self._before: dict[str, Any] = {}
        self._lacking: set[str] = set()

    def activity(self, name: str, handle: Any, *, instance: int | None = None) -> Activity | None:
        """Since the last call with this name; None at first, and where there is no GPM."""
        if name in self._lacking:
            return None
        if name not in self._before and not self._is_offered(handle):
            self._lacking.add(name)
            return None
        now = self._look(handle, instance)
        before = self._before.pop(name, None)
        if now is None:
            self._free(before)
            return None
        self._before[name] = now
        if before is None:
            return None
        try:
            return self._between(before, now)
        finally:
            self._free(before)

    def close(self) -> None:
        for sample in self._before.values():
            self._free(sample)
        self._before.clear()

    def _is_offered(self, handle: Any) -> bool:
        nvml = self._nvml.library
        told = self._nvml.ask_if_able(lambda: nvml.nvmlGpmQueryDeviceSupport(handle), None)
        return told is not None and bool(told.isSupportedDevice)

    def _look(self, handle: Any, instance: int | None) -> Any:
        nvml, able = self._nvml.library, self._nvml.ask_if_able
        sample = able(nvml.nvmlGpmSampleAlloc, None)
        if sample is None:
            return None
        if instance is None:
            taken = able(lambda: nvml.nvmlGpmSampleGet(handle, sample), None)
        else:
            taken = able(lambda: nvml.nvmlGpmMigSampleGet(handle, instance, sample), None)
        if taken is None:
            self._free(sample)
        return taken

    def _between(self, before: Any, now: Any) -> Activity | None:
        nvml = self._nvml.library
        wanted = nvml.c_nvmlGpmMetricsGet_t()
        wanted.version = nvml.NVML_GPM_METRICS_GET_VERSION
        numbers = [*_SHARES.values(), *_TRAFFIC.values()]
        wanted.numMetrics = len(numbers)
        wanted.sample1, wanted.sample2 = before, now
        for at, number in enumerate(numbers):
            wanted.metrics[at].metricId = number
        told = self._nvml.ask_if_able(lambda: nvml.nvmlGpmMetricsGet(wanted), None)
        if told is None:
            return None
        values = {
            int(each.metricId): float(each.value)
            for each in told.metrics[: len(numbers)]
            if each.nvmlReturn == 0 and math.isfinite(each.value)
        }
        return Activity(
            **{name: share_of(values.get(number)) for name, number in _SHARES.items()},
            **{name: traffic_of(values.get(number)) for name, number in _TRAFFIC.items()},
        )

    def _free(self, sample: Any) -> None:
        if sample is not None:
            self._nvml.ask_if_able(lambda: self._nvml.library.nvmlGpmSampleFree(sample), None)


def share_of(percent: float | None) -> int | None:
    """In thousandths. Some drivers give more than all of it on MIG instances: it is cut there."""
    return None if percent is None else min(1_000, max(0, round(10 * percent)))


def traffic_of(mib_per_s: float | None) -> int | None:
    """In bytes a second."""
    return None if mib_per_s is None else max(0, round(_MIB * mib_per_s))
