"""A user of Parsl: functions run in blocks that are jobs, and the last one fails as it should."""

import sys

import parsl
from parsl.config import Config
from parsl.executors import HighThroughputExecutor
from parsl.launchers import SimpleLauncher, SrunLauncher
from parsl.providers import SlurmProvider

LAUNCHERS = {"simple": SimpleLauncher, "srun": SrunLauncher}


@parsl.python_app
def square(number: int) -> tuple[int, str]:
    import os  # noqa: PLC0415 -- the function alone travels

    return number * number, os.environ["SLURM_JOB_ID"]


@parsl.bash_app
def fails() -> str:
    return "exit 7"


def configured(launcher: str) -> Config:
    block = SlurmProvider(
        partition="local",
        nodes_per_block=1,
        cores_per_node=1,
        mem_per_node=1,
        walltime="00:10:00",
        init_blocks=1,
        max_blocks=1,
        exclusive=False,
        scheduler_options="#SBATCH --gpus-per-node=1",
        launcher=LAUNCHERS[launcher](),
    )
    executor = HighThroughputExecutor(
        label="muster",
        address="127.0.0.1",
        max_workers_per_node=1,
        provider=block,
        encrypted=False,
    )
    return Config(executors=[executor], strategy="none", usage_tracking=0)


def main() -> None:
    with parsl.load(configured(sys.argv[1])):
        found = [future.result(timeout=240) for future in map(square, range(4))]
        print("squares", *(number for number, _ in found))
        print("ran in", *sorted({job for _, job in found}))
        print("failed with", fails().exception(timeout=240).exitcode)


if __name__ == "__main__":
    main()
