"""A user of IPython Parallel: a controller here, two engines that are the tasks of one job."""

import ipyparallel as ipp


def where() -> tuple[str, str]:
    import os  # noqa: PLC0415 -- the function alone travels

    return os.environ["SLURM_JOB_ID"], os.environ["SLURM_PROCID"]


def main() -> None:
    with ipp.Cluster(engines="slurm", n=2, controller_ip="127.0.0.1") as engines:
        view = engines[:]
        print("squares", *view.map_sync(lambda number: number**2, range(6)))
        found = view.apply_sync(where)
        print("job", *{job for job, _ in found})
        print("tasks", *sorted(task for _, task in found))


if __name__ == "__main__":
    main()
