"""Proves on a real NVIDIA GPU what the local backend promises about GPUs.

Run in the repository: `PYTHONPATH=$PWD/src python -m bench.gpu.prove --out bench/gpu/proof.json`.
It needs Python 3.11 or newer, msgspec and nvidia-ml-py; no compiler and no framework.
It changes no setting of the GPU. Each part stands alone: what fails is told, and the next runs.
It ends with 1 if anything does not hold, and with 2 where there is no GPU.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec
import pynvml  # pyright: ignore[reportMissingTypeStubs]

from muster.backends.local.hardware.machine import Machine, find_machine
from muster.backends.local.hardware.nvml import open_nvml
from muster.model.cluster import Node
from muster.model.gpu import Device, MpsShare
from muster.model.placement import DeviceShare, Placement
from muster.model.resources import Resources
from muster.model.value import Instant, replace

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
PROCESSES = 4
SHARE_MILLI = 1_000 // PROCESSES
LIMIT_MIB = 2_048
ANSWER_S = 120

Found = dict[str, Any]


@dataclass
class Proof:
    """What is known so far; later parts use what earlier ones found."""

    machine: Machine
    home: Path
    seconds: int
    parts: dict[str, Found] = field(default_factory=dict)

    @property
    def node(self) -> Node:
        return self.machine.nodes()[0]

    @property
    def device(self) -> Device:
        return self.node.devices[0]

    def placement(self, *, index: int = 0, mps: bool) -> Placement:
        """One task on the first GPU: all of it, or its part under MPS."""
        share = MpsShare(milli=SHARE_MILLI, memory_mib=LIMIT_MIB) if mps else None
        return Placement(
            group="proof",
            index=index,
            node=self.node.id,
            pool=self.node.pool,
            amount=Resources(gpu_milli=SHARE_MILLI),
            devices=(DeviceShare(device=self.device.id, slice=share),),
        )


def main() -> int:
    asked = arguments()
    # Short, because sockets lie in it.
    with tempfile.TemporaryDirectory(prefix="muster-proof-", dir="/tmp") as home:
        proof = Proof(find_machine(Path(home)), Path(home), asked.seconds)
        if not proof.node.devices:
            print("\n".join(proof.machine.remarks()))
            return 2
        for name, part in PARTS.items():
            proof.parts[name] = attempted(name, lambda part=part: part(proof))
        proof.machine.close()
    ok = all(part["ok"] for part in proof.parts.values())
    text = json.dumps({"ok": ok, **proof.parts}, indent=2, default=str)
    # What is kept names no machine.
    for device in proof.node.devices:
        text = text.replace(str(device.id), f"GPU-{device.index}")
    asked.out.parent.mkdir(parents=True, exist_ok=True)
    asked.out.write_text(text + "\n", encoding="utf-8")
    print(f"\nwritten to {asked.out}: {'everything holds' if ok else 'something does not hold'}")
    return 0 if ok else 1


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="GPU proof")
    parser.add_argument("--out", type=Path, default=HERE / "proof.json")
    parser.add_argument("--seconds", type=int, default=6, help="how long each measurement runs")
    return parser.parse_args()


def attempted(name: str, part: Callable[[], Found]) -> Found:
    print(f"\n== {name}", flush=True)
    try:
        found = part()
    except Exception as problem:  # noqa: BLE001 -- whatever fails, the other parts shall run
        traceback.print_exc()
        return {"ok": False, "problem": f"{type(problem).__name__}: {problem}"}
    found.setdefault("ok", True)
    print("holds" if found["ok"] else "DOES NOT HOLD", flush=True)
    return found


def discovery(proof: Proof) -> Found:
    nodes = [msgspec.to_builtins(node) for node in proof.machine.nodes()]
    for node in nodes:
        node["id"] = "node"
    cluster = msgspec.to_builtins(proof.machine.cluster())
    print(json.dumps(nodes, indent=2, default=str))
    remarks = list(proof.machine.remarks())
    print("\n".join(remarks))
    return {
        "ok": bool(nodes[0]["devices"]),
        "nodes": nodes,
        "cluster": cluster,
        "remarks": remarks,
    }


def health(proof: Proof) -> Found:
    """The watch looks at the device and finds nothing wrong with it."""
    deadline = time.monotonic() + 3
    while time.monotonic() < deadline:
        proof.machine.poll(Instant(int(time.time() * 1_000)))
        time.sleep(0.2)
    nvml = open_nvml()
    reading = nvml.reading(str(proof.device.id))
    nvml.close()
    print(f"{reading}: {proof.device.reason or 'healthy'}")
    return {"ok": proof.device.healthy and reading.code == 0, "reading": str(reading)}


def confinement(proof: Proof) -> Found:
    """A task sees exactly the device that it was given, and without one it sees none."""
    uuid = proof.machine.visible(DeviceShare(device=proof.device.id))
    given = ran("devices", env={"CUDA_VISIBLE_DEVICES": uuid})
    none = ran("devices", env={"CUDA_VISIBLE_DEVICES": ""})
    print(f"given {uuid}: sees {given['devices']}\ngiven nothing: sees {none['devices']}")
    ok = given["devices"] == [uuid] and none["devices"] == []
    return {"ok": ok, "given": uuid, "sees": given, "without": none}


def jobs(proof: Proof) -> Found:
    """The same through the local backend: a job with the GPU, one without, four tasks on shares."""
    # Here, so that the parts that need no backend run without one.
    from bench.gpu.jobs import Jobs  # noqa: PLC0415

    backend = Jobs(proof.home / "jobs")
    devices, fill = ("-m", "bench.gpu.task", "devices"), ("-m", "bench.gpu.task", "fill", "4096")
    try:
        given = backend.run(devices, (proof.placement(mps=False),))
        without = backend.run(devices, (replace(proof.placement(mps=False), devices=()),))
        shares = tuple(proof.placement(index=index, mps=True) for index in range(PROCESSES))
        filled = backend.run(fill, shares)
    finally:
        backend.close()
    seen = [json.loads(text) for text in (*given, *without)]
    had_mib = [json.loads(text)["had_mib"] for text in filled]
    print(f"given: {seen[0]}, without: {seen[1]}, memory had by four tasks on shares: {had_mib}")
    ok = seen[0]["devices"] == [proof.device.id] and seen[1]["devices"] == []
    return {
        "ok": ok and all(0 < each <= LIMIT_MIB for each in had_mib),
        "given": seen[0],
        "without": seen[1],
        "had_mib": had_mib,
    }


def sharing(proof: Proof) -> Found:
    """Four processes on one GPU: one after the other in turns, and under MPS at once."""
    found: Found = {"ok": True, "rows": [], "usage": {}}
    # One process's small kernels leave most of the GPU idle; its full ones leave nothing.
    for kind, blocks, rounds in (("small", 16, 60_000), ("full", 1_056, 15_000)):
        work = [str(blocks), str(rounds), str(proof.seconds)]
        alone = raced(proof, work, [plain_env(proof)])
        turns = raced(proof, work, [plain_env(proof)] * PROCESSES)
        found["rows"] += [row(kind, "1 alone", alone), row(kind, "4 in turns", turns)]
        found["usage"][f"{kind}, in turns"] = turns["usage"]
        shared = attempted(f"{kind} kernels under MPS", lambda work=work: under_mps(proof, work))
        if not shared["ok"]:
            found |= {"ok": False, "problem": shared["problem"]}
            continue
        gain = round(shared["per_second"] / turns["per_second"], 2)
        found["rows"].append({**row(kind, "4 under MPS", shared), "against_turns": gain})
        found["usage"][f"{kind}, under MPS"] = shared["usage"]
        found["ok"] = found["ok"] and (kind == "full" or gain > 1)
    print(aligned(found["rows"]))
    return found


def usage(proof: Proof) -> Found:
    """What NVML said about each of the processes while they ran."""
    seen = proof.parts["sharing"].get("usage", {})
    for kind, found in seen.items():
        print(f"{kind}: {found}")
    ok = bool(seen) and all(
        set(found["pids"]) <= {each["pid"] for each in found["processes"]}
        for found in seen.values()
    )
    return {"ok": ok, "seen": seen}


def memory_limit(proof: Proof) -> Found:
    """Under MPS a process gets no more memory than its share; without, it would."""
    placement = proof.placement(mps=True)
    wanted = str(2 * LIMIT_MIB)
    try:
        env = mps_env(proof, placement)
        limited = ran("fill", wanted, env=env)
    finally:
        proof.machine.release(placement)
    free = ran("fill", wanted, env=plain_env(proof))
    print(f"limit {LIMIT_MIB} MiB: had {limited}\nno limit: had {free}")
    ok = 0 < limited["had_mib"] <= LIMIT_MIB and limited["code"] == 2
    return {
        "ok": ok and free["had_mib"] == 2 * LIMIT_MIB,
        "limit_mib": LIMIT_MIB,
        "limited": limited,
        "free": free,
    }


def daemons_end(proof: Proof) -> Found:
    """After the last share no MPS daemon is left."""
    left = sorted(str(path.name) for path in proof.home.glob("**/mps/*"))
    print(f"MPS folders left: {left}")
    return {"ok": not left, "left": left}


PARTS: Mapping[str, Callable[[Proof], Found]] = {
    "discovery": discovery,
    "health": health,
    "confinement": confinement,
    "jobs": jobs,
    "sharing": sharing,
    "usage": usage,
    "memory_limit": memory_limit,
    "daemons_end": daemons_end,
}


def under_mps(proof: Proof, work: Sequence[str]) -> Found:
    placements = [proof.placement(index=index, mps=True) for index in range(PROCESSES)]
    joined: list[Placement] = []
    try:
        envs: list[Mapping[str, str]] = []
        for placement in placements:
            envs.append(mps_env(proof, placement))
            joined.append(placement)
        return raced(proof, work, envs)
    finally:
        for placement in joined:
            proof.machine.release(placement)


def raced(proof: Proof, work: Sequence[str], envs: Sequence[Mapping[str, str]]) -> Found:
    """The same work in several processes that begin together; what they did, added up."""
    running = [started("spin", *work, env=env) for env in envs]
    try:
        for each in running:
            expect_ready(each)
        before_us = int(time.time() * 1_000_000)
        for each in running:
            say(each, "go\n")
        time.sleep(proof.seconds * 0.7)
        seen = process_usage(proof.device.id, [each.pid for each in running], before_us)
        answers = [answer(each) for each in running]
    finally:
        for each in running:
            each.kill()
            each.wait()
            closed(each)
    return {
        "per_second": sum(each["kernels"] / each["seconds"] for each in answers),
        "median_ms": max(each["median_ms"] for each in answers),
        "p99_ms": max(each["p99_ms"] for each in answers),
        "multiprocessors": answers[0]["multiprocessors"],
        "usage": seen,
    }


def process_usage(uuid: str, pids: list[int], since_us: int) -> Found:
    """NVML's view of the processes on the device, MPS clients included."""
    nvml: Any = pynvml
    nvml.nvmlInit()
    try:
        handle = nvml.nvmlDeviceGetHandleByUUID(uuid)
        listed = {
            each.pid: {"pid": each.pid, "memory_mib": (each.usedGpuMemory or 0) >> 20}
            for ask in (
                nvml.nvmlDeviceGetComputeRunningProcesses,
                nvml.nvmlDeviceGetMPSComputeRunningProcesses,
            )
            for each in asked_nvml(lambda ask=ask: ask(handle), [])
        }
        samples = asked_nvml(lambda: nvml.nvmlDeviceGetProcessUtilization(handle, since_us), [])
        busy = {each.pid: each.smUtil for each in samples}
    finally:
        nvml.nvmlShutdown()
    processes = [{**each, "sm_percent": busy.get(pid)} for pid, each in sorted(listed.items())]
    return {"pids": pids, "processes": processes, "sm_percent": busy}


def asked_nvml(question: Callable[[], Any], otherwise: Any) -> Any:
    try:
        return question()
    except pynvml.NVMLError as problem:
        print(f"NVML: {problem}")
        return otherwise


def plain_env(proof: Proof) -> Mapping[str, str]:
    return {"CUDA_VISIBLE_DEVICES": str(proof.device.id)}


def mps_env(proof: Proof, placement: Placement) -> Mapping[str, str]:
    return {**plain_env(proof), **proof.machine.sharing(placement)}


def ran(*command: str, env: Mapping[str, str]) -> Found:
    process = started(*command, env=env)
    try:
        return answer(process)
    finally:
        process.kill()
        process.wait()
        closed(process)


def started(*command: str, env: Mapping[str, str]) -> "subprocess.Popen[str]":
    return begun("bench.gpu.task", *command, env=env)


def begun(module: str, *command: str, env: Mapping[str, str]) -> "subprocess.Popen[str]":
    outer = {key: value for key, value in os.environ.items() if not key.startswith("CUDA_")}
    return subprocess.Popen(  # noqa: S603 -- our own script
        [sys.executable, "-m", module, *command],
        cwd=ROOT,
        env={**outer, **env},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def expect_ready(process: "subprocess.Popen[str]") -> None:
    assert process.stdout is not None
    line = process.stdout.readline().strip()
    if line != "ready":
        message = f"the task said {line!r} instead of being ready"
        raise RuntimeError(message)


def say(process: "subprocess.Popen[str]", text: str) -> None:
    assert process.stdin is not None
    process.stdin.write(text)
    process.stdin.flush()


def answer(process: "subprocess.Popen[str]") -> Found:
    out, _ = process.communicate(timeout=ANSWER_S)
    if process.returncode:
        message = f"the task ended with {process.returncode}"
        raise RuntimeError(message)
    return json.loads(out.strip().splitlines()[-1])


def closed(process: "subprocess.Popen[str]") -> None:
    for stream in (process.stdin, process.stdout):
        if stream is not None:
            stream.close()


def row(kind: str, how: str, found: Found) -> Found:
    figures = {key: round(found[key], 2) for key in ("per_second", "median_ms", "p99_ms")}
    return {"kernel": kind, "how": how, **figures, "multiprocessors": found["multiprocessors"]}


def aligned(rows: Sequence[Found]) -> str:
    columns = list(dict.fromkeys(key for each in rows for key in each))
    lines = [columns, *([str(each.get(key, "")) for key in columns] for each in rows)]
    widths = [max(len(line[at]) for line in lines) for at in range(len(columns))]
    return "\n".join(
        "  ".join(cell.rjust(width) for cell, width in zip(line, widths, strict=True))
        for line in lines
    )


if __name__ == "__main__":
    sys.exit(main())
