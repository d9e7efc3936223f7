"""The smoke test of a GPU: memory patterns, and work whose result is known. A program of its own.

    python -m muster.backends.local.hardware.smoke      # of the first GPU that CUDA shows it

It ends with 0 if the GPU did all of it rightly, with 1 and one line if it did not, and with 3 and
one line where it cannot be tested: there is no CUDA. It asks CUDA's driver alone, through ctypes;
the kernels are PTX that the driver compiles. It needs a GPU that nobody else uses.
"""

import ctypes
import sys
from collections.abc import Iterator
from typing import Any

PASSED, FAILED, CANNOT = 0, 1, 3

_BLOCKS, _THREADS = 1_024, 256
_PIECE = 1 << 30
_LEFT_FREE = 1 << 30
_PATTERNS = (0x55555555, 0xAAAAAAAA, 0x00000000, 0xFFFFFFFF)
_ROUNDS = 400_000
_NO_DEVICE, _OUT_OF_MEMORY = 100, 2

_PTX = b"""
.version 6.4
.target sm_52
.address_size 64

.visible .entry fill(.param .u64 memory, .param .u64 words, .param .u32 pattern)
{
    .reg .pred %p<2>;
    .reg .b32 %r<9>;
    .reg .b64 %d<7>;
    ld.param.u64 %d1, [memory];
    cvta.to.global.u64 %d1, %d1;
    ld.param.u64 %d2, [words];
    ld.param.u32 %r1, [pattern];
    mov.u32 %r2, %ctaid.x;
    mov.u32 %r3, %ntid.x;
    mov.u32 %r4, %tid.x;
    mad.lo.s32 %r5, %r2, %r3, %r4;
    mov.u32 %r6, %nctaid.x;
    mul.lo.u32 %r6, %r6, %r3;
    cvt.u64.u32 %d3, %r5;
    cvt.u64.u32 %d4, %r6;
NEXT:
    setp.ge.u64 %p1, %d3, %d2;
    @%p1 bra OVER;
    cvt.u32.u64 %r7, %d3;
    xor.b32 %r7, %r7, %r1;
    shl.b64 %d5, %d3, 2;
    add.s64 %d5, %d1, %d5;
    st.global.u32 [%d5], %r7;
    add.s64 %d3, %d3, %d4;
    bra NEXT;
OVER:
    ret;
}

.visible .entry check(
    .param .u64 memory, .param .u64 words, .param .u32 pattern, .param .u64 wrong)
{
    .reg .pred %p<3>;
    .reg .b32 %r<9>;
    .reg .b64 %d<8>;
    ld.param.u64 %d1, [memory];
    cvta.to.global.u64 %d1, %d1;
    ld.param.u64 %d2, [words];
    ld.param.u32 %r1, [pattern];
    ld.param.u64 %d6, [wrong];
    cvta.to.global.u64 %d6, %d6;
    mov.u32 %r2, %ctaid.x;
    mov.u32 %r3, %ntid.x;
    mov.u32 %r4, %tid.x;
    mad.lo.s32 %r5, %r2, %r3, %r4;
    mov.u32 %r6, %nctaid.x;
    mul.lo.u32 %r6, %r6, %r3;
    cvt.u64.u32 %d3, %r5;
    cvt.u64.u32 %d4, %r6;
NEXT:
    setp.ge.u64 %p1, %d3, %d2;
    @%p1 bra OVER;
    cvt.u32.u64 %r7, %d3;
    xor.b32 %r7, %r7, %r1;
    shl.b64 %d5, %d3, 2;
    add.s64 %d5, %d1, %d5;
    ld.global.u32 %r8, [%d5];
    setp.eq.u32 %p2, %r7, %r8;
    @%p2 bra RIGHT;
    red.global.add.u32 [%d6], 1;
RIGHT:
    add.s64 %d3, %d3, %d4;
    bra NEXT;
OVER:
    ret;
}

.visible .entry work(.param .u64 memory, .param .u32 rounds)
{
    .reg .pred %p<2>;
    .reg .b32 %r<8>;
    .reg .f32 %f<4>;
    .reg .b64 %d<5>;
    ld.param.u64 %d1, [memory];
    cvta.to.global.u64 %d1, %d1;
    ld.param.u32 %r1, [rounds];
    mov.u32 %r2, %ctaid.x;
    mov.u32 %r3, %ntid.x;
    mov.u32 %r4, %tid.x;
    mad.lo.s32 %r5, %r2, %r3, %r4;
    mov.f32 %f1, 0f3F000000;
    mov.f32 %f2, 0f3F7FBE77;
    mov.f32 %f3, 0f3A83126F;
    mov.u32 %r6, 0;
AGAIN:
    fma.rn.f32 %f1, %f1, %f2, %f3;
    fma.rn.f32 %f1, %f1, %f2, %f3;
    fma.rn.f32 %f1, %f1, %f2, %f3;
    fma.rn.f32 %f1, %f1, %f2, %f3;
    add.u32 %r6, %r6, 1;
    setp.lt.u32 %p1, %r6, %r1;
    @%p1 bra AGAIN;
    mul.wide.u32 %d2, %r5, 4;
    add.s64 %d2, %d1, %d2;
    st.global.f32 [%d2], %f1;
    ret;
}
\0"""


class _CudaError(Exception):
    def __init__(self, what: str, code: int) -> None:
        super().__init__(f"{what}: CUDA error {code}")
        self.code = code


def main() -> int:
    """Test the first GPU; what it says is one line."""
    try:
        gpu = _Gpu(ctypes.CDLL("libcuda.so.1"))
    except OSError as problem:
        _say(str(problem))
        return CANNOT
    except _CudaError as problem:
        _say(str(problem))
        return CANNOT if problem.code == _NO_DEVICE else FAILED
    try:
        wrong = next(_found(gpu), None)
    except _CudaError as problem:
        wrong = str(problem)
    if wrong is None:
        return PASSED
    _say(str(wrong))
    return FAILED


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")


def _found(gpu: "_Gpu") -> Iterator[str]:
    """What is wrong, as it is found."""
    results = gpu.work(_ROUNDS)
    odd = sum(result != results[0] for result in results)
    if odd:
        yield f"{odd} of {len(results)} threads computed something else than the others"
    pieces = gpu.all_memory()
    for pattern in _PATTERNS:
        wrong = gpu.wrong_words(pieces, pattern)
        if wrong:
            yield f"{wrong} words of memory did not keep the pattern {pattern:#010x}"


class _Gpu:
    """The first device, with a context of its own."""

    def __init__(self, cuda: Any) -> None:
        self._cuda = cuda
        device, context, module = ctypes.c_int(), ctypes.c_void_p(), ctypes.c_void_p()
        self._must("cuInit", 0)
        self._must("cuDeviceGet", ctypes.byref(device), 0)
        self._must("cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
        self._must("cuCtxSetCurrent", context)
        self._must("cuModuleLoadData", ctypes.byref(module), _PTX)
        self._module = module
        self._wrong = self._allocated(4)

    def work(self, rounds: int) -> list[bytes]:
        """What every thread made of the same numbers."""
        size = 4 * _BLOCKS * _THREADS
        memory = self._allocated(size)
        self._run("work", memory, ctypes.c_uint32(rounds))
        told = ctypes.create_string_buffer(size)
        self._must("cuMemcpyDtoH_v2", told, memory, ctypes.c_size_t(size))
        return [told.raw[at : at + 4] for at in range(0, size, 4)]

    def all_memory(self) -> list[tuple[ctypes.c_uint64, int]]:
        """As much as there is, in pieces, but for what the driver may need."""
        free, total = ctypes.c_size_t(), ctypes.c_size_t()
        self._must("cuMemGetInfo_v2", ctypes.byref(free), ctypes.byref(total))
        left, found = free.value - _LEFT_FREE, list[tuple[ctypes.c_uint64, int]]()
        while left > 0:
            size = min(left, _PIECE) // 4 * 4
            try:
                found.append((self._allocated(size), size // 4))
            except _CudaError as problem:
                if problem.code == _OUT_OF_MEMORY:
                    break
                raise
            left -= max(4, size)
        return found

    def wrong_words(self, pieces: list[tuple[ctypes.c_uint64, int]], pattern: int) -> int:
        """How many did not keep what was written: first all is written, then all is read."""
        self._must("cuMemsetD8_v2", self._wrong, ctypes.c_ubyte(0), ctypes.c_size_t(4))
        number = ctypes.c_uint32(pattern)
        for memory, words in pieces:
            self._run("fill", memory, ctypes.c_uint64(words), number)
        for memory, words in pieces:
            self._run("check", memory, ctypes.c_uint64(words), number, self._wrong)
        told = ctypes.c_uint32()
        self._must("cuMemcpyDtoH_v2", ctypes.byref(told), self._wrong, ctypes.c_size_t(4))
        return told.value

    def _allocated(self, size: int) -> ctypes.c_uint64:
        where = ctypes.c_uint64()
        self._must("cuMemAlloc_v2", ctypes.byref(where), ctypes.c_size_t(size))
        return where

    def _run(self, name: str, *arguments: Any) -> None:
        """To its end."""
        function = ctypes.c_void_p()
        self._must("cuModuleGetFunction", ctypes.byref(function), self._module, name.encode())
        pointers = (ctypes.c_void_p * len(arguments))(*map(ctypes.addressof, arguments))
        sizes = (_BLOCKS, 1, 1, _THREADS, 1, 1, 0)
        self._must("cuLaunchKernel", function, *sizes, None, pointers, None)
        self._must("cuCtxSynchronize")

    def _must(self, name: str, *arguments: Any) -> None:
        code = int(getattr(self._cuda, name)(*arguments))
        if code:
            raise _CudaError(name, code)


if __name__ == "__main__":
    sys.exit(main())
