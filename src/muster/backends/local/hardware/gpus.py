"""The real machine as a node: its GPUs as NVML tells them, as values of the model."""

import os
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from muster.backends.base import Cut, Wake
from muster.backends.local.hardware.device_nodes import (
    GivenGpu,
    gpu_nodes,
    load_uvm,
    wall_around,
)
from muster.backends.local.hardware.gpu_health import (
    Health,
    Reading,
    after_test,
    judged,
    remembered,
    resumed,
    struck,
)
from muster.backends.local.hardware.gpu_watch import Found, Looked, Watch, Watched, Xid
from muster.backends.local.hardware.health_file import HealthFile
from muster.backends.local.hardware.host import Host, numa_of
from muster.backends.local.hardware.inventory import CLUSTER, POOL, DeviceError
from muster.backends.local.hardware.mig import carry_out, instance_at, placed
from muster.backends.local.hardware.nvml import Nvml, NvmlError, RawGpu, RawInstance, open_nvml
from muster.backends.local.hardware.smoking import RealSmokeTests, SmokeTests
from muster.backends.local.isolation.devices import DeviceWall
from muster.backends.local.measuring.gpu_sampler import GpuSampler, SampledNode
from muster.model.cluster import Abilities, Node
from muster.model.errors import BackendDownError
from muster.model.gpu import Device, DeviceState, Mig, MigInstance, MpsShare, TimeShare
from muster.model.gpu_products import model_of
from muster.model.mig import geometry
from muster.model.placement import DeviceShare
from muster.model.samples import DeviceSample
from muster.model.value import SECOND, DeviceId, Instant, NodeId

_MIB = 1_048_576
_SILENT_AFTER = 60 * SECOND
# However long the last poll is ago, NVML had only so much time to answer.
_STEP = 5 * SECOND
_SILENT = "NVML does not answer: the driver hangs; restart the machine"


def _nothing_to_wake() -> None:
    """There is nothing to wake."""


def find_inventory(
    here: Host, *, mps: bool, wake: Wake = _nothing_to_wake, home: Path | None = None
) -> "NvidiaInventory":
    """This machine with the GPUs that NVML finds, or with none and a remark that says why.

    home: where their health is remembered.
    """
    try:
        file = None if home is None else HealthFile(home)
        return NvidiaInventory(here, open_nvml(), mps=mps, upkeep=Upkeep(wake=wake, memory=file))
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
        healthy=standing.state.takes_work,
        mig=None if raw.mig is None else placed(model, raw.mig),
        reason=standing.reason,
        judged=None if standing.state is DeviceState.WELL else standing.state,
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


@dataclass
class Upkeep:
    """What an inventory is given for the care of its devices.

    wake: asks for a poll. memory: where health is remembered. smoke_tests: what tests devices
    before they come back.
    """

    wake: Wake = _nothing_to_wake
    memory: HealthFile | None = None
    smoke_tests: SmokeTests | None = None


class NvidiaInventory:
    """One real node. Its devices are watched from the first poll on."""

    def __init__(
        self,
        here: Host,
        nvml: Nvml | None,
        *,
        mps: bool,
        remark: str = "",
        upkeep: Upkeep | None = None,
    ) -> None:
        self._here = here
        self._nvml = nvml
        self._mps = mps
        gpus, silent = ((), ()) if nvml is None else nvml.gpus()
        self._gpus = {DeviceId(raw.uuid): raw for raw in gpus}
        self._remarks = (*([remark] if remark else []), *silent, *link_lines(gpus))
        self._labels = _versions(nvml)
        self._numa = {id: numa_of(raw.bus_id) for id, raw in self._gpus.items()}
        self._device_nodes = {id: gpu_nodes(raw.bus_id) for id, raw in self._gpus.items()}
        if self._gpus:
            load_uvm()
        upkeep = upkeep or Upkeep()
        self._wake = upkeep.wake
        self._memory = upkeep.memory
        self._smoke_tests = upkeep.smoke_tests or RealSmokeTests()
        before = dict[DeviceId, Health]() if self._memory is None else self._memory.read()
        self._standings = {id: remembered(before.get(id, Health())) for id in self._gpus}
        self._errors: list[DeviceError] = []
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
            self._watch = self._begun_watch(self._nvml)
        found = self._watch.found()
        self._mark_silence(now, heard=bool(found))
        for each in found:
            self._take_in(each, now)
        news = self._test(now)
        if found or news or self._silence >= _SILENT_AFTER:
            self._nodes = (self._node(),)
        if self._memory is not None:
            self._memory.write(self._standings)
        before, self._reported = self._reported, self._nodes
        return before != self._nodes

    def errors(self) -> tuple[DeviceError, ...]:
        found, self._errors = self._errors, []
        return tuple(found)

    def samples(self, now: Instant) -> tuple[DeviceSample, ...]:  # noqa: ARG002 -- they say when
        watch = self._watch
        return () if watch is None else watch.samples

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
        self._smoke_tests.close()
        answers = self._watch is None or self._watch.close()
        if self._nvml is not None and answers:
            self._nvml.close()
        self._nvml = self._watch = None

    def _begun_watch(self, nvml: Nvml) -> Watch:
        where = SampledNode(node=self._here.node, driver=self._labels["driver"])
        watched = Watched(
            devices=tuple(self._gpus),
            gpus=lambda: tuple(self._gpus.values()),
            sampler=GpuSampler(nvml, where),
        )
        return Watch(nvml, watched, self._wake)

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
        if not known.state.takes_work or self._silence < _SILENT_AFTER:
            return known
        return Health(state=DeviceState.BROKEN, reason=_SILENT)

    def _mark_silence(self, now: Instant, *, heard: bool) -> None:
        passed = 0 if self._polled_at is None else min(max(0, now - self._polled_at), _STEP)
        self._silence = 0 if heard else self._silence + passed
        self._polled_at = now

    def _test(self, now: Instant) -> bool:
        """Have the devices on probation tested; is any test over?"""
        over = self._smoke_tests.over()
        for each in over:
            self._standings[each.device] = after_test(self._standings[each.device], each.wrong, now)
        for id, standing in self._standings.items():
            if standing.state is DeviceState.PROBATION:
                self._smoke_tests.begin(id, self._tested_part(id))
        return bool(over)

    def _tested_part(self, device: DeviceId) -> str:
        """A GPU that is cut is tested by its first instance."""
        instances = self._gpus[device].mig or ()
        return next((each.uuid for each in instances if each.uuid), str(device))

    def _take_in(self, found: Found, now: Instant) -> None:
        match found:
            case Looked(readings=readings):
                self._readings = readings
                for id, reading in readings.items():
                    self._standings[id] = judged(self._standings[id], reading, now)
            case Xid(device=device, number=number) if device in self._standings:
                self._errors.append(DeviceError(node=self._here.node, device=device, xid=number))
                self._standings[device] = struck(self._standings[device], number, now)
            case Xid(number=number):
                # It cannot be said which GPU failed, so none can be trusted.
                self._errors.append(
                    DeviceError(node=self._here.node, device=DeviceId(""), xid=number)
                )
                self._standings = {
                    id: struck(standing, number, now) for id, standing in self._standings.items()
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
