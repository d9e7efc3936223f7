"""What is measured, in the form that Prometheus and our own rules read (pure)."""

from enum import StrEnum
from typing import NamedTuple

from muster.model.value import Value


class FamilyKind(StrEnum):
    """What may be done with the values of a family."""

    COUNTER = "counter"
    GAUGE = "gauge"
    HISTOGRAM = "histogram"


Labels = tuple[tuple[str, str], ...]
"""Names with values, in the order in which they are shown."""


class Point(NamedTuple):
    """One value of a series. suffix: of its name, such as `_bucket` of a histogram."""

    labels: Labels
    value: float
    suffix: str = ""


class Family(Value):
    """All series of one name at one instant."""

    name: str
    kind: FamilyKind
    help: str
    unit: str = ""
    points: tuple[Point, ...] = ()
