"""GPUs in the words of OpenTelemetry's conventions for hardware, `hw.*` (pure).

They are in development there, so nothing of ours is judged by them.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping

from muster.model.value import Value
from muster.telemetry import names
from muster.telemetry.family import Family, FamilyKind, Labels, Point

_MIB = 1_048_576


class _Convention(Value):
    """What becomes of a family of ours. labels: besides those that name the GPU."""

    name: str
    kind: FamilyKind
    unit: str
    help: str
    of: Callable[[float], float]
    labels: Labels = ()


_CONVENTIONS: Mapping[str, _Convention] = {
    names.GPU_UTIL.name: _Convention(
        name="hw.gpu.utilization",
        kind=FamilyKind.GAUGE,
        unit="1",
        help="Part of the time in which the GPU computed.",
        of=lambda percent: percent / 100,
        labels=(("hw.gpu.task", "general"),),
    ),
    names.FB_USED.name: _Convention(
        name="hw.gpu.memory.usage",
        kind=FamilyKind.GAUGE,
        unit="By",
        help="Memory of the GPU in use.",
        of=lambda mib: mib * _MIB,
    ),
    names.GPU_TEMP.name: _Convention(
        name="hw.temperature",
        kind=FamilyKind.GAUGE,
        unit="Cel",
        help="Temperature of the GPU.",
        of=float,
    ),
    names.POWER_USAGE.name: _Convention(
        name="hw.power",
        kind=FamilyKind.GAUGE,
        unit="W",
        help="Power that the GPU draws.",
        of=float,
    ),
    names.ENERGY.name: _Convention(
        name="hw.energy",
        kind=FamilyKind.COUNTER,
        unit="J",
        help="Energy that the GPU has used.",
        of=lambda millijoules: millijoules / 1_000,
    ),
    names.ECC_DBE_VOL.name: _Convention(
        name="hw.errors",
        kind=FamilyKind.COUNTER,
        unit="{error}",
        help="Memory errors of the GPU that were not corrected.",
        of=float,
        labels=(("error.type", "uncorrected"),),
    ),
}


def hardware_families(families: Iterable[Family]) -> Iterator[Family]:
    """What the conventions call these, of those that they know."""
    for family in families:
        known = _CONVENTIONS.get(family.name)
        if known is not None and family.points:
            yield Family(
                name=known.name,
                kind=known.kind,
                help=known.help,
                unit=known.unit,
                points=tuple(
                    Point((*_gpu(point.labels), *known.labels), known.of(point.value))
                    for point in family.points
                ),
            )


def _gpu(labels: Labels) -> Labels:
    found = dict(labels)
    instance = found.get("GPU_I_ID", "")
    uuid = found.get("UUID", "")
    return (
        ("hw.id", f"{uuid}/{instance}" if instance else uuid),
        ("hw.type", "gpu"),
        ("hw.name", found.get("device", "")),
        ("hw.model", found.get("modelName", "")),
        ("host.name", found.get("Hostname", "")),
    )
