"""What the jobs of the GPU proof run. Each command prints one line of JSON.

python -m bench.gpu.task devices                      which devices does it see?
python -m bench.gpu.task spin BLOCKS ROUNDS SECONDS   how many kernels end in that time, once
                                                      it was told to go?
python -m bench.gpu.task fill MIB                     how much memory can it have, up to this?
python -m bench.gpu.task reach                        can it compute on a GPU at all?
"""

import json
import sys
import time

from bench.gpu.cuda import Cuda, CudaError

_THREADS = 128
_STEP_MIB = 128


def main(command: str, *numbers: str) -> None:
    commands = {"devices": devices, "spin": spin, "fill": fill, "reach": reach}
    found = commands[command](*map(int, numbers))
    print(json.dumps(found), flush=True)


def devices() -> dict[str, object]:
    cuda = Cuda()
    return {"cu_init": cuda.started, "devices": cuda.devices()}


def spin(blocks: int, rounds: int, seconds: int) -> dict[str, object]:
    gpu = Cuda().open()
    kernel = gpu.kernel(blocks=blocks, threads=_THREADS, rounds=rounds)
    for _ in range(3):
        kernel.run()
    print("ready", flush=True)
    sys.stdin.readline()
    times_ns: list[int] = []
    begun_ns = now_ns = time.perf_counter_ns()
    while now_ns - begun_ns < seconds * 1_000_000_000:
        kernel.run()
        before_ns, now_ns = now_ns, time.perf_counter_ns()
        times_ns.append(now_ns - before_ns)
    times_ns.sort()
    return {
        "kernels": len(times_ns),
        "seconds": (now_ns - begun_ns) / 1e9,
        "median_ms": times_ns[len(times_ns) // 2] / 1e6,
        "p99_ms": times_ns[len(times_ns) * 99 // 100] / 1e6,
        "multiprocessors": gpu.multiprocessors(),
    }


def fill(most_mib: int) -> dict[str, object]:
    had_mib = 0
    try:
        gpu = Cuda().open()
    except CudaError as refused:
        return {"had_mib": had_mib, "refused": str(refused), "code": refused.code}
    while had_mib < most_mib:
        try:
            gpu.allocate(_STEP_MIB << 20)
        except CudaError as refused:
            return {"had_mib": had_mib, "refused": str(refused), "code": refused.code}
        had_mib += _STEP_MIB
    return {"had_mib": had_mib, "refused": None, "code": 0}


def reach() -> dict[str, object]:
    cuda = Cuda()
    try:
        gpu = cuda.open()
        gpu.kernel(blocks=4, threads=_THREADS, rounds=10).run()
    except CudaError as refused:
        return {"computed": False, "refused": str(refused), "code": refused.code}
    return {"computed": True, "multiprocessors": gpu.multiprocessors()}


if __name__ == "__main__":
    main(*sys.argv[1:])
