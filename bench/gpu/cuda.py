"""CUDA's driver API through ctypes, as much as the GPU proofs need: no compiler, no framework."""

import ctypes
import time
from typing import Any

from bench.gpu.kernels import KINDS

OUT_OF_MEMORY = 2
_MULTIPROCESSORS = 16


class CudaError(Exception):
    """The driver refused; `code` is CUresult."""

    def __init__(self, what: str, code: int) -> None:
        super().__init__(f"{what}: CUDA error {code}")
        self.code = code


class Cuda:
    """The driver, started. Without a device to see, `cuInit` itself says so (error 100)."""

    def __init__(self) -> None:
        self._cuda: Any = ctypes.CDLL("libcuda.so.1")
        self.started = int(self._cuda.cuInit(0))

    def devices(self) -> list[str]:
        """The UUIDs of all devices that this process sees."""
        if self.started:
            return []
        count = ctypes.c_int()
        self._must("cuDeviceGetCount", ctypes.byref(count))
        return [self._uuid(index) for index in range(count.value)]

    def _uuid(self, index: int) -> str:
        device, raw = ctypes.c_int(), (ctypes.c_ubyte * 16)()
        self._must("cuDeviceGet", ctypes.byref(device), index)
        self._must("cuDeviceGetUuid", ctypes.byref(raw), device)
        text = bytes(raw).hex()
        parts = (text[:8], text[8:12], text[12:16], text[16:20], text[20:])
        return "GPU-" + "-".join(parts)

    def open(self) -> "Gpu":
        """The first device, with a context of its own."""
        if self.started:
            raise CudaError("cuInit", self.started)
        device, context = ctypes.c_int(), ctypes.c_void_p()
        self._must("cuDeviceGet", ctypes.byref(device), 0)
        # The primary context has had the same interface since CUDA 7.
        self._must("cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
        self._must("cuCtxSetCurrent", context)
        return Gpu(self._cuda, device)

    def _must(self, name: str, *arguments: Any) -> None:
        must(self._cuda, name, *arguments)


class Gpu:
    """One device in use."""

    def __init__(self, cuda: Any, device: ctypes.c_int) -> None:
        self._cuda = cuda
        self._device = device

    def multiprocessors(self) -> int:
        """How many we may use: under MPS, our part of them."""
        count = ctypes.c_int()
        ask = (ctypes.byref(count), _MULTIPROCESSORS, self._device)
        must(self._cuda, "cuDeviceGetAttribute", *ask)
        return count.value

    def allocate(self, size: int) -> ctypes.c_uint64:
        where = ctypes.c_uint64()
        must(self._cuda, "cuMemAlloc_v2", ctypes.byref(where), ctypes.c_size_t(size))
        return where

    def kernel(
        self, *, blocks: int, threads: int, rounds: int, name: str = "spin", size: int = 0
    ) -> "Kernel":
        """One of `kernels.KINDS`, compiled and with its memory, which is zero."""
        kind = KINDS[name]
        size = size or kind.per_thread * blocks * threads
        memory = self.allocate(size)
        must(self._cuda, "cuMemsetD8_v2", memory, ctypes.c_ubyte(0), ctypes.c_size_t(size))
        arguments = (memory, ctypes.c_uint32(rounds), ctypes.c_uint64(size))
        return Kernel(self._cuda, self._compiled(name), (blocks, threads), arguments)

    def copier(self, size: int) -> "Copier":
        """Copies so many bytes from memory that the machine may not move to the GPU."""
        host = ctypes.c_void_p()
        must(self._cuda, "cuMemAllocHost_v2", ctypes.byref(host), ctypes.c_size_t(size))
        return Copier(self._cuda, self.allocate(size), host, size)

    def _compiled(self, name: str) -> ctypes.c_void_p:
        module, function = ctypes.c_void_p(), ctypes.c_void_p()
        code = 0
        for target in KINDS[name].targets:
            text = KINDS[name].source(target)
            code = int(self._cuda.cuModuleLoadData(ctypes.byref(module), text))
            if code == 0:
                ask = (ctypes.byref(function), module, name.encode())
                must(self._cuda, "cuModuleGetFunction", *ask)
                return function
        raise CudaError(f"cuModuleLoadData of {name}", code)


class Kernel:
    """A kernel with its arguments, ready to run again and again."""

    def __init__(
        self,
        cuda: Any,
        function: ctypes.c_void_p,
        shape: tuple[int, int],
        arguments: tuple[Any, ...],
    ) -> None:
        self._cuda = cuda
        self._function = function
        self._shape = shape
        self._arguments = arguments
        addresses = [ctypes.addressof(each) for each in arguments]
        self._pointers = (ctypes.c_void_p * len(addresses))(*addresses)

    def go_round(self, rounds: int) -> None:
        """So often, each time that it runs from now on."""
        self._arguments[1].value = rounds

    def fitted_to(self, seconds: float) -> None:
        """Have it run for about so long: so often does it go round."""
        self.go_round(64)
        self.run()
        began = time.perf_counter()
        self.run()
        self.go_round(max(1, round(64 * seconds / (time.perf_counter() - began))))

    def run(self) -> None:
        """Once, to its end."""
        blocks, threads = self._shape
        sizes = (blocks, 1, 1, threads, 1, 1, 0)
        must(self._cuda, "cuLaunchKernel", self._function, *sizes, None, self._pointers, None)
        must(self._cuda, "cuCtxSynchronize")


class Copier:
    """A buffer on each side."""

    def __init__(self, cuda: Any, there: ctypes.c_uint64, here: ctypes.c_void_p, size: int) -> None:
        self._cuda = cuda
        self._there = there
        self._here = here
        self._size = size

    def run(self) -> None:
        """Once, to its end."""
        must(self._cuda, "cuMemcpyHtoD_v2", self._there, self._here, ctypes.c_size_t(self._size))


def must(cuda: Any, name: str, *arguments: Any) -> None:
    code = int(getattr(cuda, name)(*arguments))
    if code:
        raise CudaError(name, code)
