"""GPUs and the parts they can be cut into."""

from enum import StrEnum

from muster.model.value import DeviceId, GpuModel, Value

WHOLE_GPU_MILLI = 1_000


class Mig(Value, tag="mig", gc=False):
    """A MIG instance of one profile, e.g. `1g.5gb`: memory and compute of its own, by hardware."""

    profile: str


class MpsShare(Value, tag="mps", gc=False):
    """A part of a GPU under MPS: so many threads and so much memory at most, kept by the driver.

    `milli` is the thread percentage times ten; `memory_mib` of 0 means the same part of the memory.
    """

    milli: int
    memory_mib: int = 0


class TimeShare(Value, tag="time", gc=False):
    """One of `replicas` turns on a GPU. Nothing keeps the tenants apart."""

    replicas: int


Slice = Mig | MpsShare | TimeShare


class Enforcement(StrEnum):
    """How strongly a limit is kept. Nothing claims isolation that it does not give.

    hardware: whatever the job does. driver: as long as the job keeps the variables that it was
    given. none: nothing keeps it.
    """

    HARDWARE = "hardware"
    DRIVER = "driver"
    NONE = "none"


def enforcement(part: Slice | None, *, walled: bool = True) -> Enforcement:
    """How the limit of this part, or of the whole GPU, is kept.

    walled: on a cluster that keeps jobs from devices they were not given (`device_wall`).
    """
    match part:
        case None | Mig():
            return Enforcement.HARDWARE if walled else Enforcement.NONE
        case MpsShare():
            return Enforcement.DRIVER
        case TimeShare():
            return Enforcement.NONE


class MigInstance(Value, gc=False):
    """A MIG instance that exists on a device: its profile and the memory slice it begins at."""

    profile: str
    start: int


class DeviceState(StrEnum):
    """How far a GPU is trusted. Those that are well or suspect take work."""

    WELL = "well"
    SUSPECT = "suspect"
    """It works, and is no longer as good as the others."""
    BROKEN = "broken"
    PROBATION = "probation"
    """It was broken; a test decides whether it is well again."""
    RETIRED = "retired"
    """It broke too often, or cannot be mended: only an administrator brings it back."""

    @property
    def takes_work(self) -> bool:
        return self in {DeviceState.WELL, DeviceState.SUSPECT}


class Device(Value):
    """One physical GPU. `mig` is None while MIG mode is off, else the instances that exist now.

    healthy: does it take work? judged: more exactly, where its engine tells it. reason: why it is
    not well, for people.
    turns: how many turns its engine counts on it, of which tasks have one or several; None: as many
    as tasks ask for. mps: does its engine give parts of it by MPS?
    split: its engine has split it for good into as many parts as it has turns, by MPS where `mps`
    says so. A task has one of them, and nobody all of it.
    """

    id: DeviceId
    index: int
    model: GpuModel
    memory_mib: int
    healthy: bool = True
    mig: tuple[MigInstance, ...] | None = None
    reason: str = ""
    turns: int | None = None
    mps: bool = True
    split: bool = False
    judged: DeviceState | None = None

    @property
    def state(self) -> DeviceState:
        return self.judged or (DeviceState.WELL if self.healthy else DeviceState.BROKEN)


class GpuAsk(Value, cache_hash=True, omit_defaults=True):
    """How many GPUs, or slices of GPUs, one task wants, and of which kind.

    Empty `models` accepts every model. The tasks of one group always share one model.
    """

    count: int
    slice: Slice | None = None
    models: tuple[GpuModel, ...] = ()
    min_memory_mib: int = 0
