"""A user of executorlib: functions become jobs, and one may wait for another's result."""

from executorlib import SlurmClusterExecutor


def added(first: int, second: int) -> int:
    return first + second


def main() -> None:
    wanted = {"cores": 1, "partition": "local", "run_time_max": 120}
    with SlurmClusterExecutor(cache_directory="cache", resource_dict=wanted) as executor:
        three = executor.submit(added, 1, 2)
        seven = executor.submit(added, three, 4)
        print("results", three.result(), seven.result())


if __name__ == "__main__":
    main()
