"""Amounts of the three things a node gives: CPU, memory, GPU."""

from typing import Self

from muster.model.value import Value


class Resources(Value, gc=False):
    """An amount of each resource; GPUs are counted in thousandths, whole or sliced."""

    cpu_milli: int = 0
    memory_mib: int = 0
    gpu_milli: int = 0

    def __add__(self, other: Self) -> "Resources":
        return Resources(
            cpu_milli=self.cpu_milli + other.cpu_milli,
            memory_mib=self.memory_mib + other.memory_mib,
            gpu_milli=self.gpu_milli + other.gpu_milli,
        )

    def __sub__(self, other: Self) -> "Resources":
        return Resources(
            cpu_milli=self.cpu_milli - other.cpu_milli,
            memory_mib=self.memory_mib - other.memory_mib,
            gpu_milli=self.gpu_milli - other.gpu_milli,
        )

    def __mul__(self, times: int) -> "Resources":
        return Resources(
            cpu_milli=self.cpu_milli * times,
            memory_mib=self.memory_mib * times,
            gpu_milli=self.gpu_milli * times,
        )

    def fits_in(self, room: Self) -> bool:
        """Is there at least this much of everything in `room`?"""
        return (
            self.cpu_milli <= room.cpu_milli
            and self.memory_mib <= room.memory_mib
            and self.gpu_milli <= room.gpu_milli
        )


NOTHING = Resources()
