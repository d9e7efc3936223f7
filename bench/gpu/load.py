"""Known loads for the proof of what is measured. Each prints `ready`, and one line of JSON.

python -m bench.gpu.load kernel NAME BLOCKS THREADS PERCENT SECONDS
    kernels of five milliseconds, for this part of the time
python -m bench.gpu.load hold MIB BLOCKS SECONDS    so much memory, and kernels beside each other
python -m bench.gpu.load copy SECONDS               copies to the GPU without a pause
python -m bench.gpu.load stuck BLOCKS THREADS       a kernel that never ends
python -m bench.gpu.load pace SECONDS               when did how many small kernels end?
python -m bench.gpu.load act NAME SECONDS           a job that is slow for a known cause
"""

import json
import mmap
import multiprocessing
import os
import sys
import tempfile
import time
from collections.abc import Callable

from bench.gpu.cuda import Cuda, Gpu, Kernel

ALL = 132 * 8
"""Blocks of 256 threads that fill an H100 or H200."""

_KERNEL_S = 0.005
_STREAMED = 2 << 30
_COPIED = 256 << 20
_LARGE = 48 << 30
"""So much memory that a part of the GPU would not do."""

_READ = 1 << 20
_FILE_MIB = 512
BURNERS = 4
"""As many CPUs as a job is granted that keeps all of them busy."""


def main(command: str, *arguments: str) -> None:
    found = COMMANDS[command](*arguments)
    print(json.dumps(found), flush=True)


def kernel(name: str, blocks: str, threads: str, percent: str, seconds: str) -> dict[str, object]:
    ready = _kernel(Cuda().open(), name, int(blocks), int(threads))
    _await_go()
    return _at_duty(ready, int(percent) / 100, float(seconds))


def hold(mib: str, blocks: str, seconds: str) -> dict[str, object]:
    gpu = Cuda().open()
    gpu.allocate(int(mib) << 20)
    ready = _kernel(gpu, "spin", int(blocks), 256)
    _await_go()
    return _at_duty(ready, 1.0, float(seconds))


def copy(seconds: str) -> dict[str, object]:
    copier = Cuda().open().copier(_COPIED)
    copier.run()
    _await_go()
    copies, began = 0, time.monotonic()
    while time.monotonic() - began < float(seconds):
        copier.run()
        copies += 1
    return {"bytes_per_s": copies * _COPIED / (time.monotonic() - began)}


def stuck(blocks: str, threads: str) -> dict[str, object]:
    gpu = Cuda().open()
    ready = gpu.kernel(name="stuck", blocks=int(blocks), threads=int(threads), rounds=1)
    _await_go()
    ready.run()
    return {}


def pace(seconds: str) -> dict[str, object]:
    """Small kernels one after the other: what holds up a launch shows most."""
    ready = Cuda().open().kernel(blocks=16, threads=128, rounds=500)
    ready.run()
    _await_go()
    ended: list[tuple[float, int]] = []
    deadline = time.time() + float(seconds)
    while (now := time.time()) < deadline:
        count = 0
        while time.time() < now + 0.1:
            ready.run()
            count += 1
        ended.append((time.time(), count))
    return {"ended": ended}


def act(name: str, seconds: str) -> dict[str, object]:
    deadline = time.monotonic() + float(seconds)
    JOBS[name](lambda: time.monotonic() < deadline)
    return {"did": name}


Goes = Callable[[], bool]
"""Is it to go on?"""


def _never_used(goes: Goes) -> None:
    while goes():
        time.sleep(0.1)


def _idle(goes: Goes) -> None:
    _kernel(Cuda().open(), "spin", ALL, 256).run()
    _never_used(goes)


def _hang(goes: Goes) -> None:
    ready = Cuda().open().kernel(name="stuck", blocks=24, threads=512, rounds=1)
    pid = os.fork()
    if pid:
        ready.run()
        return
    # A kernel that never ends ends with its process.
    while goes():
        time.sleep(0.1)
    os.kill(os.getppid(), 9)


def _fine(goes: Goes) -> None:
    _kept_up(goes, _kernel(Cuda().open(), "tensor", ALL, 256), 1.0)


def _no_tensor(goes: Goes) -> None:
    _kept_up(goes, _kernel(Cuda().open(), "spin", ALL, 256), 1.0)


def _memory_bound(goes: Goes) -> None:
    _kept_up(goes, _kernel(Cuda().open(), "stream", ALL, 256), 1.0)


def _small_work(goes: Goes) -> None:
    gpu = Cuda().open()
    gpu.allocate(_LARGE)
    _kept_up(goes, _kernel(gpu, "spin", 16, 128), 1.0)


def _copying(goes: Goes) -> None:
    gpu = Cuda().open()
    copier, ready = gpu.copier(_COPIED), _kernel(gpu, "spin", ALL, 256)
    while goes():
        copier.run()
        ready.run()


def _waiting(goes: Goes) -> None:
    gpu = Cuda().open()
    gpu.allocate(_LARGE)
    _kept_up(goes, _kernel(gpu, "tensor", ALL, 256), 0.1)


def _host(goes: Goes) -> None:
    """One thread prepares each of many short kernels."""
    ready = _kernel(Cuda().open(), "tensor", ALL, 256)
    while goes():
        ready.run()
        _burn_for(2 * _KERNEL_S)


def _input_cpu(goes: Goes) -> None:
    loaders = [multiprocessing.Process(target=_burn, daemon=True) for _ in range(BURNERS)]
    for each in loaders:
        each.start()
    _kept_up(goes, _kernel(Cuda().open(), "tensor", ALL, 256), 0.15)


def _input_io(goes: Goes) -> None:
    with tempfile.NamedTemporaryFile(dir="/var/tmp") as file:
        file.write(os.urandom(_READ) * _FILE_MIB)
        file.flush()
        readers = [
            multiprocessing.Process(target=_read, args=(file.name, at), daemon=True)
            for at in range(3)
        ]
        for each in readers:
            each.start()
        _kept_up(goes, _kernel(Cuda().open(), "tensor", ALL, 256), 0.15)


JOBS: dict[str, Callable[[Goes], None]] = {
    "never_used": _never_used,
    "idle": _idle,
    "hang": _hang,
    "fine": _fine,
    "no_tensor": _no_tensor,
    "memory_bound": _memory_bound,
    "small_work": _small_work,
    "copying": _copying,
    "waiting": _waiting,
    "host": _host,
    "input_cpu": _input_cpu,
    "input_io": _input_io,
}
"""By the cause that is to be named."""


def _kernel(gpu: Gpu, name: str, blocks: int, threads: int) -> Kernel:
    size = _STREAMED if name == "stream" else 0
    ready = gpu.kernel(name=name, blocks=blocks, threads=threads, rounds=1, size=size)
    ready.fitted_to(_KERNEL_S)
    return ready


def _at_duty(ready: Kernel, duty: float, seconds: float) -> dict[str, object]:
    deadline = time.monotonic() + seconds
    began = time.perf_counter()
    busy_s = _kept_up(lambda: time.monotonic() < deadline, ready, duty)
    return {"duty": busy_s / (time.perf_counter() - began)}


def _kept_up(goes: Goes, ready: Kernel, duty: float) -> float:
    """Kernel after kernel, with pauses between them; how long kernels ran."""
    busy_s = 0.0
    while goes():
        began = time.perf_counter()
        ready.run()
        took_s = time.perf_counter() - began
        busy_s += took_s
        if duty < 1:
            time.sleep(took_s * (1 - duty) / duty)
    return busy_s


def _burn() -> None:
    while True:
        _burn_for(1.0)


def _burn_for(seconds: float) -> None:
    until = time.perf_counter() + seconds
    while time.perf_counter() < until:
        pass


def _read(path: str, at: int) -> None:
    """Reads past the machine's cache, as a loader does whose files are larger than it."""
    file = os.open(path, os.O_RDONLY | os.O_DIRECT)
    buffer = mmap.mmap(-1, _READ)
    while True:
        at = (at * 7 + 3) % _FILE_MIB
        os.preadv(file, [buffer], at * _READ)


def _await_go() -> None:
    print("ready", flush=True)
    sys.stdin.readline()


COMMANDS: dict[str, Callable[..., dict[str, object]]] = {
    "kernel": kernel,
    "hold": hold,
    "copy": copy,
    "stuck": stuck,
    "pace": pace,
    "act": act,
}


if __name__ == "__main__":
    main(*sys.argv[1:])
