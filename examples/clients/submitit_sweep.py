"""A sweep with submitit: one job for each learning rate, at most two at a time.

python submitit_sweep.py
"""

import os

import submitit


def trained(rate: float) -> tuple[float, str]:
    """Stands for a training: the loss, and the GPU it ran on."""
    return (rate - 0.1) ** 2, os.environ.get("CUDA_VISIBLE_DEVICES", "none")


def main() -> None:
    executor = submitit.AutoExecutor(folder="sweep")
    executor.update_parameters(
        name="sweep",
        timeout_min=10,
        gpus_per_node=1,
        cpus_per_task=2,
        mem_gb=1,
        slurm_array_parallelism=2,
    )
    rates = (0.01, 0.1, 1.0)
    jobs = executor.map_array(trained, rates)
    losses = [(loss, rate) for rate, (loss, _) in zip(rates, outcomes(jobs), strict=True)]
    for loss, rate in losses:
        print(f"rate {rate}: loss {loss:.4f}")
    print(f"best rate {min(losses)[1]}")


def outcomes(jobs: list[submitit.Job[tuple[float, str]]]) -> list[tuple[float, str]]:
    return [job.result() for job in jobs]


if __name__ == "__main__":
    main()
