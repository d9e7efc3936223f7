"""A user of executorlib inside an allocation: functions are started as steps."""

import os

from executorlib import SlurmJobExecutor


def task(number: int) -> tuple[int, str, str]:
    import os  # noqa: PLC0415 -- the function alone travels

    return number * number, os.environ["SLURM_JOB_ID"], os.environ["SLURM_STEP_ID"]


def main() -> None:
    with SlurmJobExecutor(max_cores=2) as executor:
        found = [executor.submit(task, number).result() for number in range(3)]
    print("job", os.environ["SLURM_JOB_ID"])
    print("squares", *(square for square, _, _ in found))
    print("ran", *{job for _, job, _ in found})
    print("steps", *sorted(step for _, _, step in found))


if __name__ == "__main__":
    main()
