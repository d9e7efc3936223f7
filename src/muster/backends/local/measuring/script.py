"""What is measured on pretend GPUs: what a script says (pure).

`pretend-load.json` gives steps by device, or by `*` for all that it does not name:

    {"pretend1/gpu0": [{"seconds": 60, "busy_milli": 950, "temperature_c": 91}, {"seconds": 60}]}

Steps follow each other and begin again after the last. They name fields of `DeviceSample`.
"""

from typing import Any

import msgspec

from muster.model.gpu import Device
from muster.model.samples import DeviceSample
from muster.model.value import Instant, NodeId

Script = dict[str, list[dict[str, Any]]]

_MIB = 1_048_576
_OTHERS = "*"
_USUAL_S = 60


def scripted(script: Script, node: NodeId, device: Device, now: Instant) -> DeviceSample:
    """What the script says of a device now; an idle GPU where it says nothing that can be read."""
    told = _step(script.get(device.id, script.get(_OTHERS, [])), now)
    named = {**_idle(device), **told, **_named(node, device, now)}
    try:
        return msgspec.convert(named, DeviceSample)
    except msgspec.ValidationError:
        return msgspec.convert({**_idle(device), **_named(node, device, now)}, DeviceSample)


def _step(steps: list[dict[str, Any]], now: Instant) -> dict[str, Any]:
    lengths = [_seconds(step) for step in steps]
    if not sum(lengths):
        return {}
    left = now // 1_000 % sum(lengths)
    for step, length in zip(steps, lengths, strict=True):
        if left < length:
            return {name: value for name, value in step.items() if name != "seconds"}
        left -= length
    return {}


def _seconds(step: dict[str, Any]) -> int:
    seconds = step.get("seconds", _USUAL_S)
    return max(0, seconds) if isinstance(seconds, int) else 0


def _idle(device: Device) -> dict[str, Any]:
    return {
        "busy_milli": 0,
        "copy_milli": 0,
        "memory_used_bytes": 0,
        "memory_free_bytes": device.memory_mib * _MIB,
        "memory_reserved_bytes": 0,
        "temperature_c": 35,
        "power_mw": 70_000,
        "power_limit_mw": 700_000,
        "interval_ms": 15_000,
    }


def _named(node: NodeId, device: Device, now: Instant) -> dict[str, Any]:
    return {
        "device": device.id,
        "node": node,
        "at": now,
        "index": device.index,
        "product": str(device.model),
        "pretend": True,
    }
