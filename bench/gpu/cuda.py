"""CUDA's driver API through ctypes, as much as the GPU proof needs: no compiler, no framework.

The kernel is PTX that the driver compiles: each thread does one long chain of multiply-adds.
"""

import ctypes
from typing import Any

OUT_OF_MEMORY = 2
_MULTIPROCESSORS = 16
_TARGETS = ("sm_75", "sm_52")

_CHAIN = "    fma.rn.f32 %f1, %f1, %f2, %f3;\n" * 8
_PTX = """
.version 6.4
.target {target}
.address_size 64
.visible .entry spin(.param .u64 out, .param .u32 rounds)
{{
    .reg .pred %p<2>;
    .reg .b32 %r<8>;
    .reg .f32 %f<4>;
    .reg .b64 %d<5>;
    ld.param.u64 %d1, [out];
    ld.param.u32 %r1, [rounds];
    mov.u32 %r2, %ctaid.x;
    mov.u32 %r3, %ntid.x;
    mov.u32 %r4, %tid.x;
    mad.lo.s32 %r5, %r2, %r3, %r4;
    cvt.rn.f32.u32 %f1, %r5;
    mov.f32 %f2, 0f3F7FBE77;
    mov.f32 %f3, 0f3A83126F;
    mov.u32 %r6, 0;
AGAIN:
{chain}
    add.u32 %r6, %r6, 1;
    setp.lt.u32 %p1, %r6, %r1;
    @%p1 bra AGAIN;
    cvta.to.global.u64 %d2, %d1;
    mul.wide.u32 %d3, %r5, 4;
    add.s64 %d4, %d2, %d3;
    st.global.f32 [%d4], %f1;
    ret;
}}
"""


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

    def kernel(self, *, blocks: int, threads: int, rounds: int) -> "Kernel":
        """The spinning kernel, compiled and with its memory."""
        function = self._compiled()
        out = self.allocate(4 * blocks * threads)
        return Kernel(self._cuda, function, (blocks, threads), (out, ctypes.c_uint32(rounds)))

    def _compiled(self) -> ctypes.c_void_p:
        module, function = ctypes.c_void_p(), ctypes.c_void_p()
        code = 0
        for target in _TARGETS:
            text = _PTX.format(target=target, chain=_CHAIN).encode() + b"\0"
            code = int(self._cuda.cuModuleLoadData(ctypes.byref(module), text))
            if code == 0:
                ask = (ctypes.byref(function), module, b"spin")
                must(self._cuda, "cuModuleGetFunction", *ask)
                return function
        raise CudaError("cuModuleLoadData", code)


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

    def run(self) -> None:
        """Once, to its end."""
        blocks, threads = self._shape
        sizes = (blocks, 1, 1, threads, 1, 1, 0)
        must(self._cuda, "cuLaunchKernel", self._function, *sizes, None, self._pointers, None)
        must(self._cuda, "cuCtxSynchronize")


def must(cuda: Any, name: str, *arguments: Any) -> None:
    code = int(getattr(cuda, name)(*arguments))
    if code:
        raise CudaError(name, code)
