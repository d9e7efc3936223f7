"""Proves on a real NVIDIA GPU that jobs reach their own devices and no others.

Run as root: `PYTHONPATH=$PWD/src python -m bench.gpu.walls --out bench/gpu/walls.json`.
Three jobs (without GPUs, with an MPS share, with the whole GPU), each by root and by nobody, try
everything in `intruder.py`; and the first of them once more without the wall, as it was before.
The last two are nobody's once more, in a /tmp, an IPC namespace and, but for the share, a /dev/shm
of their own, as new installations have it.
It changes no setting of the GPU, and ends with 1 if anything does not hold.
"""

import argparse
import glob
import json
import os
import stat
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from bench.gpu.jobs import Jobs
from muster.backends.local.hardware.machine import Machine, find_machine
from muster.backends.local.isolation.devices import DeviceWall
from muster.model.cluster import Node
from muster.model.gpu import MpsShare, enforcement
from muster.model.placement import Allocation, DeviceShare, Placement
from muster.model.resources import Resources
from muster.model.site import Confinement
from muster.model.value import NodeId

HERE = Path(__file__).parent
USERS = ("root", "nobody")
MPS = MpsShare(milli=250, memory_mib=2_048)
OTHER_GPU = "another-gpu"
"""A node like that of a second GPU, which this machine need not have."""

APART = "in a /tmp of its own"

Found = dict[str, Any]


class Unwalled(Machine):
    """The machine as it was before there was a wall."""

    def __init__(self, machine: Machine) -> None:
        self.__dict__.update(machine.__dict__)

    def wall(self, allocation: Allocation) -> DeviceWall | None:
        del allocation
        return None


def main() -> int:
    parser = argparse.ArgumentParser(description="device wall proof")
    parser.add_argument("--out", type=Path, default=HERE / "walls.json")
    out: Path = parser.parse_args().out
    with tempfile.TemporaryDirectory(prefix="muster-walls-", dir="/tmp") as folder:
        Path(folder).chmod(0o755)
        found = proved(Path(folder))
    out.write_text(json.dumps(found, indent=2) + "\n", encoding="utf-8")
    print(json.dumps(found, indent=2))
    return 0 if found["ok"] else 1


def proved(folder: Path) -> Found:
    machine = find_machine(folder / "look")
    (node,) = machine.nodes()
    other = folder / OTHER_GPU
    os.mknod(other, stat.S_IFCHR | 0o666, os.makedev(195, 1))
    other.chmod(0o666)
    nodes = (*sorted(filter(is_device, glob.glob("/dev/nvidia*"))), *capabilities(), str(other))
    found: Found = {"groups": groups(), "nodes": [Path(each).name for each in nodes]}
    if not node.devices:
        return found | {"ok": False, "problem": machine.remarks()}
    # A daemon for others to knock at, as if a job with a share ran all the time.
    neighbour = find_machine(folder / "neighbour")
    share = placed(node, (DeviceShare(device=node.devices[0].id, slice=MPS),))
    neighbour.sharing(share)
    for user in USERS:
        for name, placement in placements(node):
            jobs = Jobs(made(folder / f"{name}-{user}"), machine=machine, user=user)
            found.setdefault("walled", jobs.cluster.abilities.device_wall)
            found[f"{name}, by {user}"] = tried(jobs, placement, nodes)
    jobs = Jobs(made(folder / "before"), machine=Unwalled(machine), user="nobody")
    found["no GPUs, by nobody, without the wall"] = tried(jobs, placed(node, ()), nodes)
    for name, placement in list(placements(node))[1:]:
        jobs = Jobs(
            made(folder / f"{name}-apart"),
            machine=machine,
            user="nobody",
            confinement=Confinement(),
        )
        found[f"{name}, by nobody, {APART}"] = tried(jobs, placement, nodes)
    neighbour.release(share)
    neighbour.close()
    machine.close()
    return found | {"ok": all(judged(found)), "claims": claims()}


def placements(node: Node) -> Iterable[tuple[str, Placement]]:
    device = node.devices[0].id
    yield "no GPUs", placed(node, ())
    yield "MPS share", placed(node, (DeviceShare(device=device, slice=MPS),))
    yield "whole GPU", placed(node, (DeviceShare(device=device),))


def placed(node: Node, devices: tuple[DeviceShare, ...]) -> Placement:
    amount = Resources(cpu_milli=1_000, gpu_milli=1_000 if devices else 0)
    return Placement(
        group="proof",
        index=0,
        node=NodeId(node.id),
        pool=node.pool,
        amount=amount,
        devices=devices,
    )


def tried(jobs: Jobs, placement: Placement, nodes: tuple[str, ...]) -> Found:
    try:
        (printed,) = jobs.run(("-m", "bench.gpu.intruder", *nodes), (placement,))
    except RuntimeError as problem:
        return {"problem": str(problem)}
    finally:
        jobs.close()
    answer: Found = json.loads(printed.splitlines()[-1])
    answer["opens"] = {Path(node).name: how for node, how in answer["opens"].items()}
    return answer


def judged(found: Found) -> Iterable[bool]:
    """What must hold; the limits of MPS are only written down, since a job can lift them."""
    yield found["walled"]
    for user in USERS:
        without = found[f"no GPUs, by {user}"]
        yield not any(each["computed"] for each in without["tries"].values())
        yield "opened" not in without["opens"].values()
        for name in ("whole GPU", "MPS share"):
            given = found[f"{name}, by {user}"]
            yield given["tries"]["as it was started"]["computed"]
            yield given["opens"]["nvidia0"] == given["opens"]["nvidiactl"] == "opened"
            yield given["opens"][OTHER_GPU] == "Operation not permitted"
            yield not any(how == "opened" for node, how in given["opens"].items() if "cap" in node)
    for name in ("whole GPU", "MPS share"):
        apart = found[f"{name}, by nobody, {APART}"]["tries"]["as it was started"]
        # With a share it is a client of the daemon, and has no more of the GPU than before.
        yield apart == found[f"{name}, by nobody"]["tries"]["as it was started"]
    before = found["no GPUs, by nobody, without the wall"]
    yield before["tries"]["without CUDA_VISIBLE_DEVICES"]["computed"]


def claims() -> Found:
    """What a placement says of each, with the wall and without."""
    kinds = {"whole GPU": None, "MPS share": MPS}
    return {
        name: [enforcement(part, walled=True), enforcement(part, walled=False)]
        for name, part in kinds.items()
    }


def groups() -> list[str]:
    """Which control groups this machine has."""
    lines = Path("/proc/mounts").read_text(encoding="utf-8").splitlines()
    return [" ".join(line.split()[1:4]) for line in lines if "cgroup" in line.split()[2]]


def capabilities() -> list[str]:
    return sorted(glob.glob("/dev/nvidia-caps/*"))


def is_device(path: str) -> bool:
    return stat.S_ISCHR(os.stat(path).st_mode)


def made(folder: Path) -> Path:
    folder.mkdir(mode=0o755)
    folder.chmod(0o777)
    return folder


if __name__ == "__main__":
    sys.exit(main())
