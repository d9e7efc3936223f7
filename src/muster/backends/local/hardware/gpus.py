"""The real machine as a node: its GPUs as NVML tells them, as values of the model."""

import os
from collections import Counter
from collections.abc import Iterable, Mapping

from muster.backends.base import Cut, Wake
from muster.backends.local.hardware.device_nodes import (
    GivenGpu,
    gpu_nodes,
    load_uvm,
    wall_around,
)
from muster.backends.local.hardware.gpu_health import Health, Reading, judged, resumed, struck
from muster.backends.local.hardware.gpu_watch import Found, Looked, Watch, Xid
from muster.backends.local.hardware.host import Host, numa_of
from muster.backends.local.hardware.inventory import CLUSTER, POOL
from muster.backends.local.hardware.mig import carry_out, instance_at, placed
from muster.backends.local.hardware.nvml import Nvml, NvmlError, RawGpu, RawInstance, open_nvml
from muster.backends.local.isolation.devices import DeviceWall
from muster.model.cluster import Abilities, Node
from muster.model.errors import BackendDownError
from muster.model.gpu import Device, Mig, MigInstance, MpsShare, TimeShare
from muster.model.gpu_products import model_of
from muster.model.mig import geometry
from muster.model.placement import DeviceShare
from muster.model.value import SECOND, DeviceId, Instant, NodeId

_MIB = 1_048_576
_SILENT_AFTER = 60 * SECOND
# However long the last poll is ago, NVML had only so much time to answer.
_STEP = 5 * SECOND
_SILENT = "NVML does not answer: the driver hangs; restart the machine"


def _nothing_to_wake() -> None:
    """There is nothing to wake."""


def find_inventory(here: Host, *, mps: bool, wake: Wake = _nothing_to_wake) -> "NvidiaInventory":
    """This machine with the GPUs that NVML finds, or with none and a remark that says why."""
    try:
        return NvidiaInventory(here, open_nvml(), mps=mps, wake=wake)
    except (NvmlError, ImportError) as problem:
        why = f"no GPUs: {problem}; install the NVIDIA driver, or try `--gpus 4xA100-40GB`"
        return NvidiaInventory(here, None, mps=mps, remark=why)


def device_of(raw: RawGpu, standing: Health) -> Device:
    """A GPU as the model knows it. Its id is its UUID, which no restart changes."""
    memory_mib = raw.memory_bytes // _MIB
    model = model_of(raw.product, memory_mib)
    return Device(
        id=DeviceId(raw.uuid),
        index=raw.index,
        model=model,
        memory_mib=memory_mib,
        healthy=not standing.reason,
        mig=None if raw.mig is None else placed(model, raw.mig),
        reason=standing.reason,
    )


def gpu_labels(devices: tuple[Device, ...], *, driver: str, cuda: str) -> dict[str, str]:
    """What tasks can ask for by label; a machine with several models has no `gpu.model`."""
    if not devices:
        return {}
    models = {str(device.model) for device in devices}
    model = {"gpu.model": models.pop()} if len(models) == 1 else {}
    return model | {
        key: value for key, value in (("gpu.driver", driver), ("gpu.cuda", cuda)) if value
    }


def link_lines(gpus: tuple[RawGpu, ...]) -> tuple[str, ...]:
    """How the GPUs are linked, for people."""
    names = {raw.bus_id.lower()[-12:]: f"GPU {raw.index}" for raw in gpus}
    lines: list[str] = []
    for raw in gpus:
        ends = Counter(names.get(end.lower()[-12:], end) for end in raw.links)
        lines += [
            f"GPU {raw.index} to {end}: {count} NVLinks" for end, count in sorted(ends.items())
        ]
    return tuple(lines)


class NvidiaInventory:
    """One real node. Its devices are watched from the first poll on; `wake` asks for a poll."""

    def __init__(
        self,
        here: Host,
        nvml: Nvml | None,
        *,
        mps: bool,
        remark: str = "",
        wake: Wake = _nothing_to_wake,
    ) -> None:
        self._here = here
        self._nvml = nvml
        self._mps = mps
        self._wake = wake
        gpus, silent = ((), ()) if nvml is None else nvml.gpus()
        self._gpus = {DeviceId(raw.uuid): raw for raw in gpus}
        self._remarks = (*([remark] if remark else []), *silent, *link_lines(gpus))
        self._labels = _versions(nvml)
        self._numa = {id: numa_of(raw.bus_id) for id, raw in self._gpus.items()}
        self._device_nodes = {id: gpu_nodes(raw.bus_id) for id, raw in self._gpus.items()}
        if self._gpus:
            load_uvm()
        self._standings = dict.fromkeys(self._gpus, Health())
        self._readings: Mapping[DeviceId, Reading] = {}
        self._watch: Watch | None = None
        self._polled_at: Instant | None = None
        self._silence = 0
        self._nodes = self._reported = (self._node(),)

    def nodes(self) -> tuple[Node, ...]:
        return self._nodes

    def abilities(self) -> Abilities:
        """Existing MIG instances need no rights; cutting others needs root."""
        mig = any(geometry(each.model) for each in self._nodes[0].devices)
        return Abilities(
            mig=mig,
            repartition=mig and os.geteuid() == 0,
            mps=self._mps and bool(self._gpus),
            time_share=bool(self._gpus),
            suspend=True,
            resize=False,
            device_wall=None not in self._device_nodes.values(),
        )

    def wall(self, shares: Iterable[DeviceShare]) -> DeviceWall | None:
        present = self._device_nodes
        known = {id: nodes for id, nodes in present.items() if nodes is not None}
        if not present or len(known) < len(present):
            return None
        given = (
            GivenGpu(nodes=known[share.device], instance=self._instance_number(share))
            for share in shares
        )
        return wall_around(given, known.values())

    def visible(self, share: DeviceShare) -> str:
        match share.slice:
            case Mig(profile=profile):
                return self._instance(share.device, profile, share.start or 0).uuid or ""
            case MpsShare() | TimeShare() | None:
                return str(share.device)

    def cut(self, action: Cut) -> None:
        if self._nvml is None or action.device not in self._gpus:
            raise BackendDownError(CLUSTER, f"there is no device {action.device} here")
        raw = self._seen_again(self._nvml, action.device)
        try:
            carry_out(self._nvml, raw, device_of(raw, Health()).model, action)
        finally:
            self._seen_again(self._nvml, action.device)
            self._nodes = (self._node(),)

    def poll(self, now: Instant) -> bool:
        """Take in what the watch found; the watch itself never keeps us waiting."""
        if self._nvml is None or not self._gpus:
            return False
        if self._watch is None:
            self._watch = Watch(self._nvml, tuple(self._gpus), self._wake)
        found = self._watch.found()
        self._mark_silence(now, heard=bool(found))
        for each in found:
            self._take_in(each)
        if found or self._silence >= _SILENT_AFTER:
            self._nodes = (self._node(),)
        before, self._reported = self._reported, self._nodes
        return before != self._nodes

    def resume(self, node: NodeId) -> None:
        if node != self._here.node:
            return
        self._silence = 0
        self._standings = {
            id: resumed(standing, self._readings.get(id))
            for id, standing in self._standings.items()
        }
        self._nodes = (self._node(),)

    def numa(self, device: DeviceId) -> int | None:
        return self._numa.get(device)

    def remarks(self) -> tuple[str, ...]:
        return self._remarks

    def close(self) -> None:
        answers = self._watch is None or self._watch.close()
        if self._nvml is not None and answers:
            self._nvml.close()
        self._nvml = self._watch = None

    def _seen_again(self, nvml: Nvml, device: DeviceId) -> RawGpu:
        """How the device is cut now; an administrator may have cut it by hand."""
        try:
            self._gpus[device] = nvml.gpu(device)
        except NvmlError as problem:
            raise BackendDownError(CLUSTER, f"the GPU does not answer: {problem}") from problem
        return self._gpus[device]

    def _node(self) -> Node:
        devices = tuple(device_of(raw, self._standing(id)) for id, raw in self._gpus.items())
        return Node(
            id=self._here.node,
            cluster=CLUSTER,
            pool=POOL,
            cpu_milli=self._here.cpus.milli,
            memory_mib=self._here.memory_mib,
            devices=devices,
            labels={**self._here.labels, **gpu_labels(devices, **self._labels)},
        )

    def _standing(self, device: DeviceId) -> Health:
        known = self._standings[device]
        if known.reason or self._silence < _SILENT_AFTER:
            return known
        return Health(reason=_SILENT)

    def _mark_silence(self, now: Instant, *, heard: bool) -> None:
        passed = 0 if self._polled_at is None else min(max(0, now - self._polled_at), _STEP)
        self._silence = 0 if heard else self._silence + passed
        self._polled_at = now

    def _take_in(self, found: Found) -> None:
        match found:
            case Looked(readings=readings):
                self._readings = readings
                for id, reading in readings.items():
                    self._standings[id] = judged(self._standings[id], reading)
            case Xid(device=device, number=number) if device in self._standings:
                self._standings[device] = struck(self._standings[device], number)
            case Xid(number=number):
                # It cannot be said which GPU failed, so none can be trusted.
                self._standings = {
                    id: struck(standing, number) for id, standing in self._standings.items()
                }

    def _instance_number(self, share: DeviceShare) -> int | None:
        match share.slice:
            case Mig(profile=profile):
                return self._instance(share.device, profile, share.start or 0).id
            case MpsShare() | TimeShare() | None:
                return None

    def _instance(self, device: DeviceId, profile: str, start: int) -> RawInstance:
        raw = self._gpus[device]
        model = device_of(raw, Health()).model
        found = instance_at(raw, model, MigInstance(profile=profile, start=start))
        if found is None or found.uuid is None:
            text = f"GPU {raw.index} has no MIG instance {profile} at {start} yet"
            raise BackendDownError(CLUSTER, text)
        return found


def _versions(nvml: Nvml | None) -> dict[str, str]:
    if nvml is None:
        return {"driver": "", "cuda": ""}
    return {"driver": nvml.driver(), "cuda": nvml.cuda()}
