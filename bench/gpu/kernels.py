"""Kernels of known load, as PTX that the driver compiles: no compiler is needed.

Each takes the address of its memory, how often it goes round, and the size of that memory.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Kind:
    """targets: the first that the driver takes. per_thread: bytes that each thread writes."""

    name: str
    text: str
    targets: tuple[str, ...] = ("sm_75", "sm_52")
    version: str = "6.4"
    per_thread: int = 4

    def source(self, target: str) -> bytes:
        head = f".version {self.version}\n.target {target}\n.address_size 64\n"
        return (head + self.text).encode() + b"\0"


_ENTRY = ".visible .entry {name}(.param .u64 memory, .param .u32 rounds, .param .u64 bytes)"

_BEGIN = """
{
    .reg .pred %p<3>;
    .reg .b32 %r<9>;
    .reg .b32 %a<5>;
    .reg .f32 %f<20>;
    .reg .f64 %g<4>;
    .reg .b64 %d<9>;
    ld.param.u64 %d1, [memory];
    cvta.to.global.u64 %d1, %d1;
    ld.param.u32 %r1, [rounds];
    ld.param.u64 %d2, [bytes];
    mov.u32 %r2, %ctaid.x;
    mov.u32 %r3, %ntid.x;
    mov.u32 %r4, %tid.x;
    mad.lo.s32 %r5, %r2, %r3, %r4;
    mov.u32 %r6, 0;
"""

_ROUND_AGAIN = """
    add.u32 %r6, %r6, 1;
    setp.lt.u32 %p1, %r6, %r1;
    @%p1 bra AGAIN;
"""


def _entry(name: str, body: str) -> str:
    return _ENTRY.replace("{name}", name) + _BEGIN + body + "    ret;\n}\n"


_SPIN = (
    """
    cvt.rn.f32.u32 %f1, %r5;
    mov.f32 %f2, 0f3F7FBE77;
    mov.f32 %f3, 0f3A83126F;
AGAIN:
"""
    + "    fma.rn.f32 %f1, %f1, %f2, %f3;\n" * 8
    + _ROUND_AGAIN
    + """
    mul.wide.u32 %d4, %r5, 4;
    add.s64 %d4, %d1, %d4;
    st.global.f32 [%d4], %f1;
"""
)

_SPIN64 = (
    """
    cvt.rn.f64.u32 %g1, %r5;
    mov.f64 %g2, 0d3FEFF7CED916872B;
    mov.f64 %g3, 0d3F50624DD2F1A9FC;
AGAIN:
"""
    + "    fma.rn.f64 %g1, %g1, %g2, %g3;\n" * 8
    + _ROUND_AGAIN
    + """
    mul.wide.u32 %d4, %r5, 8;
    add.s64 %d4, %d1, %d4;
    st.global.f64 [%d4], %g1;
"""
)

_MMA = "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"


def _multiplied(first: int) -> str:
    """One product of small matrices, added to four registers of its own."""
    sums = ", ".join(f"%f{number}" for number in range(first, first + 4))
    return f"    {_MMA} {{{sums}}}, {{%a1, %a2, %a3, %a4}}, {{%a1, %a2}}, {{{sums}}};\n"


_TENSOR = (
    "".join(f"    mov.b32 %a{number}, 0x3C003C00;\n" for number in range(1, 5))
    + "".join(f"    mov.f32 %f{number}, 0f00000000;\n" for number in range(1, 17))
    + "AGAIN:\n"
    + "".join(_multiplied(first) for first in (1, 5, 9, 13))
    + _ROUND_AGAIN
    + "".join(f"    add.f32 %f1, %f1, %f{number};\n" for number in range(2, 17))
    + """
    mul.wide.u32 %d4, %r5, 4;
    add.s64 %d4, %d1, %d4;
    st.global.f32 [%d4], %f1;
"""
)

# The first half of the memory is copied into the second, by all threads together.
_STREAM = (
    """
    shr.u64 %d2, %d2, 1;
    add.s64 %d3, %d1, %d2;
    mov.u32 %r7, %nctaid.x;
    mul.lo.u32 %r7, %r7, %r3;
    mul.wide.u32 %d4, %r5, 16;
    mul.wide.u32 %d5, %r7, 16;
AGAIN:
    mov.u64 %d6, %d4;
NEXT:
    setp.ge.u64 %p2, %d6, %d2;
    @%p2 bra OVER;
    add.s64 %d7, %d1, %d6;
    add.s64 %d8, %d3, %d6;
    ld.global.v4.f32 {%f1, %f2, %f3, %f4}, [%d7];
    st.global.v4.f32 [%d8], {%f1, %f2, %f3, %f4};
    add.s64 %d6, %d6, %d5;
    bra NEXT;
OVER:
"""
    + _ROUND_AGAIN
)

# What a collective does whose peer never comes: it looks at a flag that nobody sets.
_STUCK = """
AGAIN:
    ld.volatile.global.u32 %r7, [%d1];
    setp.eq.u32 %p1, %r7, 0;
    @%p1 bra AGAIN;
"""

KINDS = {
    kind.name: kind
    for kind in (
        Kind("spin", _entry("spin", _SPIN)),
        Kind("spin64", _entry("spin64", _SPIN64), per_thread=8),
        Kind("tensor", _entry("tensor", _TENSOR), targets=("sm_80",), version="7.0"),
        Kind("stream", _entry("stream", _STREAM)),
        Kind("stuck", _entry("stuck", _STUCK)),
    )
}
