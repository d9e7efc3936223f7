"""Requests as sbatch gets them, and machines to read them against."""

from muster.doors.slurm.call import Call, Script
from muster.doors.slurm.submit.fleet import Machines, machines_of
from muster.doors.slurm.submit.submission import (
    Wanted,
    World,
    command_line,
    requests_of,
    script_of,
    wanted,
)
from muster.model.cluster import Node
from muster.model.gpu import Device
from muster.model.value import (
    ClusterName,
    DeviceId,
    GpuModel,
    Instant,
    JobId,
    NodeId,
    PoolName,
    UserName,
)

NOW = Instant(1_794_744_000_000)
SCRIPT = "#!/bin/sh\ntrue\n"


def machines(nodes: int = 4, gpus: int = 8, model: str = "A100-40GB") -> Machines:
    return machines_of(
        {
            NodeId(f"node{number}"): Node(
                id=NodeId(f"node{number}"),
                cluster=ClusterName("lab"),
                pool=PoolName("gpu"),
                cpu_milli=64_000,
                memory_mib=512_000,
                labels={"nvlink": "true", "rack": f"r{number % 2}"},
                devices=tuple(
                    Device(
                        id=DeviceId(f"{number}-{index}"),
                        index=index,
                        model=GpuModel(model),
                        memory_mib=40_960,
                    )
                    for index in range(gpus)
                ),
            )
            for number in range(1, nodes + 1)
        }
    )


def world(found: Machines | None = None) -> World:
    def meant(job: int, index: int | None) -> dict[JobId, int | None]:
        if job == 50 and index is None:
            return {JobId(50): 0, JobId(51): 1}
        return {JobId(job if index is None else job + index): index}

    return World(
        machines=found or machines(),
        user=UserName("ann"),
        now=NOW,
        meant=meant,
        partitions=frozenset({PoolName("gpu"), PoolName("debug")}),
    )


def asked(
    *argv: str,
    script: str = SCRIPT,
    env: dict[str, str] | None = None,
    on: Machines | None = None,
) -> Wanted:
    """What `sbatch *argv job.sh a b` comes to."""
    words = argv if "--wrap" in argv else (*argv, "job.sh", "a", "b")
    call = Call(
        argv=words,
        cwd="/home/ann",
        env={"HOME": "/home/ann", "TZ": "UTC"} | (env or {}),
        script=Script(text=script, name="job.sh"),
        host="login",
    )
    line = command_line(call)
    text = script_of(line, call.script)
    return wanted(requests_of(call, line, text, NOW), text, world(on))
