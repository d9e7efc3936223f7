"""Watching GPUs in a thread of its own, because NVML can hang when a GPU is dying."""

import queue
import threading
import time

from muster.backends.base import Wake
from muster.backends.local.hardware.gpu_health import Reading
from muster.backends.local.hardware.nvml import Nvml
from muster.model.value import DeviceId, Value

_XID_WAIT_MS = 500
_LOOK_EVERY_S = 5.0
_END_WAIT_S = 3.0


class Looked(Value):
    """Everything that one look found."""

    readings: dict[DeviceId, Reading]


class Xid(Value, gc=False):
    """The driver reported a critical error. Empty device: it could not say which."""

    device: DeviceId
    number: int


Found = Looked | Xid


class Watch:
    """Looks at these devices until closed; `found` gives what was seen since it was last asked.

    `wake` is called, from the watch's thread, when there is something new among it.
    """

    def __init__(self, nvml: Nvml, devices: tuple[DeviceId, ...], wake: Wake) -> None:
        self._nvml = nvml
        self._devices = devices
        self._wake = wake
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
        looked_at, before = float("-inf"), None
        while not self._over.is_set():
            if time.monotonic() - looked_at >= _LOOK_EVERY_S:
                looked_at = time.monotonic()
                look = Looked(readings={id: self._nvml.reading(id) for id in self._devices})
                self._tell(look, news=look != before)
                before = look
            self._wait_for_xid()

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
