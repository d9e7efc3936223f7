"""A user of RADICAL-SAGA: one job runs to its end, one is cancelled while it runs."""

import time

import radical.saga as rs

PATIENCE_S = 240


def main() -> None:
    service = rs.job.Service("slurm://localhost/")
    short = started(service, "short", "'echo from saga'")
    short.wait(PATIENCE_S)
    print("short", short.state, short.exit_code, number(short))
    long = started(service, "long", "'sleep 600'")
    deadline = time.monotonic() + PATIENCE_S
    while long.state != rs.job.RUNNING and time.monotonic() < deadline:
        time.sleep(0.1)
    seen = long.state
    long.cancel()
    print("long", seen, long.state, number(long))
    service.close()


def started(service: rs.job.Service, name: str, line: str) -> rs.job.Job:
    wanted = rs.job.Description()
    wanted.name = name
    wanted.executable = "/bin/sh"
    wanted.arguments = ["-c", line]
    wanted.output = f"{name}.out"
    wanted.queue = "local"
    wanted.wall_time_limit = 5
    wanted.total_cpu_count = 1
    wanted.total_gpu_count = 1
    job = service.create_job(wanted)
    job.run()
    return job


def number(job: rs.job.Job) -> str:
    return job.id.rpartition("[")[2].rstrip("]")


if __name__ == "__main__":
    main()
