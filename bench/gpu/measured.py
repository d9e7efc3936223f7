"""Proves on a real NVIDIA GPU that what Muster measures is so, and that it names causes rightly.

Run in the repository: `PYTHONPATH=$PWD/src python -m bench.gpu.measured --out measured.json`.
It needs Python 3.11 or newer, msgspec and nvidia-ml-py; no compiler and no framework; `--parts`
runs some of it. All of them take eleven minutes. It changes no setting of the GPU.
It ends with 1 if anything does not hold, and with 2 where there is no GPU.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import mean
from typing import Any

import msgspec

from bench.gpu.jobs import Jobs
from bench.gpu.load import BURNERS, JOBS
from bench.gpu.prove import answer, attempted, begun, closed, expect_ready, say
from bench.gpu.stretched import stretched
from muster.backends.local.hardware.machine import Machine, find_machine
from muster.backends.local.hardware.nvml import Nvml, NvmlError, RawGpu, open_nvml
from muster.backends.local.measuring.gpu_sampler import GpuSampler, SampledNode
from muster.model.efficiency import JobReport
from muster.model.gpu import MpsShare
from muster.model.holding import Holding
from muster.model.placement import DeviceShare, Placement
from muster.model.resources import Resources
from muster.model.samples import DeviceSample, Samples
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
from muster.telemetry.diagnosis.course import is_still
from muster.telemetry.diagnosis.gathering import Gathering, Moment
from muster.telemetry.diagnosis.reading import Surroundings, signals_of
from muster.telemetry.diagnosis.reporting import Account
from muster.telemetry.diagnosis.thresholds import STARTING_VALUES

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
NODE = NodeId("node")

Found = dict[str, Any]


@dataclass
class Bench:
    """The first GPU, and the sampler that the product uses."""

    home: Path
    nvml: Nvml
    sampler: GpuSampler
    gpu: RawGpu
    machine: Machine

    def look(self) -> DeviceSample:
        """One look at the first GPU, as the watch's thread takes it."""
        (found, *_) = self.sampler.look((self.gpu,), _now())
        return found

    def looks(self, pause_s: float) -> tuple[DeviceSample, DeviceSample]:
        """Two looks; the second has the means of the time between them."""
        before = self.look()
        time.sleep(pause_s)
        return before, self.look()


def main() -> int:
    asked = _arguments()
    try:
        nvml = open_nvml()
    except (ImportError, NvmlError) as problem:
        print(f"no GPU: {problem}")
        return 2
    # Short, because sockets lie in it.
    with tempfile.TemporaryDirectory(prefix="muster-measured-", dir="/tmp") as home:
        bench = Bench(
            home=Path(home),
            nvml=nvml,
            sampler=GpuSampler(nvml, SampledNode(node=NODE, driver=nvml.driver())),
            gpu=nvml.gpus()[0][0],
            machine=find_machine(Path(home)),
        )
        parts = {
            name: attempted(name, lambda part=PARTS[name]: part(bench)) for name in asked.parts
        }
        bench.machine.close()
    ok = all(part["ok"] for part in parts.values())
    about = {"product": bench.gpu.product, "driver": nvml.driver()}
    text = json.dumps({"ok": ok, **about, **parts}, indent=2, default=str)
    # What is kept names no machine.
    asked.out.write_text(text.replace(bench.gpu.uuid, "GPU-0") + "\n", encoding="utf-8")
    print(f"\nwritten to {asked.out}: {'everything holds' if ok else 'something does not hold'}")
    return 0 if ok else 1


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="proof of what is measured")
    parser.add_argument("--out", type=Path, default=HERE / "measured.json")
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=tuple(PARTS))
    return parser.parse_args()


# NVML beside nvidia-smi


_ASKED: Mapping[str, tuple[Callable[[DeviceSample], float | None], float]] = {
    "memory.used": (lambda each: _mib(each.memory_used_bytes), 2),
    "memory.free": (lambda each: _mib(each.memory_free_bytes), 2),
    "memory.reserved": (lambda each: _mib(each.memory_reserved_bytes), 2),
    "temperature.gpu": (lambda each: each.temperature_c, 1),
    "temperature.memory": (lambda each: each.memory_temperature_c, 1),
    "power.draw.average": (lambda each: _thousandth(each.power_mw), 15),
    "enforced.power.limit": (lambda each: _thousandth(each.power_limit_mw), 0.5),
    "power.limit": (lambda each: _thousandth(each.power_limit_set_mw), 0.5),
    "clocks.sm": (lambda each: each.sm_clock_mhz, 45),
    "clocks.mem": (lambda each: each.memory_clock_mhz, 1),
    "clocks.max.sm": (lambda each: each.sm_clock_most_mhz, 0),
    "utilization.gpu": (lambda each: _tenth(each.busy_milli), 10),
    "utilization.memory": (lambda each: _tenth(each.copy_milli), 10),
    "pcie.link.gen.gpucurrent": (lambda each: each.links.pcie_generation, 0),
    "pcie.link.width.current": (lambda each: each.links.pcie_width, 0),
    "pcie.link.width.max": (lambda each: each.links.pcie_width_most, 0),
    "ecc.errors.corrected.volatile.total": (
        lambda each: each.memory_errors.corrected_total,
        0,
    ),
    "ecc.errors.uncorrected.volatile.total": (
        lambda each: each.memory_errors.uncorrected_total,
        0,
    ),
    "ecc.errors.corrected.aggregate.total": (lambda each: each.memory_errors.corrected_ever, 0),
}
"""By nvidia-smi's names: what we measure, and how far both may be apart."""


def beside_smi(bench: Bench) -> Found:
    """Idle and under load; ours must lie between what nvidia-smi says before and after."""
    rows: list[Found] = []
    rows += _beside_smi(bench, "idle")
    with _loaded("kernel", "spin", "1056", "256", "100", "10"):
        time.sleep(3)
        rows += _beside_smi(bench, "loaded")
    for row in rows:
        print(f"{row['when']:7} {row['field']:40} {row['smi']} {row['ours']} {row['agrees']}")
    known = [row for row in rows if row["agrees"] is not None]
    return {"ok": len(known) > 20 and all(row["agrees"] for row in known), "rows": rows}


def _beside_smi(bench: Bench, when: str) -> Iterator[Found]:
    before = _smi()
    sample = bench.look()
    after = _smi()
    for field, (ours, off) in _ASKED.items():
        told = [value for each in (before, after) if (value := each.get(field)) is not None]
        found = ours(sample)
        agrees = None
        if told and found is not None:
            agrees = min(told) - off <= found <= max(told) + off
        yield {"when": when, "field": field, "smi": told, "ours": found, "agrees": agrees}


def _smi() -> Mapping[str, float | None]:
    """What it says of the fields that this version of it knows."""
    known = _printed("--help-query-gpu")
    fields = [field for field in _ASKED if f'"{field}"' in known]
    values = _printed(f"--query-gpu={','.join(fields)}", "--format=csv,noheader,nounits")
    return {
        field: _number(text)
        for field, text in zip(fields, values.splitlines()[0].split(","), strict=True)
    }


def _printed(*options: str) -> str:
    command = ("nvidia-smi", *options)
    done = subprocess.run(command, capture_output=True, text=True, check=True)  # noqa: S603
    return done.stdout


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


# GPM beside kernels of known load


@dataclass(frozen=True)
class Known:
    """load: what runs. expected: least and most of each, as parts of one."""

    name: str
    load: tuple[str, ...]
    expected: Mapping[str, tuple[float, float]]


# FP32 shows as activity of the tensor cores too, though they do nothing.
_ECHO = (0, 0.07)

_NOTHING = {"graphics": (0, 0.02), "sm": (0, 0.02), "tensor": (0, 0.01), "dram": (0, 0.03)}

LOADS = (
    Known("nothing", (), _NOTHING),
    Known(
        "a quarter of the SMs",
        ("kernel", "spin", "33", "1024", "100"),
        {"graphics": (0.9, 1), "sm": (0.21, 0.27), "occupancy": (0.1, 0.14), "tensor": _ECHO},
    ),
    Known(
        "half of the SMs",
        ("kernel", "spin", "66", "1024", "100"),
        {"graphics": (0.9, 1), "sm": (0.45, 0.52), "occupancy": (0.22, 0.27)},
    ),
    Known(
        "all SMs",
        ("kernel", "spin", "1056", "256", "100"),
        # The oldest warps go first, so that those of one kernel end one after the other.
        {
            "sm": (0.9, 1),
            "occupancy": (0.5, 1),
            "fp32": (0.3, 1),
            "dram": (0, 0.05),
            "tensor": _ECHO,
        },
    ),
    Known(
        "all SMs, half of the time",
        ("kernel", "spin", "1056", "256", "50"),
        {"graphics": (0.4, 0.6), "sm": (0.4, 0.6)},
    ),
    Known(
        "FP64", ("kernel", "spin64", "1056", "256", "100"), {"fp64": (0.3, 1), "fp32": (0, 0.05)}
    ),
    Known("tensor cores", ("kernel", "tensor", "1056", "256", "100"), {"tensor": (0.3, 1)}),
    Known(
        "memory",
        ("kernel", "stream", "1056", "256", "100"),
        {"dram": (0.6, 1), "tensor": (0, 0.01), "sm": (0.6, 1), "occupancy": (0.85, 1)},
    ),
)


def gpm(bench: Bench) -> Found:
    """Means over four seconds, beside what must come out."""
    rows = [_gpm(bench, known) for known in LOADS]
    copied, pcie = _copied(bench)
    rows.append(
        {
            "load": "copies to the GPU",
            "seen": {"bytes_per_s": pcie},
            "expected": {"bytes_per_s": copied},
            "ok": pcie is not None and 0.9 * copied <= pcie <= 1.15 * copied,
        }
    )
    for row in rows:
        print(f"{row['load']:28} {'ok ' if row['ok'] else 'NOT'} {row['seen']}")
    return {"ok": all(row["ok"] for row in rows), "rows": rows}


def _gpm(bench: Bench, known: Known) -> Found:
    if known.load:
        with _loaded(*known.load, "7"):
            time.sleep(2)
            _, after = bench.looks(4)
    else:
        time.sleep(2)
        _, after = bench.looks(4)
    if after.activity is None:
        return {"load": known.name, "ok": False, "seen": "no GPM on this GPU", "expected": {}}
    told = msgspec.to_builtins(after.activity)
    seen = {
        name.removesuffix("_milli"): value / 1_000
        for name, value in told.items()
        if name.endswith("_milli") and value is not None
    }
    ok = all(least <= seen.get(name, -1) <= most for name, (least, most) in known.expected.items())
    return {"load": known.name, "ok": ok, "seen": seen, "expected": known.expected}


def _copied(bench: Bench) -> tuple[float, int | None]:
    with _loaded("copy", "7") as load:
        time.sleep(2)
        _, after = bench.looks(4)
        answer = load.answer()
    activity = after.activity
    return answer["bytes_per_s"], activity and activity.pcie_received_bytes_per_s


# Several processes on one GPU


_HELD_MIB = (512, 1_024, 2_048, 4_096)


def sharers(bench: Bench) -> Found:
    """In turns, by what they compute and hold; under MPS, by what they hold."""
    turns = _seen_apart(bench, [{}] * len(_HELD_MIB))
    placements = [_mps_placement(bench, index) for index in range(len(_HELD_MIB))]
    joined: list[Placement] = []
    try:
        envs: list[Mapping[str, str]] = []
        for placement in placements:
            envs.append(bench.machine.sharing(placement))
            joined.append(placement)
        mps = _seen_apart(bench, envs)
    finally:
        for placement in joined:
            bench.machine.release(placement)
    for name, seen in (("in turns", turns), ("MPS", mps)):
        print(f"{name}: {json.dumps(seen)}")
    return {
        "ok": turns["apart"] and mps["apart"],
        "in_turns": turns,
        "under_mps": mps,
    }


def _seen_apart(bench: Bench, envs: Sequence[Mapping[str, str]]) -> Found:
    loads = [
        Load(("hold", str(mib), "16", "12"), env) for mib, env in zip(_HELD_MIB, envs, strict=True)
    ]
    try:
        for each in loads:
            each.begin()
        time.sleep(3)
        _, after = bench.looks(5)
    finally:
        for each in loads:
            each.end()
    seen = {each.pid: each for each in after.processes or ()}
    rows: list[Found] = []
    for mib, load in zip(_HELD_MIB, loads, strict=True):
        own = seen.get(load.pid)
        held = None if own is None or own.memory_bytes is None else own.memory_bytes >> 20
        rows.append(
            {
                "held_mib": mib,
                "seen_mib": held,
                "sm_milli": own and own.sm_milli,
                # A context takes a few hundred MiB beside.
                "ok": held is not None and mib <= held <= mib + 700,
            }
        )
    others = [msgspec.to_builtins(each) for pid, each in seen.items() if pid not in _pids(loads)]
    return {
        "apart": all(row["ok"] for row in rows),
        "rows": rows,
        "others": others,
        "busy_milli": after.busy_milli,
    }


def _pids(loads: Sequence["Load"]) -> set[int]:
    return {each.pid for each in loads}


def _mps_placement(bench: Bench, index: int) -> Placement:
    share = MpsShare(milli=250, memory_mib=16_384)
    return Placement(
        group="proof",
        index=index,
        node=bench.machine.nodes()[0].id,
        pool=bench.machine.nodes()[0].pool,
        amount=Resources(gpu_milli=250),
        devices=(DeviceShare(device=DeviceId(bench.gpu.uuid), slice=share),),
    )


# The power of a kernel that never ends


def stuck(bench: Bench) -> Found:
    """It must look still to the rules, and kernels that work must not."""
    rows: list[Found] = []
    for blocks, threads in ((1, 512), (24, 512), (132, 640)):
        rows.append(_stillness(bench, f"stuck on {blocks}", ("stuck", str(blocks), str(threads))))
    small = ("kernel", "spin", "16", "128", "100", "9")
    rows.append(_stillness(bench, "small kernels", small) | {"expected": None})
    full = ("kernel", "tensor", "1056", "256", "100", "9")
    rows.append(_stillness(bench, "full kernels", full) | {"expected": False})
    for row in rows:
        print(row)
    ok = all(row["still"] is row["expected"] for row in rows if row["expected"] is not None)
    return {"ok": ok, "rows": rows, "limit_of_power": STARTING_VALUES.still_power}


def _stillness(bench: Bench, name: str, command: tuple[str, ...]) -> Found:
    with _loaded(*command):
        time.sleep(3)
        before, after = bench.looks(4)
    signals = signals_of(after, _holding(bench, JobId(1)), Surroundings(device_before=before))
    shown = {
        each: round(getattr(signals, each), 1)
        for each in ("busy", "power", "sm", "tensor", "fp32", "dram", "link")
    }
    still = is_still(signals, STARTING_VALUES)
    watts = None if after.power_mw is None else after.power_mw / 1_000
    return {"load": name, "still": still, "expected": True, "watts": watts, **shown}


# What sampling costs those who compute


_PERIODS = 12
_PERIOD_S = 4.0


def throughput(bench: Bench) -> Found:
    """Small kernels, while the GPU is sampled every second and while it is not, in turns.

    The product samples every fifteen seconds: it costs a fifteenth of what is seen here.
    """
    sampled: list[tuple[float, float]] = []
    looks_ms: list[float] = []
    with _loaded("pace", str(2 * _PERIODS * _PERIOD_S + 1)) as load:
        time.sleep(0.5)
        for _ in range(_PERIODS):
            sampled.append(_sampled_for(bench, _PERIOD_S, looks_ms))
            time.sleep(_PERIOD_S)
        ended = load.answer()["ended"]
    inside = [count for at, count in ended if any(since < at <= until for since, until in sampled)]
    outside = [
        count for at, count in ended if not any(since < at <= until for since, until in sampled)
    ]
    ratio = mean(inside) / mean(outside)
    usual = 1 - (1 - ratio) / 15
    print(f"sampled every second {ratio:.4f} of without; every fifteen {usual:.4f}")
    return {
        "ok": usual >= 0.995,
        "every_second": round(ratio, 5),
        "every_fifteen": round(usual, 5),
        "kernels_per_s": round(10 * mean(outside)),
        "look_ms": round(mean(looks_ms), 2),
    }


def _sampled_for(bench: Bench, seconds: float, looks_ms: list[float]) -> tuple[float, float]:
    since = time.time()
    while (left := since + seconds - time.time()) > 0:
        began = time.perf_counter()
        bench.look()
        bench.nvml.reading(bench.gpu.uuid)
        looks_ms.append(1_000 * (time.perf_counter() - began))
        time.sleep(min(max(0.0, left), 1.0))
    return since, time.time()


# Causes


_ACTS_S = 26
_SETTLES_S = 7
_LOOKS_EVERY_S = 3.5
_LASTS_MINUTES = 20


class Quick(Machine):
    """The machine, whose GPUs are measured whenever somebody asks."""

    def __init__(self, bench: Bench, machine: Machine) -> None:
        self.__dict__.update(machine.__dict__)
        self._bench = bench

    def samples(self, now: Instant) -> tuple[DeviceSample, ...]:
        del now
        return (self._bench.look(),)


def causes(bench: Bench) -> Found:
    """Jobs through the real backend. What is measured of each lasts for twenty minutes then.

    Nothing is made up: the looks at a job are laid one after the other, again and again, so that
    patience of minutes need not be waited for.
    """
    rows = [_cause(bench, name, job) for job, name in enumerate(JOBS, 1)]
    right = sum(row["named"] == row["job"] for row in rows)
    for row in rows:
        print(f"{row['job']:14} {row['named']} ({row['confidence']}) {row['signals']}")
    print(f"{right} of {len(rows)} named")
    return {"ok": right == len(rows), "right": right, "of": len(rows), "rows": rows}


def _cause(bench: Bench, name: str, number: int) -> Found:
    home = bench.home / f"j{number}"
    home.mkdir()
    machine = Quick(bench, find_machine(home))
    jobs = Jobs(home, machine=machine)
    argv = ("-m", "bench.gpu.load", "act", name, str(_ACTS_S))
    device = DeviceShare(device=DeviceId(bench.gpu.uuid))
    node = machine.nodes()[0]
    placement = Placement(
        group="proof",
        index=0,
        node=node.id,
        pool=node.pool,
        amount=Resources(cpu_milli=1_000 * BURNERS, gpu_milli=1_000),
        devices=(device,),
    )
    problems: list[str] = []

    def run() -> None:
        try:
            jobs.run(argv, (placement,))
        except RuntimeError as problem:
            problems.append(str(problem))

    thread = threading.Thread(target=run)
    thread.start()
    time.sleep(_SETTLES_S)
    looks: list[Samples] = []
    for _ in range(5):
        looks.append(jobs.samples())
        time.sleep(_LOOKS_EVERY_S)
    thread.join()
    jobs.close()
    return _judged(bench, name, looks) | {"problems": problems}


def _judged(bench: Bench, name: str, looks: Sequence[Samples]) -> Found:
    holding = _holding(bench, JobId(1))
    report = reported(holding, stretched(looks, minutes=_LASTS_MINUTES))
    last = looks[-1]
    devices = [msgspec.to_builtins(each) for each in last.devices]
    return {
        "job": name,
        "named": None if report.headline is None else report.headline.value,
        "confidence": report.confidence.value,
        "causes": {each.cause.value: each.gpu_ms // 1_000 for each in report.causes},
        "signals": report.means,
        "device": [{k: v for k, v in each.items() if k != "throttled_ns"} for each in devices],
        "processes": [msgspec.to_builtins(each) for each in last.jobs],
    }


def reported(holding: Holding, looks: Sequence[Samples]) -> JobReport:
    """What the product would report after these looks."""
    gathering, account = Gathering(), Account(holding, 2_000_000)
    for look in looks:
        account.look(look.devices, look.jobs)
        for minute in gathering.add(Moment(at=look.at, holdings=(holding,), samples=(look,))):
            account.add(minute)
    for minute in gathering.close():
        account.add(minute)
    return account.report(looks[-1].at, is_over=True)


def _holding(bench: Bench, job: JobId) -> Holding:
    return Holding(
        job=job,
        attempt=1,
        user=UserName("ada"),
        queue=QueuePath("default"),
        job_class=ClassName("normal"),
        cluster=ClusterName("local"),
        pool=PoolName("local"),
        node=bench.machine.nodes()[0].id,
        device=DeviceId(bench.gpu.uuid),
        gpu_milli=1_000,
        since=Instant(0),
    )


# Loads


class Load:
    """One process of `bench.gpu.load`."""

    def __init__(self, command: Sequence[str], env: Mapping[str, str] = {}) -> None:
        self._process = begun("bench.gpu.load", *command, env=env)

    @property
    def pid(self) -> int:
        return self._process.pid

    def begin(self) -> None:
        expect_ready(self._process)
        say(self._process, "go\n")

    def answer(self) -> Found:
        return answer(self._process)

    def end(self) -> None:
        self._process.kill()
        self._process.wait()
        closed(self._process)


@contextmanager
def _loaded(*command: str) -> Generator[Load]:
    load = Load(command)
    try:
        load.begin()
        yield load
    finally:
        load.end()


def _now() -> Instant:
    return Instant(time.time_ns() // 1_000_000)


def _mib(value: int | None) -> float | None:
    return None if value is None else value / (1 << 20)


def _thousandth(value: int | None) -> float | None:
    return None if value is None else value / 1_000


def _tenth(value: int | None) -> float | None:
    return None if value is None else value / 10


PARTS: Mapping[str, Callable[[Bench], Found]] = {
    "beside_smi": beside_smi,
    "gpm": gpm,
    "sharers": sharers,
    "stuck": stuck,
    "throughput": throughput,
    "causes": causes,
}


if __name__ == "__main__":
    sys.exit(main())
