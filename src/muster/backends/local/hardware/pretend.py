"""Nodes and GPUs that do not exist, to try things out; the jobs on them are real processes.

In home, `pretend.json` keeps how pretend devices are cut, and `pretend-faults.json` says which of
them are broken: write there to see what Muster does about a failing GPU. `pretend-load.json` says
what is measured on them.
"""

import os
import re
import uuid
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TypeVar

import msgspec

from muster.backends.base import Cut
from muster.backends.local.hardware.inventory import CLUSTER, POOL, DeviceError
from muster.backends.local.measuring.script import Script, scripted
from muster.model.cluster import Abilities, Node
from muster.model.errors import BackendDownError, MusterError
from muster.model.gpu import Device, DeviceState, Mig, MigInstance, MpsShare, TimeShare
from muster.model.gpu_products import memory_of, sizes_of
from muster.model.mig import geometry, is_legal
from muster.model.placement import DeviceShare
from muster.model.samples import DeviceSample
from muster.model.value import DeviceId, GpuModel, Instant, NodeId, PoolName, Value, replace
from muster.model.xid import xid_of

PRETEND_LABELS = {"muster/pretend": "true"}
_CPUS_PER_GPU = 8
_GIB_PER_GPU = 64
_LEAST_CPUS = 8
_LEAST_GIB = 32
_MOST_GPUS = 64
_MOST_NODES = 10_000

_ACCEPTED = (
    "write COUNTxMODEL-SIZE, several kinds with +, or 0 for none: "
    "4xA100-40GB, 8xH100-80GB, 2xA100-40GB+2xT4-16GB"
)
_TERM = re.compile(r"(?:(\d+)\s*[x*])?\s*([A-Za-z][\w-]*)")

_Layouts = dict[str, tuple[MigInstance, ...]]
_T = TypeVar("_T")


class BadPretendError(MusterError):
    """Pretend hardware was described in a way that we cannot read."""


class PretendGpus(Value, gc=False):
    """So many pretend GPUs of one model in each node."""

    count: int
    model: GpuModel
    memory_mib: int


class Pretend(Value):
    """So many equal pretend nodes.

    cpus and memory_gib are per node; left out, a node has 8 CPUs and 64 GiB for each of its GPUs,
    and 8 CPUs and 32 GiB at least. names: `pretend1` and so on by default.
    """

    gpus: tuple[PretendGpus, ...] = ()
    nodes: int = 1
    cpus: int | None = None
    memory_gib: int | None = None
    names: tuple[str, ...] = ()
    pool: PoolName = POOL
    where: tuple[str, ...] = ()
    labels: Mapping[str, str] = {}

    @property
    def called(self) -> tuple[str, ...]:
        """The names of its nodes."""
        return self.names or tuple(f"pretend{number}" for number in range(1, self.nodes + 1))


def parse_pretend(
    gpus: str, *, nodes: int = 1, cpus: int | None = None, memory_gib: int | None = None
) -> Pretend:
    """`4xA100-40GB`, `2xA100-40GB+2xT4-16GB` or `0`; BadPretendError says what is accepted."""
    if not 1 <= nodes <= _MOST_NODES:
        message = f"cannot pretend {nodes} nodes: ask for 1 to {_MOST_NODES}"
        raise BadPretendError(message)
    if (cpus is not None and cpus < 1) or (memory_gib is not None and memory_gib < 1):
        message = "a pretend node needs at least 1 CPU and 1 GiB of memory"
        raise BadPretendError(message)
    return Pretend(gpus=_parse_gpus(gpus), nodes=nodes, cpus=cpus, memory_gib=memory_gib)


def break_devices(home: Path, faults: Mapping[DeviceId, str]) -> None:
    """Let these pretend devices fail for these reasons, and all others be well again."""
    _write(_faults_file(home), msgspec.json.encode(dict(faults)))


class PretendInventory:
    """The nodes of some racks. The faults file says what is wrong with devices.

    An Xid there means what it means of a real GPU: some break it, and some only come up once.
    """

    def __init__(self, home: Path, racks: tuple[Pretend, ...]) -> None:
        self._home = home
        self._racks = {name: rack for rack in racks for name in rack.called}
        self._layouts = _legal(_read(_layouts_file(home), _Layouts), self._racks)
        self._faults = _read(_faults_file(home), dict[str, str])
        self._errors: list[DeviceError] = []
        self._nodes = self._reported = self._seen()

    def nodes(self) -> tuple[Node, ...]:
        return self._nodes

    def abilities(self) -> Abilities:
        kinds = {each.model for rack in self._racks.values() for each in rack.gpus}
        cuttable = any(geometry(model) is not None for model in kinds)
        return Abilities(mig=cuttable, repartition=cuttable, mps=True, suspend=True, resize=False)

    def visible(self, share: DeviceShare) -> str:
        match share.slice:
            case Mig(profile=profile):
                named = f"{share.device}/{profile}/{share.start}"
                return f"MIG-{uuid.uuid5(uuid.NAMESPACE_URL, named)}"
            case MpsShare() | TimeShare() | None:
                return str(share.device).rpartition("/gpu")[2]

    def wall(self, shares: Iterable[DeviceShare]) -> None:
        """There is no device behind a pretend GPU that could be opened."""

    def cut(self, action: Cut) -> None:
        device = self._device(action)
        if action.instances is not None and not _can_be_cut(device, action.instances):
            layout = ", ".join(f"{each.profile}@{each.start}" for each in action.instances)
            raise BackendDownError(CLUSTER, f"{device.model} cannot be cut into {layout}")
        self._layouts.pop(action.device, None)
        if action.instances is not None:
            self._layouts[action.device] = action.instances
        _write(_layouts_file(self._home), msgspec.json.encode(self._layouts))
        self._nodes = self._seen()

    def poll(self, now: Instant) -> bool:  # noqa: ARG002 -- a file needs no pacing
        faults = _read(_faults_file(self._home), dict[str, str])
        if faults != self._faults:
            self._errors.extend(_errors(self._faults, faults))
            self._faults = faults
            self._nodes = self._seen()
        before, self._reported = self._reported, self._nodes
        return before is not self._nodes and before != self._nodes

    def errors(self) -> tuple[DeviceError, ...]:
        found, self._errors = self._errors, []
        return tuple(found)

    def samples(self, now: Instant) -> tuple[DeviceSample, ...]:
        """As the script says; a broken device does not answer."""
        script = _read(_load_file(self._home), Script)
        return tuple(
            scripted(script, node.id, device, now)
            for node in self._nodes
            for device in node.devices
            if device.healthy
        )

    def resume(self, node: NodeId) -> None:
        """Mend the node's devices: nothing is wrong with them that could not be wished away."""
        left = {id: why for id, why in self._faults.items() if id.partition("/")[0] != node}
        break_devices(self._home, {DeviceId(id): why for id, why in left.items()})

    def numa(self, device: DeviceId) -> int | None:  # noqa: ARG002 -- there is none
        return None

    def remarks(self) -> tuple[str, ...]:
        return ("all nodes and GPUs are pretend ones; jobs are real processes on this machine",)

    def close(self) -> None:
        """Nothing is held open."""

    def _device(self, action: Cut) -> Device:
        for node in self._nodes:
            for device in node.devices:
                if (node.id, device.id) == (action.node, action.device):
                    return device
        raise BackendDownError(CLUSTER, f"there is no device {action.device} on {action.node}")

    def _seen(self) -> tuple[Node, ...]:
        return tuple(
            _node(name, rack, self._marked(name, rack)) for name, rack in self._racks.items()
        )

    def _marked(self, name: str, rack: Pretend) -> tuple[Device, ...]:
        """The devices of a node with how they are cut and what is wrong with them."""
        return tuple(
            _with_fault(
                replace(device, mig=self._layouts.get(device.id)),
                self._faults.get(device.id, ""),
            )
            for device in _devices(name, rack)
        )


def _with_fault(device: Device, fault: str) -> Device:
    state = _state_of(fault)
    if state is DeviceState.WELL:
        return device
    return replace(device, healthy=state.takes_work, judged=state, reason=fault)


def _state_of(fault: str) -> DeviceState:
    """What is no Xid breaks the device, whatever it says."""
    number = _xid_in(fault)
    if number is None:
        return DeviceState.BROKEN if fault else DeviceState.WELL
    xid = xid_of(number)
    if xid.verdict.breaks:
        return DeviceState.BROKEN
    return DeviceState.SUSPECT if xid.suspect else DeviceState.WELL


def _errors(before: Mapping[str, str], now: Mapping[str, str]) -> Iterator[DeviceError]:
    """The Xids that the file did not say before."""
    for id, fault in sorted(now.items()):
        number = _xid_in(fault)
        if number is not None and before.get(id) != fault:
            node = NodeId(id.partition("/")[0])
            yield DeviceError(node=node, device=DeviceId(id), xid=number)


def _xid_in(fault: str) -> int | None:
    found = _XID.match(fault)
    return None if found is None else int(found[1])


_XID = re.compile(r"Xid (\d{1,5})\b")


def _parse_gpus(text: str) -> tuple[PretendGpus, ...]:
    if text.strip().lower() in {"", "0", "none"}:
        return ()
    gpus = tuple(_parse_term(term) for term in text.split("+"))
    if sum(each.count for each in gpus) > _MOST_GPUS:
        message = f"{text!r} is more than {_MOST_GPUS} GPUs in a node: use more nodes"
        raise BadPretendError(message)
    return gpus


def _parse_term(term: str) -> PretendGpus:
    found = _TERM.fullmatch(term.strip())
    if found is None or found[1] == "0":
        message = f"cannot read {term.strip()!r} as pretend GPUs: {_ACCEPTED}"
        raise BadPretendError(message)
    model = GpuModel(re.sub(r"(\d+)g[bi]*$", r"\1GB", found[2], flags=re.IGNORECASE))
    memory_mib = memory_of(model)
    if not memory_mib:
        raise BadPretendError(_size_missing(model))
    return PretendGpus(count=int(found[1] or 1), model=model, memory_mib=memory_mib)


def _size_missing(model: GpuModel) -> str:
    known = " or ".join(sizes_of(model))
    hint = f"write {known}" if known else f"write the memory behind it, like {model}-40GB"
    return f"how much memory has a pretend {model}? {hint}"


def _node(name: str, pretend: Pretend, devices: tuple[Device, ...]) -> Node:
    count = len(devices)
    cpus = pretend.cpus or max(_LEAST_CPUS, _CPUS_PER_GPU * count)
    gib = pretend.memory_gib or max(_LEAST_GIB, _GIB_PER_GPU * count)
    models = sorted({str(device.model) for device in devices})
    return Node(
        id=NodeId(name),
        cluster=CLUSTER,
        pool=pretend.pool,
        cpu_milli=1_000 * cpus,
        memory_mib=1_024 * gib,
        devices=devices,
        where=pretend.where,
        labels={
            **PRETEND_LABELS,
            **({"gpu.model": models[0]} if len(models) == 1 else {}),
            **pretend.labels,
        },
        pretend=True,
    )


def _devices(name: str, pretend: Pretend) -> tuple[Device, ...]:
    kinds = [kind for kind in pretend.gpus for _ in range(kind.count)]
    return tuple(
        Device(
            id=DeviceId(f"{name}/gpu{index}"),
            index=index,
            model=kind.model,
            memory_mib=kind.memory_mib,
        )
        for index, kind in enumerate(kinds)
    )


def _can_be_cut(device: Device, instances: tuple[MigInstance, ...]) -> bool:
    return geometry(device.model) is not None and is_legal(device.model, instances)


def _legal(layouts: _Layouts, racks: Mapping[str, Pretend]) -> _Layouts:
    """Without the layouts that made sense only for other GPUs, declared at an earlier start."""
    kept: _Layouts = {}
    for id, instances in layouts.items():
        name = id.rpartition("/gpu")[0]
        there = _devices(name, racks[name]) if name in racks else ()
        if any(each.id == id and _can_be_cut(each, instances) for each in there):
            kept[id] = instances
    return kept


def _layouts_file(home: Path) -> Path:
    return home / "pretend.json"


def _faults_file(home: Path) -> Path:
    return home / "pretend-faults.json"


def _load_file(home: Path) -> Path:
    return home / "pretend-load.json"


def _read(path: Path, kind: type[_T]) -> _T:
    """What the file says; people write it by hand, so one that cannot be read says nothing."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=kind)
    except (FileNotFoundError, msgspec.DecodeError):
        return kind()


def _write(path: Path, content: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    fresh = path.with_suffix(".new")
    fresh.write_bytes(content)
    os.replace(fresh, path)
