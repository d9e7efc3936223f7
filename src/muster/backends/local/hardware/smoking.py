"""Smoke tests that run: each is a process, so that a GPU that hangs holds up nobody."""

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from typing import IO, Protocol

from muster.backends.local.hardware import smoke
from muster.model.value import DeviceId, Value

PATIENCE_S = 300.0
_LONGEST_TEXT = 200

PROGRAM = (sys.executable, "-m", "muster.backends.local.hardware.smoke")


class SmokeResult(Value):
    """A test that is over. wrong: what it found, None if the device passed."""

    device: DeviceId
    wrong: str | None


class SmokeTests(Protocol):
    """Tests devices, one process each."""

    def begin(self, device: DeviceId, visible: str) -> None:
        """Test this device, which CUDA knows by this name, unless that is under way."""
        ...

    def over(self) -> tuple[SmokeResult, ...]:
        """The tests that ended since this was last asked."""
        ...

    def close(self) -> None: ...


class _Test:
    def __init__(self, program: Sequence[str], visible: str) -> None:
        self._said: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 -- `close` does
        self._ends_at = time.monotonic() + PATIENCE_S
        self._process = subprocess.Popen(  # noqa: S603 -- our own program
            program,
            env={**os.environ, "CUDA_VISIBLE_DEVICES": visible},
            stdin=subprocess.DEVNULL,
            stdout=self._said,
            stderr=subprocess.STDOUT,
        )

    def wrong(self) -> str | None:
        """What it found; None if nothing, or if CUDA is not there to say."""
        code = self._process.returncode
        if code in {smoke.PASSED, smoke.CANNOT}:
            return None
        if code < 0:
            return f"it was ended by signal {-code}"
        self._said.seek(0)
        lines = self._said.read().decode(errors="replace").splitlines()
        return lines[-1][:_LONGEST_TEXT] if lines else f"it ended with {code}"

    def is_over(self) -> bool:
        return self._process.poll() is not None

    def is_late(self) -> bool:
        return time.monotonic() >= self._ends_at

    def close(self) -> None:
        """Whoever hangs in the driver may not even be killed; nobody waits for it."""
        if not self.is_over():
            self._process.kill()
        self._said.close()


class RealSmokeTests:
    """One thread asks."""

    def __init__(self, program: Sequence[str] = PROGRAM) -> None:
        self._program = program
        self._running: dict[DeviceId, _Test] = {}

    def begin(self, device: DeviceId, visible: str) -> None:
        if device not in self._running:
            self._running[device] = _Test(self._program, visible)

    def over(self) -> tuple[SmokeResult, ...]:
        return tuple(self._over())

    def close(self) -> None:
        for test in self._running.values():
            test.close()
        self._running.clear()

    def _over(self) -> Iterator[SmokeResult]:
        for device, test in tuple(self._running.items()):
            if test.is_over():
                wrong = test.wrong()
            elif test.is_late():
                wrong = f"it did not end within {PATIENCE_S:.0f} s"
            else:
                continue
            test.close()
            del self._running[device]
            yield SmokeResult(device=device, wrong=wrong)
