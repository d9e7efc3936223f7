"""Amounts as Kubernetes writes them, in our units. Pure."""

from collections.abc import Mapping
from decimal import ROUND_CEILING, Decimal, InvalidOperation

from muster.backends.fleet import Taken
from muster.model.resources import Resources

GPU = "nvidia.com/gpu"
GPU_PART = "nvidia.com/gpu.shared"
"""What a device plugin may call a part of a GPU that it gives to several pods."""
MIG = "nvidia.com/mig-"

_UNITS = {
    "n": Decimal("1e-9"),
    "u": Decimal("1e-6"),
    "m": Decimal("0.001"),
    "k": Decimal(10) ** 3,
    "M": Decimal(10) ** 6,
    "G": Decimal(10) ** 9,
    "T": Decimal(10) ** 12,
    "P": Decimal(10) ** 15,
    "E": Decimal(10) ** 18,
    "Ki": Decimal(2) ** 10,
    "Mi": Decimal(2) ** 20,
    "Gi": Decimal(2) ** 30,
    "Ti": Decimal(2) ** 40,
    "Pi": Decimal(2) ** 50,
    "Ei": Decimal(2) ** 60,
}
_MIB = 2**20
_MOST = Decimal(2) ** 62
"""What is said to be more is so much: a node may say anything of itself."""
_MOST_DEVICES = 1_024
_LONGEST_TEXT = 300


def quantity(text: str | int | float) -> Decimal:
    """`500m`, `24631216Ki`, `1e3` or 2; what is none counts as nothing."""
    word = str(text)
    for length in (2, 1):
        unit = _UNITS.get(word[-length:])
        if unit is not None and len(word) > length:
            return min(_number(word[:-length]) * unit, _MOST)
    return _number(word)


def counted(text: str | int | float) -> int:
    """How many devices that are; no more than a machine could have."""
    return max(0, min(int(quantity(text)), _MOST_DEVICES))


def plain(text: object) -> str:
    """What a cluster says, in one short line that no terminal obeys."""
    words = "".join(each if each.isprintable() else " " for each in str(text)[: 2 * _LONGEST_TEXT])
    return " ".join(words.split())[:_LONGEST_TEXT]


def taken_of(amounts: Mapping[str, str]) -> Taken:
    """What somebody holds: rounded up, so that nothing is given away twice."""
    return Taken(
        amount=Resources(
            cpu_milli=_up(1_000 * quantity(amounts.get("cpu", 0))),
            memory_mib=_up(quantity(amounts.get("memory", 0)) / _MIB),
            gpu_milli=1_000
            * _up(quantity(amounts.get(GPU, 0)) + quantity(amounts.get(GPU_PART, 0))),
        ),
        mig={
            name.removeprefix(MIG): int(quantity(count))
            for name, count in sorted(amounts.items())
            if name.startswith(MIG)
        },
    )


def largest(*each: Taken) -> Taken:
    """As much as the largest of them in everything."""
    amounts = [one.amount for one in each]
    profiles = sorted({profile for one in each for profile in one.mig})
    return Taken(
        amount=Resources(
            cpu_milli=max(one.cpu_milli for one in amounts),
            memory_mib=max(one.memory_mib for one in amounts),
            gpu_milli=max(one.gpu_milli for one in amounts),
        ),
        mig={profile: max(one.mig.get(profile, 0) for one in each) for profile in profiles},
    )


def _number(text: str) -> Decimal:
    try:
        found = Decimal(text)
    except InvalidOperation:
        return Decimal(0)
    return min(max(found, -_MOST), _MOST) if found.is_finite() else Decimal(0)


def _up(amount: Decimal) -> int:
    return int(amount.to_integral_value(rounding=ROUND_CEILING))
