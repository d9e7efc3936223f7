"""What GPU products are called: from what a driver or a person says to the name of a model (pure).

A model is a family and its nominal memory, `A100-40GB`: the names that MIG geometry, quotas and
prices go by. Form factors do not matter to them.
"""

import re
from collections.abc import Mapping

from muster.model.mig import GEOMETRIES
from muster.model.value import GpuModel

_MIB_PER_GB = 1_024
# Drivers and ECC keep up to a fifteenth of the nominal memory for themselves.
_MOST_KEPT = 1.08

_BRANDS = frozenset({"nvidia", "tesla", "geforce", "quadro", "graphics", "device"})
_FORMS = re.compile(r"(?:pcie|sxm\d?|hbm\d\w?|nvl|nvlink|cg\d?|ac|generation|gpu)", re.IGNORECASE)
_SIZE = re.compile(r"(\d+)(?:gb?|gib)", re.IGNORECASE)

# What nvidia-smi shows as total memory where it was seen; elsewhere the nominal size is taken.
_SEEN_MIB: Mapping[str, int] = {
    "A10-24GB": 23_028,
    "A30-24GB": 24_576,
    "A40-48GB": 46_068,
    "A100-40GB": 40_960,
    "A100-80GB": 81_920,
    "A6000-48GB": 49_140,
    "B200-180GB": 183_359,
    "H100-80GB": 81_559,
    "H100-94GB": 95_830,
    "H200-141GB": 143_771,
    "L4-24GB": 23_034,
    "L40S-48GB": 46_068,
    "RTX4090-24GB": 24_564,
    "T4-16GB": 15_360,
    "V100-16GB": 16_384,
    "V100-32GB": 32_768,
}

_KNOWN = tuple(dict.fromkeys((*map(GpuModel, _SEEN_MIB), *GEOMETRIES)))


def _size_gb(model: GpuModel) -> int | None:
    """The nominal memory in a model's name."""
    found = re.fullmatch(r".+-(\d+)GB", model)
    return int(found[1]) if found else None


# The sizes that GPUs are sold with: those of models that are not named here, and of all that are.
_OTHER_GB = {4, 6, 8, 10, 11, 12, 20, 64, 96, 144, 186, 192}
_SOLD_GB = tuple(sorted(_OTHER_GB | {gb for each in _KNOWN if (gb := _size_gb(each))}))


def model_of(product: str, memory_mib: int) -> GpuModel:
    """The model of an NVML product name: `NVIDIA A100-SXM4-80GB` with 81,920 MiB is `A100-80GB`."""
    words = [word for word in re.split(r"[\s-]+", product.strip()) if word]
    plain = [word for word in words if not _says_nothing(word)]
    return GpuModel(f"{_joined(plain) or 'GPU'}-{_nominal_gb(words, memory_mib)}GB")


def memory_of(model: GpuModel) -> int | None:
    """How much memory a model has, in MiB, by its name; None where the name does not say."""
    if model in _SEEN_MIB:
        return _SEEN_MIB[model]
    size_gb = _size_gb(model)
    return None if size_gb is None else size_gb * _MIB_PER_GB


def sizes_of(family: str) -> tuple[GpuModel, ...]:
    """The models of a family that we know: `A100` comes as `A100-40GB` and `A100-80GB`."""
    return tuple(model for model in _KNOWN if model.rpartition("-")[0] == family)


def _says_nothing(word: str) -> bool:
    return (
        word.lower() in _BRANDS
        or _FORMS.fullmatch(word) is not None
        or _SIZE.fullmatch(word) is not None
    )


def _joined(words: list[str]) -> str:
    """`RTX 4090` is one word, and so is the workstations' `RTX A6000`."""
    if len(words) > 1 and words[0] == "RTX" and re.fullmatch(r"A\d+", words[1]):
        words = words[1:]
    text = "-".join(words)
    return re.sub(r"(?<=[A-Za-z])-(?=\d)", "", text)


def _nominal_gb(words: list[str], memory_mib: int) -> int:
    """The size in the name where it is that of the GPU: `GH200 480GB` gives the CPU's memory."""
    measured = -(-memory_mib // _MIB_PER_GB)
    said = [int(size[1]) for word in words if (size := _SIZE.fullmatch(word))]
    fitting = [gb for gb in (*said, *_SOLD_GB) if measured <= gb <= measured * _MOST_KEPT]
    return fitting[0] if fitting else measured
