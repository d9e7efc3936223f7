"""Which MIG profiles exist on which GPU, and where their instances may sit."""

import re
from collections.abc import Iterable, Mapping

from muster.model.gpu import WHOLE_GPU_MILLI, MigInstance
from muster.model.value import GpuModel, Value


class MigProfile(Value):
    """One size of instance that a GPU model can be cut into.

    `starts` are the memory slices an instance may begin at. `memory_mib` is the least that a driver
    was seen to give: drivers differ by what they keep for themselves. A GPU has one set of media
    engines to lend to a part of itself, so at most one `media` instance exists on a device.
    """

    name: str
    compute_slices: int
    memory_slices: int
    memory_mib: int
    at_most: int
    starts: tuple[int, ...]
    media: bool = False


class Geometry(Value):
    """How many slices a GPU model has, and every profile it offers."""

    model: GpuModel
    compute_slices: int
    memory_slices: int
    profiles: tuple[MigProfile, ...]


def geometry(model: GpuModel | None) -> Geometry | None:
    """How this model is cut, or None where we know of no way to cut it."""
    return None if model is None else GEOMETRIES.get(model)


def mig_profile(model: GpuModel | None, name: str) -> MigProfile | None:
    """The profile of this name, or None where the model does not offer it."""
    return None if model is None else _PROFILES.get((model, name))


def mig_milli(model: GpuModel | None, profile: str) -> int:
    """What part of a GPU an instance is, in thousandths: its share of the compute slices.

    A profile that the model does not offer counts as a whole GPU, so that a mistake is never cheap.
    Before the model is known, the name says the slices, and a GPU is taken to have seven of them.
    """
    if model is None:
        return _milli_by_name(profile)
    cut, found = geometry(model), mig_profile(model, profile)
    if cut is None or found is None:
        return WHOLE_GPU_MILLI
    return WHOLE_GPU_MILLI * found.compute_slices // cut.compute_slices


def free_starts(
    model: GpuModel | None, taken: Iterable[MigInstance], profile: str
) -> tuple[int, ...]:
    """Where one more instance may begin on a device that has these; empty means nowhere."""
    cut, wanted = geometry(model), mig_profile(model, profile)
    beside = [(mig_profile(model, one.profile), one.start) for one in taken]
    known = [(each, start) for each, start in beside if each is not None]
    # What an instance of a profile we do not know takes, we do not know either.
    if cut is None or wanted is None or len(known) < len(beside):
        return ()
    if not _is_left(cut, [each for each, _ in known], wanted):
        return ()
    used = {at for each, start in known for at in _slices(each, start)}
    return tuple(start for start in wanted.starts if used.isdisjoint(_slices(wanted, start)))


def is_legal(model: GpuModel | None, instances: Iterable[MigInstance]) -> bool:
    """Whether all these instances can exist on one device at the same time."""
    layout = tuple(instances)
    return all(
        one.start in free_starts(model, layout[:at], one.profile) for at, one in enumerate(layout)
    )


def _milli_by_name(profile: str) -> int:
    slices = re.match(r"([1-7])g\.", profile)
    return WHOLE_GPU_MILLI * int(slices[1]) // 7 if slices else WHOLE_GPU_MILLI


def _is_left(cut: Geometry, taken: list[MigProfile], wanted: MigProfile) -> bool:
    """Whether the device has slices, engines and instances left for one more, wherever it sits."""
    compute_slices = sum(each.compute_slices for each in taken)
    return (
        compute_slices + wanted.compute_slices <= cut.compute_slices
        and not (wanted.media and any(each.media for each in taken))
        and taken.count(wanted) < wanted.at_most
    )


def _slices(profile: MigProfile, start: int) -> range:
    return range(start, start + profile.memory_slices)


_Shape = tuple[int, int, int, tuple[int, ...], bool]

# compute slices, memory slices, at most, starts, media
_EIGHTHS: tuple[_Shape, ...] = (
    (1, 1, 7, (0, 1, 2, 3, 4, 5, 6), False),
    (1, 1, 1, (0, 1, 2, 3, 4, 5, 6), True),
    (1, 2, 4, (0, 2, 4, 6), False),
    (2, 2, 3, (0, 2, 4), False),
    (3, 4, 2, (0, 4), False),
    (4, 4, 1, (0,), False),
    (7, 8, 1, (0,), False),
)
_QUARTERS: tuple[_Shape, ...] = (
    (1, 1, 4, (0, 1, 2, 3), False),
    (1, 1, 1, (0, 1, 2, 3), True),
    (2, 2, 2, (0, 2), False),
    (2, 2, 1, (0, 2), True),
    (4, 4, 1, (0,), False),
)


def _cut(model: str, shapes: tuple[_Shape, ...], memory_mib: dict[str, int]) -> Geometry:
    """The geometry of a model whose profiles have these shapes, under these names in this order."""
    profiles = tuple(
        MigProfile(
            name=name,
            compute_slices=compute_slices,
            memory_slices=memory_slices,
            memory_mib=memory_mib[name],
            at_most=at_most,
            starts=starts,
            media=media,
        )
        for name, (compute_slices, memory_slices, at_most, starts, media) in zip(
            memory_mib, shapes, strict=True
        )
    )
    return Geometry(
        model=GpuModel(model),
        # The last shape is the whole GPU.
        compute_slices=profiles[-1].compute_slices,
        memory_slices=profiles[-1].memory_slices,
        profiles=profiles,
    )


_KNOWN = (
    _cut(
        "A30-24GB",
        _QUARTERS,
        {
            "1g.6gb": 5_952,
            "1g.6gb+me": 5_952,
            "2g.12gb": 11_968,
            "2g.12gb+me": 11_968,
            "4g.24gb": 24_000,
        },
    ),
    _cut(
        "A100-40GB",
        _EIGHTHS,
        {
            "1g.5gb": 4_864,
            "1g.5gb+me": 4_864,
            "1g.10gb": 9_856,
            "2g.10gb": 9_856,
            "3g.20gb": 19_968,
            "4g.20gb": 19_968,
            "7g.40gb": 40_192,
        },
    ),
    _cut(
        "A100-80GB",
        _EIGHTHS,
        {
            "1g.10gb": 9_728,
            "1g.10gb+me": 9_728,
            "1g.20gb": 19_968,
            "2g.20gb": 19_968,
            "3g.40gb": 40_192,
            "4g.40gb": 40_192,
            "7g.80gb": 80_896,
        },
    ),
    _cut(
        "H100-80GB",
        _EIGHTHS,
        {
            "1g.10gb": 9_856,
            "1g.10gb+me": 9_856,
            "1g.20gb": 19_968,
            "2g.20gb": 19_968,
            "3g.40gb": 40_192,
            "4g.40gb": 40_192,
            "7g.80gb": 81_152,
        },
    ),
    _cut(
        "H100-94GB",
        _EIGHTHS,
        {
            "1g.12gb": 10_880,
            "1g.12gb+me": 10_880,
            "1g.24gb": 22_016,
            "2g.24gb": 22_016,
            "3g.47gb": 47_232,
            "4g.47gb": 47_232,
            "7g.94gb": 94_848,
        },
    ),
    _cut(
        "H200-141GB",
        _EIGHTHS,
        {
            "1g.18gb": 16_384,
            "1g.18gb+me": 16_384,
            "1g.35gb": 33_024,
            "2g.35gb": 33_024,
            "3g.71gb": 71_168,
            "4g.71gb": 71_168,
            "7g.141gb": 143_104,
        },
    ),
    _cut(
        "B200-180GB",
        _EIGHTHS,
        {
            "1g.23gb": 20_992,
            "1g.23gb+me": 20_992,
            "1g.45gb": 45_312,
            "2g.45gb": 45_312,
            "3g.90gb": 91_136,
            "4g.90gb": 91_136,
            "7g.180gb": 182_784,
        },
    ),
)

GEOMETRIES: Mapping[GpuModel, Geometry] = {each.model: each for each in _KNOWN}

_PROFILES = {(each.model, profile.name): profile for each in _KNOWN for profile in each.profiles}
