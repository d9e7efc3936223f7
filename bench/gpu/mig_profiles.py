"""Compares our MIG table with what NVML says of the GPUs in this machine. It only asks.

Run `PYTHONPATH=src python bench/gpu/mig_profiles.py`; it ends with 1 if anything differs.
"""

import ctypes
import sys
from collections.abc import Iterator

from muster.model.mig import GEOMETRIES, Geometry, MigProfile

NVML_SUCCESS = 0
PROFILES_TO_TRY = 64
"""NVML numbers its profiles from 0 with gaps, and adds some with every generation."""

MOST_PLACEMENTS = 32
NAME_LENGTH = 96


class ProfileAnswer(ctypes.Structure):
    """`nvmlGpuInstanceProfileInfo_v2_t`."""

    _fields_ = (
        ("version", ctypes.c_uint),
        ("id", ctypes.c_uint),
        ("is_p2p_supported", ctypes.c_uint),
        ("slice_count", ctypes.c_uint),
        ("instance_count", ctypes.c_uint),
        ("multiprocessor_count", ctypes.c_uint),
        ("copy_engine_count", ctypes.c_uint),
        ("decoder_count", ctypes.c_uint),
        ("encoder_count", ctypes.c_uint),
        ("jpeg_count", ctypes.c_uint),
        ("ofa_count", ctypes.c_uint),
        ("memory_size_mb", ctypes.c_ulonglong),
        ("name", ctypes.c_char * NAME_LENGTH),
    )


class PlacementAnswer(ctypes.Structure):
    """`nvmlGpuInstancePlacement_t`."""

    _fields_ = (("start", ctypes.c_uint), ("size", ctypes.c_uint))


def main() -> int:
    nvml = ctypes.CDLL("libnvidia-ml.so.1")
    must(nvml.nvmlInit_v2(), "start NVML")
    count = ctypes.c_uint()
    must(nvml.nvmlDeviceGetCount_v2(ctypes.byref(count)), "count the GPUs")
    print(f"driver {driver_version(nvml)}")
    same = [agrees(nvml, index) for index in range(count.value)]
    nvml.nvmlShutdown()
    print(f"\n{sum(same)} of {len(same)} GPUs are as our table says")
    return 0 if same and all(same) else 1


def agrees(nvml: ctypes.CDLL, index: int) -> bool:
    """Print both sides for one GPU, and say whether they are the same."""
    device = ctypes.c_void_p()
    must(nvml.nvmlDeviceGetHandleByIndex_v2(index, ctypes.byref(device)), "find the GPU")
    name = device_name(nvml, device)
    told = {profile.name: profile for profile in told_profiles(nvml, device)}
    ours = geometry_of(name, set(told))
    print(f"\nGPU {index}: {name}, our {ours.model if ours else 'table does not have it'}")
    table = {profile.name: profile for profile in ours.profiles} if ours else {}
    print(f"{'profile':<12} {'':<5} compute memory    MiB at most  media starts")
    same = [is_same(told.get(each), table.get(each)) for each in table | told]
    return ours is not None and all(same)


def is_same(told: MigProfile | None, ours: MigProfile | None) -> bool:
    """Print one profile from both sides, what differs between them, and whether that matters."""
    for side, profile in (("NVML", told), ("ours", ours)):
        print(line(side, profile))
    if told is None or ours is None:
        print("  DIFFERENT: only one side has it")
        return False
    # Drivers keep more or less memory for themselves; the table promises the least of them.
    spare_mib = told.memory_mib - ours.memory_mib
    if shape(told) != shape(ours) or spare_mib < 0:
        print("  DIFFERENT")
        return False
    if spare_mib > 0:
        print(f"  this driver gives {spare_mib} MiB more than we promise")
    return True


def line(side: str, profile: MigProfile | None) -> str:
    if profile is None:
        return f"{'-':<12} {side}"
    return (
        f"{profile.name:<12} {side:<5} {profile.compute_slices:>7} {profile.memory_slices:>6} "
        f"{profile.memory_mib:>6} {profile.at_most:>7} {profile.media!s:>6} "
        f"{','.join(map(str, profile.starts))}"
    )


def shape(profile: MigProfile) -> tuple[object, ...]:
    return (
        profile.compute_slices,
        profile.memory_slices,
        profile.at_most,
        profile.starts,
        profile.media,
    )


def geometry_of(device: str, profiles: set[str]) -> Geometry | None:
    """Our geometry for a device: its family is in the name, its memory in the whole-GPU profile."""
    for each in GEOMETRIES.values():
        family = each.model.partition("-")[0]
        if family in device and each.profiles[-1].name in profiles:
            return each
    return None


def told_profiles(nvml: ctypes.CDLL, device: ctypes.c_void_p) -> Iterator[MigProfile]:
    """Every profile NVML knows for the device, as one of ours."""
    for number in range(PROFILES_TO_TRY):
        answer = ProfileAnswer(version=ctypes.sizeof(ProfileAnswer) | 2 << 24)
        asked = nvml.nvmlDeviceGetGpuInstanceProfileInfoV(device, number, ctypes.byref(answer))
        if asked == NVML_SUCCESS:
            yield told_profile(answer, placements(nvml, device, answer.id))


def told_profile(answer: ProfileAnswer, at: list[PlacementAnswer]) -> MigProfile:
    name = answer.name.decode().removeprefix("MIG ")
    return MigProfile(
        name=name,
        compute_slices=answer.slice_count,
        memory_slices=at[0].size,
        memory_mib=answer.memory_size_mb,
        at_most=answer.instance_count,
        starts=tuple(sorted(each.start for each in at)),
        media="+me" in name,
    )


def placements(nvml: ctypes.CDLL, device: ctypes.c_void_p, profile: int) -> list[PlacementAnswer]:
    found, count = (PlacementAnswer * MOST_PLACEMENTS)(), ctypes.c_uint(MOST_PLACEMENTS)
    asked = nvml.nvmlDeviceGetGpuInstancePossiblePlacements_v2(
        device, profile, ctypes.byref(found), ctypes.byref(count)
    )
    must(asked, f"list the placements of profile {profile}")
    return list(found[: count.value])


def device_name(nvml: ctypes.CDLL, device: ctypes.c_void_p) -> str:
    name = ctypes.create_string_buffer(NAME_LENGTH)
    must(nvml.nvmlDeviceGetName(device, name, NAME_LENGTH), "name the GPU")
    return name.value.decode()


def driver_version(nvml: ctypes.CDLL) -> str:
    version = ctypes.create_string_buffer(NAME_LENGTH)
    must(nvml.nvmlSystemGetDriverVersion(version, NAME_LENGTH), "name the driver")
    return version.value.decode()


def must(code: int, what: str) -> None:
    if code != NVML_SUCCESS:
        sys.exit(f"NVML cannot {what}: error {code}")


if __name__ == "__main__":
    sys.exit(main())
