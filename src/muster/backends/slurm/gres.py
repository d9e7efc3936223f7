"""GPUs, MIG instances, shards and parts by MPS, as Slurm names and counts them. Pure.

Which of them a job gets is Slurm's choice, so ours are counted by the same types.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

from muster.backends.instances import packed
from muster.model.gpu import Device, Mig, MigInstance, MpsShare, TimeShare
from muster.model.gpu_products import memory_of, sizes_of
from muster.model.mig import GEOMETRIES, mig_profile
from muster.model.placement import DeviceShare
from muster.model.value import DeviceId, GpuModel, Value, replace

_GRES = re.compile(
    r"(?P<name>[A-Za-z]\w*)(?::(?P<type>[^:(),=]+))?[:=](?P<count>\d+)(?P<unit>[KMG]?)(?![\w.])"
)
_SOCKETS = re.compile(r"\([^)]*\)")
_PROFILE = re.compile(r"(?:^|[_-])(?P<profile>\d+g\.\d+gb(?:\+me)?)$", re.IGNORECASE)
_UNITS = {"": 1, "K": 1_024, "M": 1_024**2, "G": 1_024**3}
GPU, SHARD, MPS = "gpu", "shard", "mps"


class Gres(Value, gc=False):
    """So many of one type. profile: of which MIG instances these are."""

    name: str
    type: str
    count: int

    @property
    def profile(self) -> str | None:
        found = _PROFILE.search(self.type) if self.name == GPU else None
        return None if found is None else found["profile"].lower()

    @property
    def word(self) -> str:
        """As `--gres` names it."""
        return f"{self.name}:{self.type}" if self.type else self.name


def gres_in(text: str) -> tuple[Gres, ...]:
    """Of `gpu:a100:2(S:0-1),gpu:a100_1g.5gb:7,shard:a100:8`, or of `gpu:a100=2`; no other words."""
    return tuple(
        Gres(
            name=each["name"],
            type=each["type"] or "",
            count=int(each["count"]) * _UNITS[each["unit"]],
        )
        for each in _GRES.finditer(_SOCKETS.sub("", text))
    )


def instances_in(found: Iterable[Gres]) -> Mapping[str, int]:
    """How many MIG instances of each profile these are."""
    counts: Counter[str] = Counter()
    for each in found:
        if each.profile is not None:
            counts[each.profile] += each.count
    return counts


def devices(node: str, found: Sequence[Gres], models: Mapping[str, GpuModel]) -> tuple[Device, ...]:
    """Whole GPUs first, in the order of the types, then those that are cut: as few as hold them."""
    whole = list(_whole(found, models))
    shared = _Shared.of(found, len(whole))
    made = [replace(each, turns=shared.turns, mps=bool(shared.mps)) for each in whole]
    cut = _cut(found, models)
    return tuple(
        replace(each, id=DeviceId(f"{node}/gpu{index}"), index=index)
        for index, each in enumerate((*made, *cut))
    )


def asked(shares: Iterable[tuple[int, DeviceShare]], found: Sequence[Gres]) -> tuple[str, ...]:
    """What `--gres` asks a node for: each share with the index of its device there."""
    amounts: Counter[str] = Counter()
    whole = [each for each in found if each.name == GPU and each.profile is None]
    is_mixed = len([each for each in found if each.name == GPU]) > 1
    shared = _Shared.of(found, sum(each.count for each in whole))
    for index, share in shares:
        match share.slice:
            case None:
                amounts[_type_at(index, whole) if is_mixed else GPU] += 1
            case Mig(profile=profile):
                amounts[_type_with(profile, found)] += 1
            case TimeShare(replicas=replicas):
                amounts[SHARD] += max(1, (shared.turns or 1) // replicas)
            case MpsShare(milli=milli):
                amounts[MPS] += max(1, -(-milli * shared.mps // 1_000))
    return tuple(f"{word}:{count}" for word, count in sorted(amounts.items()))


class _Shared(Value, gc=False):
    """How many shards and how many parts of MPS each GPU has."""

    turns: int
    mps: int

    @classmethod
    def of(cls, found: Sequence[Gres], gpus: int) -> "_Shared":
        def of_each(name: str) -> int:
            return sum(each.count for each in found if each.name == name) // max(1, gpus)

        return cls(turns=of_each(SHARD), mps=of_each(MPS))


def _whole(found: Sequence[Gres], models: Mapping[str, GpuModel]) -> Iterator[Device]:
    for each in found:
        if each.name == GPU and each.profile is None:
            model = model_of(each.type or GPU, models)
            for _ in range(each.count):
                yield _device(model, None)


def _cut(found: Sequence[Gres], models: Mapping[str, GpuModel]) -> list[Device]:
    by_model: dict[GpuModel, Counter[str]] = {}
    for each in found:
        if each.profile is not None:
            model = _model_with(each, models)
            by_model.setdefault(model, Counter())[each.profile] += each.count
    return [
        _device(model, layout)
        for model, counts in sorted(by_model.items())
        for layout in packed(model, counts)
    ]


def _device(model: GpuModel, mig: tuple[MigInstance, ...] | None) -> Device:
    memory_mib = memory_of(model) or 0
    return Device(id=DeviceId(""), index=0, model=model, memory_mib=memory_mib, mig=mig)


def _type_at(index: int, whole: Sequence[Gres]) -> str:
    """The type of the GPU at this place among the whole ones."""
    for each in whole:
        if index < each.count:
            return each.word
        index -= each.count
    return GPU


def _type_with(profile: str, found: Sequence[Gres]) -> str:
    return next((each.word for each in found if each.profile == profile), f"{GPU}:{profile}")


def model_of(kind: str, models: Mapping[str, GpuModel]) -> GpuModel:
    """`a100` is the smallest A100 that there is, unless the administrator says which it is."""
    if kind in models:
        return models[kind]
    name = kind.upper().replace("NVIDIA_", "").replace("TESLA_", "").replace("_", "-")
    known = sizes_of(name) or sizes_of(name.partition("-")[0])
    exact = [each for each in known if each == name]
    return (
        exact[0]
        if exact
        else min(known, key=lambda each: memory_of(each) or 0, default=GpuModel(name))
    )


def _model_with(gres: Gres, models: Mapping[str, GpuModel]) -> GpuModel:
    """The GPU of which these are instances: the smallest of its family that can be cut so."""
    if gres.type in models:
        return models[gres.type]
    family = _PROFILE.sub("", gres.type)
    if family in models:
        return models[family]
    profile, plain = gres.profile or "", model_of(family or GPU, models)
    alike = [each for each in GEOMETRIES if each.partition("-")[0] == plain.partition("-")[0]]
    fitting = [each for each in alike or GEOMETRIES if mig_profile(each, profile) is not None]
    return (
        plain
        if plain in fitting
        else min(fitting, key=lambda each: (memory_of(each) or 0, each), default=plain)
    )
