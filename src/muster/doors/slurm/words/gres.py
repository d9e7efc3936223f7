"""GPUs as Slurm users ask for them: `gpu:a100:2`, `gpu:1g.5gb:1`, `mps:50`, `shard:1`. Pure."""

import re
from collections.abc import Iterable, Sequence

from muster.model.gpu import WHOLE_GPU_MILLI, GpuAsk, Mig, MpsShare, Slice, TimeShare
from muster.model.value import GpuModel, Value, replace

SHARDS_PER_GPU = 4
"""How many shards a GPU has: Slurm's sites choose it, and ours share in quarters."""

MPS_PER_GPU = 100

_PROFILE = re.compile(r"(?:(?:nvidia_)?([a-z0-9]+)_)?([0-9]g\.[0-9]+gb(?:[+-][a-z.]+)?)")


class BadGresError(ValueError):
    """The text names something that is no GPU, or no number of them."""


class NoSuchTypeError(ValueError):
    """No GPU of this type is anywhere."""


class GpuRequest(Value):
    """A number of GPUs, or parts of them, of one type; None wants none."""

    count: int
    part: Slice | None = None
    models: tuple[GpuModel, ...] = ()
    text: str = ""

    def ask(self, count: int | None = None) -> GpuAsk | None:
        """So many of them for one task."""
        number = self.count if count is None else count
        if number == 0:
            return None
        return GpuAsk(count=number, slice=self.part, models=self.models)


def type_of(model: GpuModel, models: Iterable[GpuModel]) -> str:
    """`a100` for A100-40GB, unless there are others that begin so."""
    short = model.lower().partition("-")[0]
    alike = {each for each in models if each.lower().partition("-")[0] == short}
    return short if len(alike) <= 1 else model.lower()


def gres_wish(text: str, models: Sequence[GpuModel]) -> GpuRequest | None:
    """What `--gres` asks for on each node; `none` asks for nothing."""
    found: GpuRequest | None = None
    for word in text.split(","):
        if word.strip().lower() in {"", "none"}:
            continue
        parts = word.strip().removeprefix("gres:").removeprefix("gres/").split(":")
        new = _of_kind(parts[0].lower(), parts[1:], models)
        if found is not None and (found.part, found.models) != (new.part, new.models):
            raise BadGresError(text)
        found = new if found is None else replace(found, count=found.count + new.count)
    return None if found is None else replace(found, text=f"gres:{text.removeprefix('gres:')}")


def gpu_wish(text: str, models: Sequence[GpuModel]) -> GpuRequest:
    """What `--gpus` and its kin take: `4`, `a100:4`, `gpu:4`."""
    parts = text.strip().split(":")
    parts = parts[1:] if parts[0].lower() == "gpu" and len(parts) > 1 else parts
    if len(parts) == 1 and not parts[0].isdecimal():
        # One word alone is a type of which one is wanted.
        raise NoSuchTypeError(text)
    return replace(_gpus(parts, models), text=f"gres:gpu:{':'.join(parts)}")


def _of_kind(kind: str, parts: list[str], models: Sequence[GpuModel]) -> GpuRequest:
    if kind == "gpu":
        return _gpus(parts, models)
    if kind == "mps":
        share = _count(parts[-1:]) * WHOLE_GPU_MILLI // MPS_PER_GPU
        if not 0 < share <= WHOLE_GPU_MILLI:
            raise BadGresError(parts)
        whole = share == WHOLE_GPU_MILLI
        return GpuRequest(count=1, part=None if whole else MpsShare(milli=share))
    if kind == "shard":
        shards = _count(parts[-1:])
        if shards >= SHARDS_PER_GPU:
            return GpuRequest(count=-(-shards // SHARDS_PER_GPU))
        return GpuRequest(count=1, part=TimeShare(replicas=SHARDS_PER_GPU // max(1, shards)))
    raise BadGresError(kind)


def _gpus(parts: list[str], models: Sequence[GpuModel]) -> GpuRequest:
    if not parts or (len(parts) == 1 and parts[0].isdecimal()):
        return GpuRequest(count=_count(parts))
    kind, count = parts[0].lower(), _count(parts[1:2])
    if found := _PROFILE.fullmatch(kind):
        meant = _models(found[1], models) if found[1] else ()
        return GpuRequest(count=count, part=Mig(profile=found[2]), models=meant)
    return GpuRequest(count=count, models=_models(kind, models))


def _models(kind: str, models: Sequence[GpuModel]) -> tuple[GpuModel, ...]:
    wanted = kind.replace("_", "-")
    meant = [
        model
        for model in models
        if model.lower() == wanted or model.lower().startswith(f"{wanted}-")
    ]
    if not meant:
        raise NoSuchTypeError(kind)
    return tuple(sorted(set(meant)))


def _count(parts: Sequence[str]) -> int:
    if not parts:
        return 1
    text = parts[0].partition("(")[0]
    if not text.isdecimal() or len(text) > 6:
        raise BadGresError(text)
    return int(text)
