"""Watching GPUs in a thread of its own, because NVML can hang when a GPU is dying.

They are measured in the same thread: whoever wants to know reads what the last look found.
"""

import logging
import queue
import threading
import time
from collections.abc import Callable

from muster.backends.base import Wake
from muster.backends.local.hardware.gpu_health import Reading
from muster.backends.local.hardware.nvml import Nvml, RawGpu
from muster.backends.local.measuring.gpu_sampler import GpuSampler
from muster.model.samples import DeviceSample
from muster.model.value import DeviceId, Instant, Value

log = logging.getLogger("muster.gpus")

_XID_WAIT_MS = 500
_LOOK_EVERY_S = 5.0
_MEASURE_EVERY_S = 15.0
_END_WAIT_S = 3.0


class Looked(Value):
    """Everything that one look found."""

    readings: dict[DeviceId, Reading]


class Xid(Value, gc=False):
    """The driver reported a critical error. Empty device: it could not say which."""

    device: DeviceId
    number: int


Found = Looked | Xid


class Watched(Value):
    """Which devices are looked at, how each is cut just now, and what measures them."""

    devices: tuple[DeviceId, ...]
    gpus: Callable[[], tuple[RawGpu, ...]]
    sampler: GpuSampler


class Watch:
    """Looks at these devices until closed; `found` gives what was seen since it was last asked.

    `wake` is called, from the watch's thread, when there is something new among it.
    `samples` is what the last look measured; any thread may read it, and judge it by its age.
    """

    def __init__(self, nvml: Nvml, watched: Watched, wake: Wake) -> None:
        self._nvml = nvml
        self._devices = watched.devices
        self._gpus = watched.gpus
        self._sampler = watched.sampler
        self._wake = wake
        self.samples: tuple[DeviceSample, ...] = ()
        self._found: queue.SimpleQueue[Found] = queue.SimpleQueue()
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._look_on, name="gpu-watch", daemon=True)
        self._thread.start()

    def found(self) -> tuple[Found, ...]:
        seen: list[Found] = []
        while True:
            try:
                seen.append(self._found.get_nowait())
            except queue.Empty:
                return tuple(seen)

    def close(self) -> bool:
        """End the watch. False: NVML hangs, and must be left alone."""
        self._over.set()
        self._thread.join(_END_WAIT_S)
        return not self._thread.is_alive()

    def _look_on(self) -> None:
        self._nvml.watch_xids(self._devices)
        looked_at, measured_at, before = float("-inf"), float("-inf"), None
        while not self._over.is_set():
            if time.monotonic() - looked_at >= _LOOK_EVERY_S:
                looked_at = time.monotonic()
                look = Looked(readings={id: self._nvml.reading(id) for id in self._devices})
                self._tell(look, news=look != before)
                before = look
            if time.monotonic() - measured_at >= _MEASURE_EVERY_S:
                measured_at = time.monotonic()
                self._measure()
            self._wait_for_xid()
        self._sampler.close()

    def _measure(self) -> None:
        now = Instant(time.time_ns() // 1_000_000)
        try:
            self.samples = self._sampler.look(self._gpus(), now)
        except Exception:
            # What cannot be measured must not keep us from seeing that a GPU fails.
            log.exception("the GPUs could not be measured")
            self.samples = ()

    def _wait_for_xid(self) -> None:
        before = time.monotonic()
        error = self._nvml.next_xid(_XID_WAIT_MS)
        if error is not None:
            self._tell(Xid(device=DeviceId(error[0]), number=error[1]), news=True)
        elif time.monotonic() - before < _XID_WAIT_MS / 2_000:
            # It cannot wait for errors, or says at once that it cannot now: then we wait.
            self._over.wait(_XID_WAIT_MS / 1_000)

    def _tell(self, found: Found, *, news: bool) -> None:
        self._found.put(found)
        if news:
            self._wake()
