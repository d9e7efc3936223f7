"""MIG instances of engines that count them and do not say on which GPU they are. Pure."""

from collections import Counter
from collections.abc import Mapping

from muster.model.gpu import MigInstance
from muster.model.mig import free_starts, mig_milli
from muster.model.value import GpuModel


def packed(model: GpuModel, counts: Mapping[str, int]) -> list[tuple[MigInstance, ...]]:
    """So many instances of each profile, on as few GPUs as hold them."""
    elements = Counter(counts).elements()
    profiles = sorted(elements, key=lambda each: (-mig_milli(model, each), each))
    found: list[list[MigInstance]] = []
    for profile in profiles:
        for layout in found:
            starts = free_starts(model, layout, profile)
            if starts:
                layout.append(MigInstance(profile=profile, start=starts[0]))
                break
        else:
            starts = free_starts(model, (), profile)
            found.append([MigInstance(profile=profile, start=starts[0] if starts else 0)])
    return [tuple(layout) for layout in found]
