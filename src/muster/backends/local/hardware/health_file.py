"""What is remembered of devices' health from one start of Muster to the next, in its state folder.

A file that cannot be read or written costs the memory and nothing else.
"""

import logging
import os
from collections.abc import Mapping
from pathlib import Path

import msgspec

from muster.backends.local.hardware.gpu_health import Health
from muster.model.value import DeviceId

log = logging.getLogger("muster.gpus")

NAME = "gpu-health.json"


class HealthFile:
    """`write` writes only what differs from what was written last."""

    def __init__(self, home: Path) -> None:
        self._path = home / NAME
        self._written: Mapping[DeviceId, Health] = {}

    def read(self) -> Mapping[DeviceId, Health]:
        """By device; nothing where nothing is remembered."""
        try:
            found = msgspec.json.decode(self._path.read_bytes(), type=dict[DeviceId, Health])
        except FileNotFoundError:
            return {}
        except (OSError, msgspec.MsgspecError) as problem:
            log.warning("the health of GPUs is not remembered: %s: %s", self._path, problem)
            return {}
        self._written = found
        return found

    def write(self, health: Mapping[DeviceId, Health]) -> None:
        """Remember these."""
        if health == self._written:
            return
        self._written = dict(health)
        new = self._path.with_suffix(".new")
        try:
            new.write_bytes(msgspec.json.encode(self._written))
            os.replace(new, self._path)
        except OSError as problem:
            log.warning("the health of GPUs is not remembered: %s", problem)
