"""Loading a device filter into the kernel and tying it to a control group of version 2."""

import ctypes
import errno
import os
import struct

_CALLS = {"x86_64": 321, "aarch64": 280, "riscv64": 280, "ppc64le": 361, "s390x": 351}
"""bpf(2) by the kind of machine."""

_PROG_LOAD = 5
_PROG_ATTACH = 8
_CGROUP_DEVICE_PROGRAM = 15
_CGROUP_DEVICE = 6
# Other programs at this group and above it, such as systemd's, go on being asked as well.
_ALLOW_MULTI = 2
_INSTRUCTION_BYTES = 8
_ATTRIBUTES_BYTES = 128

_libc = ctypes.CDLL(None, use_errno=True)


def tie_filter(program: bytes, folder: str) -> None:
    """From now on the kernel asks this program at each opening of a device in this group.

    It goes with the group. OSError where the kernel or our rights do not allow it.
    """
    loaded = _loaded(program)
    try:
        group = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            _call(_PROG_ATTACH, struct.pack("<4I", group, loaded, _CGROUP_DEVICE, _ALLOW_MULTI))
        finally:
            os.close(group)
    finally:
        os.close(loaded)


def _loaded(program: bytes) -> int:
    code = ctypes.create_string_buffer(program, len(program))
    licence = ctypes.create_string_buffer(b"Apache-2.0")
    attributes = struct.pack(
        "<2I2Q",
        _CGROUP_DEVICE_PROGRAM,
        len(program) // _INSTRUCTION_BYTES,
        ctypes.addressof(code),
        ctypes.addressof(licence),
    )
    return _call(_PROG_LOAD, attributes)


def _call(command: int, attributes: bytes) -> int:
    number = _CALLS.get(os.uname().machine)
    if number is None:
        raise OSError(errno.ENOSYS, f"no device filters on {os.uname().machine}")
    whole = ctypes.create_string_buffer(attributes, _ATTRIBUTES_BYTES)
    answer: int = _libc.syscall(number, command, whole, _ATTRIBUTES_BYTES)
    if answer < 0:
        error = ctypes.get_errno()
        raise OSError(error, os.strerror(error))
    return answer
