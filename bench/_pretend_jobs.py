"""Jobs whose trouble is known, as the samples that a machine would give of them.

Nothing here knows the rules of `muster.telemetry.diagnosis`. A job is a loop over steps: input is
read and prepared, copied, computed on and exchanged, each with a time that follows from what the
job and its machine can do; one of them, or the machine, is made bad on purpose. What is measured
follows from those times and from a simple model of power, with noise of 12 percent, and with 8
percent of the minutes given to something else that jobs do. The names of troubles are those that
a person would give them; `bench/diagnosis.py` compares them with what is found.
"""

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace

from muster.model.holding import Holding
from muster.model.samples import (
    Activity,
    DeviceSample,
    HostSample,
    JobSample,
    Links,
    Pressure,
    ProcessSample,
    Samples,
    Throttle,
)
from muster.model.value import (
    ClassName,
    ClusterName,
    DeviceId,
    Instant,
    JobId,
    NodeId,
    PoolName,
    QueuePath,
    UserName,
)
from muster.telemetry.diagnosis.gathering import Moment

INTERVAL_MS = 15_000
BEGIN = 1_700_000_000_000 // 60_000 * 60_000
NOISE = 0.12
ALIEN = 0.08
NODE = NodeId("n1")

_GIB = 2**30
_ECHO = 0.062
"""So much of FP32's activity does a GPU show as its tensor cores'."""


@dataclass(frozen=True)
class Machine:
    """What a kind of machine can do. watts: of a GPU that does nothing, and at most."""

    product: str
    memory_gib: int
    idle_watts: float
    most_watts: float
    clock_mhz: int
    pcie_generation: int
    pcie_bytes: float
    nvlink_bytes: float


MACHINES = (
    Machine("NVIDIA H200", 141, 76, 700, 1_980, 5, 63e9, 450e9),
    Machine("NVIDIA H100 80GB HBM3", 80, 70, 700, 1_980, 5, 63e9, 450e9),
    Machine("NVIDIA H100 PCIe", 80, 48, 350, 1_755, 5, 63e9, 0),
)


@dataclass(frozen=True)
class Doing:
    """What a job does on one GPU in a stretch of time; parts of the time unless said otherwise.

    kernels: some kernel runs. sm, tensor, dram, fp32: of the GPU, while kernels run. exchange:
    part of the kernels' time that is spent on sending to other GPUs, at `exchange_rate` of the
    link. copies: of what PCIe can carry, over the whole time. is_stuck: it does nothing else ever.
    """

    kernels: float = 0.0
    sm: float = 0.85
    tensor: float = 0.4
    dram: float = 0.4
    fp32: float = 0.05
    occupancy: float = 0.35
    exchange: float = 0.0
    exchange_rate: float = 0.7
    copies: float = 0.02
    memory: float = 0.6
    clock: float = 0.97
    heat: float = 0.0
    capped: float = 0.0
    braked: float = 0.0
    locked: bool = False
    has_process: bool = True
    cores: float = 2.0
    thread: float = 0.6
    disk_wait: float = 0.02
    sleeping_on_disk: float = 0.0
    written_mib: float = 0.05
    read_mib: float = 40.0
    is_stuck: bool = False


Script = Callable[[random.Random, int, int], list[Doing]]
"""What all GPUs of the job do in this minute."""


@dataclass
class PretendJob:
    """A job, what is wrong with it, and all that was measured of it."""

    number: int
    trouble: str
    machine: Machine
    gpus: int
    granted_cores: int
    has_pressure: bool
    minutes: int
    script: Script
    breaks_at: int | None = None
    dice: random.Random = field(default_factory=random.Random)

    def holdings(self) -> tuple[Holding, ...]:
        return tuple(
            Holding(
                job=JobId(self.number),
                attempt=1,
                user=UserName("ada"),
                queue=QueuePath("acme/nlp"),
                job_class=ClassName("normal"),
                cluster=ClusterName("a"),
                pool=PoolName("h100"),
                node=NODE,
                device=DeviceId(f"gpu{index}"),
                gpu_milli=1_000,
                since=Instant(BEGIN),
            )
            for index in range(self.gpus)
        )

    def moments(self, *, profiled: bool) -> Iterator[Moment]:
        """Every look at it. profiled: the driver tells what the parts of a GPU do."""
        counters = [_Counters(index, profiled) for index in range(self.gpus)]
        holdings = self.holdings()
        looks_a_minute = 60_000 // INTERVAL_MS
        written = read = 0
        doing: list[Doing] = []
        for look in range(self.minutes * looks_a_minute):
            minute = look // looks_a_minute
            if look % looks_a_minute == 0:
                doing = self._doing(minute)
            at = Instant(BEGIN + look * INTERVAL_MS)
            shown = [self._blurred(each) for each in doing]
            written += int(shown[0].written_mib * 2**20 * INTERVAL_MS / 1_000)
            read += int(shown[0].read_mib * 2**20 * INTERVAL_MS / 1_000)
            devices = tuple(
                _device(self, at, each, counters[index]) for index, each in enumerate(shown)
            )
            broken = self.breaks_at is not None and minute >= self.breaks_at
            yield Moment(
                at=at,
                holdings=holdings,
                samples=(
                    Samples(
                        at=at,
                        devices=devices,
                        jobs=(_job(self, at, shown, written, read),),
                        hosts=(HostSample(node=NODE, at=at),),
                    ),
                ),
                broken=frozenset({DeviceId("gpu0")}) if broken else frozenset(),
            )

    def _doing(self, minute: int) -> list[Doing]:
        """Now and then, after its first minutes, a job does something else for a minute."""
        usual = self.script(self.dice, minute, self.gpus)
        if minute < 3 or self.dice.random() >= ALIEN:
            return usual
        other = self.dice.choice((_validating, _pausing, _saving))
        able = [each.has_process and not each.is_stuck for each in usual]
        return [
            other(self.dice, each) if can else each for each, can in zip(usual, able, strict=True)
        ]

    def _blurred(self, doing: Doing) -> Doing:
        dice = self.dice
        names = (
            "kernels sm tensor dram fp32 occupancy copies cores thread disk_wait "
            "written_mib read_mib exchange_rate"
        ).split()
        most = {"cores": self.granted_cores * 1.0, "written_mib": 1e9, "read_mib": 1e9}
        changed = {
            name: min(most.get(name, 1.0), getattr(doing, name) * dice.lognormvariate(0, NOISE))
            for name in names
        }
        if doing.is_stuck:
            # A kernel that never ends leaves no instant free.
            changed["kernels"] = doing.kernels
        return replace(doing, **changed)


class _Counters:
    """What one GPU has counted; profiled: it tells what its parts do."""

    def __init__(self, index: int, profiled: bool) -> None:  # noqa: FBT001
        self.index = index
        self.profiled = profiled
        self.heat_ns = self.cap_ns = self.brake_ns = 0
        self.nvlink_bytes = 0
        self.energy_mj = 0


def pretend_jobs(seed: int, each: int = 24) -> list[PretendJob]:
    """So many jobs of each trouble, in an order that says nothing."""
    dice = random.Random(seed)
    jobs = [_job_with(trouble, dice) for trouble in TROUBLES for _ in range(each)]
    dice.shuffle(jobs)
    for number, job in enumerate(jobs, start=1):
        job.number = number
    return jobs


def _job_with(trouble: str, dice: random.Random) -> PretendJob:
    kind = TROUBLES[trouble]
    machine = dice.choice(MACHINES[:2] if kind.nvlink else MACHINES)
    minutes = dice.randint(25, 45)
    gpus = dice.choice(kind.gpus)
    granted = gpus * dice.choice((4, 6, 8, 12, 16))
    own = random.Random(dice.random())
    return PretendJob(
        number=0,
        trouble=trouble,
        machine=machine,
        gpus=gpus,
        granted_cores=granted,
        has_pressure=dice.random() < 0.7,
        minutes=minutes,
        script=kind.make(dice, Size(gpus, granted, minutes)),
        breaks_at=dice.randint(3, 12) if trouble == "broken" else None,
        dice=own,
    )


def _well(dice: random.Random, gpus: int) -> Doing:
    """A training that is as it should be: a matrix-heavy one, or one of convolutions."""
    tensor = dice.uniform(0.28, 0.6)
    return Doing(
        kernels=dice.uniform(0.93, 1.0),
        sm=dice.uniform(0.75, 0.95),
        tensor=tensor,
        dram=dice.uniform(0.25, 0.5),
        fp32=dice.uniform(0.02, 0.12),
        occupancy=dice.uniform(0.2, 0.5),
        copies=dice.uniform(0.01, 0.06),
        memory=dice.uniform(0.45, 0.92),
        cores=gpus * dice.uniform(1.0, 3.0),
        thread=dice.uniform(0.4, 0.99),
        read_mib=dice.uniform(1, 300),
        exchange=dice.uniform(0.02, 0.12) if gpus > 1 else 0.0,
    )


def _starved(well: Doing, part: float) -> Doing:
    """The same work, for which the GPU has to wait most of the time."""
    return replace(well, kernels=well.kernels * part)


def _validating(dice: random.Random, usual: Doing) -> Doing:
    return replace(
        usual, kernels=dice.uniform(0.5, 0.9), sm=0.6, tensor=0.25, dram=0.3, exchange=0.0
    )


def _pausing(dice: random.Random, usual: Doing) -> Doing:
    return replace(
        usual, kernels=0.0, copies=0.0, exchange=0.0, cores=dice.uniform(0.0, 0.3), thread=0.1,
        disk_wait=0.0,
    )  # fmt: skip


def _saving(dice: random.Random, usual: Doing) -> Doing:
    return replace(
        usual, kernels=dice.uniform(0.0, 0.1), exchange=0.0, written_mib=dice.uniform(300, 2_000),
        disk_wait=dice.uniform(0.2, 0.6), cores=1.0, thread=0.7,
    )  # fmt: skip


def _all(make: Callable[[random.Random], Doing]) -> Script:
    return lambda dice, _minute, gpus: [make(dice)] * gpus


@dataclass(frozen=True)
class Size:
    """What a job has: GPUs, cores in all, and how long it runs."""

    gpus: int
    granted: int
    minutes: int


Make = Callable[[random.Random, Size], Script]


def _make_fine(dice: random.Random, of: Size) -> Script:
    well = _well(dice, of.gpus)
    return _all(lambda _: well)


def _make_memory_bound(dice: random.Random, of: Size) -> Script:
    doing = replace(
        _well(dice, of.gpus), dram=dice.uniform(0.72, 0.93), tensor=dice.uniform(0.0, 0.12)
    )
    return _all(lambda _: doing)


def _make_no_tensor(dice: random.Random, of: Size) -> Script:
    doing = replace(
        _well(dice, of.gpus),
        tensor=dice.uniform(0.0, 0.004),
        fp32=dice.uniform(0.3, 0.7),
        dram=dice.uniform(0.15, 0.45),
    )
    return _all(lambda _: doing)


def _small(dice: random.Random, gpus: int) -> Doing:
    """Kernels so small that starting them takes as long as they do, in one thread."""
    return replace(
        _well(dice, gpus),
        kernels=dice.uniform(0.78, 1.0),
        sm=dice.uniform(0.08, 0.32),
        tensor=dice.uniform(0.0, 0.08),
        dram=dice.uniform(0.03, 0.18),
        fp32=dice.uniform(0.01, 0.06),
        occupancy=dice.uniform(0.05, 0.25),
        thread=dice.uniform(0.85, 1.0),
        cores=gpus * dice.uniform(1.0, 1.6),
        exchange=0.0,
    )


def _make_small_work(dice: random.Random, of: Size) -> Script:
    doing = replace(_small(dice, of.gpus), memory=dice.uniform(0.35, 0.9))
    return _all(lambda _: doing)


def _make_oversized(dice: random.Random, of: Size) -> Script:
    small = replace(_small(dice, of.gpus), sm=dice.uniform(0.05, 0.2))
    quiet = replace(_quiet(dice), kernels=dice.uniform(0.03, 0.25), sm=dice.uniform(0.2, 0.6))
    doing = replace(dice.choice((small, quiet)), memory=dice.uniform(0.04, 0.2))
    return _all(lambda _: doing)


def _quiet(dice: random.Random) -> Doing:
    """A service with few requests, or a program that waits for somebody far away."""
    return replace(
        _well(dice, 1),
        kernels=dice.uniform(0.04, 0.5),
        cores=dice.uniform(0.02, 0.4),
        thread=dice.uniform(0.02, 0.25),
        disk_wait=dice.uniform(0.0, 0.03),
        read_mib=dice.uniform(0, 2),
    )


def _make_waiting(dice: random.Random, _of: Size) -> Script:
    doing = replace(_quiet(dice), memory=dice.uniform(0.4, 0.9))
    return _all(lambda _: doing)


def _make_input_cpu(dice: random.Random, of: Size) -> Script:
    """Every of.granted core prepares input, and it is not enough."""
    doing = replace(
        _starved(_well(dice, of.gpus), dice.uniform(0.05, 0.58)),
        cores=of.granted * dice.uniform(0.93, 1.0),
        thread=dice.uniform(0.9, 1.0),
        disk_wait=dice.uniform(0.0, 0.15),
    )
    return _all(lambda _: doing)


def _make_input_io(dice: random.Random, of: Size) -> Script:
    """Loaders wait for a disk that cannot give more."""
    doing = replace(
        _starved(_well(dice, of.gpus), dice.uniform(0.03, 0.58)),
        cores=of.granted * dice.uniform(0.05, 0.45),
        thread=dice.uniform(0.1, 0.6),
        disk_wait=dice.uniform(0.4, 0.98),
        sleeping_on_disk=dice.uniform(0.3, 0.8),
        read_mib=dice.uniform(5, 400),
    )
    return _all(lambda _: doing)


def _make_host(dice: random.Random, of: Size) -> Script:
    """One thread for each process does everything in turn."""
    doing = replace(
        _starved(_well(dice, of.gpus), dice.uniform(0.1, 0.6)),
        cores=of.gpus * dice.uniform(1.0, 1.3),
        thread=dice.uniform(0.96, 1.0),
        disk_wait=dice.uniform(0.0, 0.1),
    )
    return _all(lambda _: doing)


def _make_copying(dice: random.Random, of: Size) -> Script:
    """It keeps what it computes on in the machine's memory."""
    doing = replace(
        _starved(_well(dice, of.gpus), dice.uniform(0.15, 0.6)),
        copies=dice.uniform(0.72, 0.95),
        thread=dice.uniform(0.5, 1.0),
    )
    return _all(lambda _: doing)


def _make_communication(dice: random.Random, of: Size) -> Script:
    doing = replace(
        _well(dice, of.gpus),
        kernels=dice.uniform(0.95, 1.0),
        exchange=dice.uniform(0.55, 0.85),
        exchange_rate=dice.uniform(0.45, 0.9),
    )
    return _all(lambda _: doing)


def _make_straggler(dice: random.Random, of: Size) -> Script:
    """One GPU is slow, or has more to do; the others wait in their collectives."""
    well, slow = _well(dice, of.gpus), dice.randrange(of.gpus)
    if dice.random() < 0.5:
        clock = dice.uniform(0.35, 0.65)
        others = replace(
            well, sm=well.sm * clock, tensor=well.tensor * clock, dram=0.2, kernels=1.0
        )
        slowed = replace(well, clock=clock, kernels=1.0)
    else:
        part = dice.uniform(0.25, 0.5)
        others = replace(well, sm=well.sm * part, tensor=well.tensor * part, dram=0.15, kernels=1.0)
        slowed = replace(well, kernels=1.0)
    return lambda _dice, _minute, n: [slowed if i == slow else others for i in range(n)]


def _make_hang(dice: random.Random, of: Size) -> Script:
    """After some work, a collective that nobody ends; or storage that no longer answers."""
    well, stops = _well(dice, of.gpus), dice.randint(2, of.minutes // 4)
    spinning = replace(
        well, kernels=1.0, sm=dice.uniform(0.03, 0.2), tensor=0.0, dram=dice.uniform(0, 0.006),
        fp32=0.0, copies=0.0, exchange=0.0, thread=1.0, cores=of.gpus * 1.0, written_mib=0.0,
        read_mib=0.0, disk_wait=0.0, is_stuck=True,
    )  # fmt: skip
    silent = replace(
        well, kernels=0.0, copies=0.0, exchange=0.0, thread=0.0, cores=0.0, written_mib=0.0,
        read_mib=0.0, disk_wait=0.97, sleeping_on_disk=dice.uniform(0.75, 1.0), is_stuck=True,
    )  # fmt: skip
    stuck = dice.choice((spinning, silent))
    return lambda _dice, minute, n: [well if minute < stops else stuck] * n


def _make_idle(dice: random.Random, of: Size) -> Script:
    well, stops = _well(dice, of.gpus), dice.randint(2, of.minutes // 5)
    still = replace(
        well, kernels=0.0, copies=0.0, exchange=0.0, cores=dice.uniform(0, 0.3),
        thread=dice.uniform(0, 0.2), read_mib=0.0, disk_wait=0.0,
    )  # fmt: skip
    return lambda _dice, minute, n: [well if minute < stops else still] * n


def _nobody(dice: random.Random, granted: int) -> Doing:
    return Doing(
        has_process=False, memory=0.004, copies=0.0, occupancy=0.0,
        cores=granted * dice.uniform(0.02, 0.9), thread=dice.uniform(0.1, 1.0),
    )  # fmt: skip


def _make_never_used(dice: random.Random, of: Size) -> Script:
    doing = _nobody(dice, of.granted)
    return _all(lambda _: doing)


def _make_some_unused(dice: random.Random, of: Size) -> Script:
    used = dice.randint(1, of.gpus // 2)
    well, nobody = _well(dice, used), _nobody(dice, of.granted)
    return lambda _dice, _minute, n: [well if i < used else nobody for i in range(n)]


def _make_heat(dice: random.Random, of: Size) -> Script:
    doing = replace(
        _well(dice, of.gpus), heat=dice.uniform(0.3, 1.0), clock=dice.uniform(0.5, 0.78)
    )
    return _all(lambda _: doing)


def _make_power(dice: random.Random, of: Size) -> Script:
    doing = replace(
        _well(dice, of.gpus), capped=dice.uniform(0.8, 1.0), clock=dice.uniform(0.45, 0.74)
    )
    return _all(lambda _: doing)


def _make_brake(dice: random.Random, of: Size) -> Script:
    doing = replace(
        _well(dice, of.gpus), braked=dice.uniform(0.3, 1.0), clock=dice.uniform(0.3, 0.7)
    )
    return _all(lambda _: doing)


def _make_clocks(dice: random.Random, of: Size) -> Script:
    doing = replace(_well(dice, of.gpus), locked=True, clock=dice.uniform(0.35, 0.75))
    return _all(lambda _: doing)


def _make_checkpoint(dice: random.Random, of: Size) -> Script:
    """It stops for minutes, again and again, to write down where it is."""
    well = _well(dice, of.gpus)
    every = dice.randint(5, 9)
    takes = dice.randint(2, every // 2)
    rate = dice.uniform(150, 2_000)

    def script(dice: random.Random, minute: int, n: int) -> list[Doing]:
        saving = replace(_saving(dice, well), written_mib=rate)
        return [saving if minute % every >= every - takes else well] * n

    return script


def _make_broken(dice: random.Random, of: Size) -> Script:
    well = _well(dice, of.gpus)
    return _all(lambda _: well)


@dataclass(frozen=True)
class Trouble:
    """How a job of this kind is made, and on how many GPUs."""

    make: Make
    gpus: tuple[int, ...] = (1, 2, 4)
    nvlink: bool = False
    shows_unprofiled: bool = True


TROUBLES: dict[str, Trouble] = {
    "fine": Trouble(_make_fine),
    "memory_bound": Trouble(_make_memory_bound, shows_unprofiled=False),
    "no_tensor": Trouble(_make_no_tensor, shows_unprofiled=False),
    "small_work": Trouble(_make_small_work),
    "oversized": Trouble(_make_oversized, gpus=(1,), shows_unprofiled=False),
    "waiting": Trouble(_make_waiting),
    "input_cpu": Trouble(_make_input_cpu),
    "input_io": Trouble(_make_input_io),
    "host": Trouble(_make_host),
    "copying": Trouble(_make_copying, shows_unprofiled=False),
    "communication": Trouble(_make_communication, gpus=(2, 4, 8), nvlink=True),
    "straggler": Trouble(_make_straggler, gpus=(4, 8), nvlink=True),
    "hang": Trouble(_make_hang),
    "idle": Trouble(_make_idle),
    "never_used": Trouble(_make_never_used),
    "some_unused": Trouble(_make_some_unused, gpus=(2, 4, 8)),
    "heat": Trouble(_make_heat),
    "power": Trouble(_make_power),
    "brake": Trouble(_make_brake),
    "clocks": Trouble(_make_clocks),
    "checkpoint": Trouble(_make_checkpoint),
    "broken": Trouble(_make_broken, gpus=(1,)),
}


def _watts(job: PretendJob, doing: Doing) -> float:
    """Leakage and clocks are paid whenever a kernel runs; the rest goes with what it does.

    Power falls with clock and voltage together, so nearly with the square of the clock.
    """
    machine = job.machine
    if doing.capped:
        return machine.most_watts * job.dice.uniform(0.96, 1.0)
    computing = doing.kernels * (1 - doing.exchange)
    exchanging = doing.kernels * doing.exchange
    dynamic = (
        0.14 * doing.kernels
        + computing
        * (0.30 * doing.sm + 0.45 * doing.tensor + 0.30 * doing.dram + 0.35 * doing.fp32)
        + exchanging * 0.22
        + 0.08 * doing.copies
    )
    most = machine.most_watts - machine.idle_watts
    return min(machine.most_watts, machine.idle_watts + most * dynamic * doing.clock**1.6)


def _device(job: PretendJob, at: Instant, doing: Doing, counted: _Counters) -> DeviceSample:
    machine, ns, index = job.machine, INTERVAL_MS * 1_000_000, counted.index
    counted.heat_ns += int(ns * doing.heat)
    counted.cap_ns += int(ns * doing.capped)
    counted.brake_ns += int(ns * doing.braked)
    computing = doing.kernels * (1 - doing.exchange)
    exchanging = doing.kernels * doing.exchange
    rate = exchanging * doing.exchange_rate * machine.nvlink_bytes
    counted.nvlink_bytes += int(2 * rate * INTERVAL_MS / 1_000)
    watts = _watts(job, doing)
    counted.energy_mj += int(watts * INTERVAL_MS)
    memory = int(doing.memory * machine.memory_gib * _GIB)
    reasons = [
        (doing.heat, Throttle.SW_THERMAL),
        (doing.capped, Throttle.POWER_CAP),
        (doing.braked, Throttle.HW_POWER_BRAKE),
    ]
    throttles = [reason for part, reason in reasons if job.dice.random() < part]
    if doing.locked:
        throttles.append(Throttle.CLOCKS_SETTING)
    pcie = int(doing.copies * machine.pcie_bytes)
    if not machine.nvlink_bytes:
        pcie = int(min(1.0, doing.copies + exchanging * doing.exchange_rate) * machine.pcie_bytes)
    # A GPU with nothing to do clocks down.
    resting = 0.18 if doing.kernels < 0.01 else 1.0
    return DeviceSample(
        device=DeviceId(f"gpu{index}"),
        node=NODE,
        at=at,
        index=index,
        product=machine.product,
        interval_ms=INTERVAL_MS,
        busy_milli=int(1_000 * doing.kernels) // 10 * 10,
        memory_used_bytes=memory,
        memory_free_bytes=machine.memory_gib * _GIB - memory,
        memory_reserved_bytes=0,
        temperature_c=int(35 + 45 * watts / machine.most_watts + 12 * doing.heat),
        power_mw=int(watts * 1_000),
        power_limit_mw=int(machine.most_watts * 1_000),
        energy_mj_total=counted.energy_mj,
        sm_clock_mhz=int(machine.clock_mhz * doing.clock * resting),
        sm_clock_most_mhz=machine.clock_mhz,
        throttles=tuple(throttles),
        throttled_ns={
            "sw_thermal": counted.heat_ns,
            "hw_thermal": 0,
            "power": counted.cap_ns,
            "hw_power_brake": counted.brake_ns,
        },
        activity=None
        if not counted.profiled
        else Activity(
            graphics_milli=int(1_000 * doing.kernels),
            sm_milli=int(1_000 * (computing * doing.sm + exchanging * 0.15)),
            occupancy_milli=int(1_000 * (computing * doing.occupancy + exchanging * 0.05)),
            tensor_milli=int(1_000 * computing * (doing.tensor + _ECHO * doing.fp32)),
            dram_milli=int(1_000 * (computing * doing.dram + exchanging * 0.08)),
            fp32_milli=int(1_000 * computing * doing.fp32),
            fp64_milli=0,
            pcie_sent_bytes_per_s=pcie // 3,
            pcie_received_bytes_per_s=pcie,
            nvlink_sent_bytes_per_s=int(rate) if machine.nvlink_bytes else None,
            nvlink_received_bytes_per_s=int(rate) if machine.nvlink_bytes else None,
        ),
        links=Links(
            pcie_generation=machine.pcie_generation,
            pcie_generation_most=machine.pcie_generation,
            pcie_width=16,
            pcie_width_most=16,
            nvlink_bytes_total=counted.nvlink_bytes if machine.nvlink_bytes else None,
        ),
        processes=(
            (ProcessSample(pid=100 + index, job=JobId(job.number), attempt=1, memory_bytes=memory),)
            if doing.has_process
            else ()
        ),
    )


def _job(job: PretendJob, at: Instant, doing: list[Doing], written: int, read: int) -> JobSample:
    """Of the first GPU's process what is counted once: the job's side is one."""
    first = doing[0]
    return JobSample(
        job=JobId(job.number),
        attempt=1,
        node=NODE,
        at=at,
        interval_ms=INTERVAL_MS,
        processes=4 + job.gpus,
        cpu_granted_milli=job.granted_cores * 1_000,
        cpu_used_milli=int(1_000 * first.cores),
        busiest_thread_milli=int(1_000 * first.thread),
        memory_bytes=20 * _GIB,
        memory_peak_bytes=22 * _GIB,
        memory_limit_bytes=64 * _GIB,
        read_bytes_total=read,
        written_bytes_total=written,
        read_bytes_per_s=int(first.read_mib * 2**20),
        written_bytes_per_s=int(first.written_mib * 2**20),
        blocked_milli=int(1_000 * first.sleeping_on_disk),
        pressure=Pressure(io_milli=int(1_000 * first.disk_wait) if job.has_pressure else None),
    )
