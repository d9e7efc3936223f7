"""Names of series: their labels in order, the name of the metric among them."""

from collections.abc import Mapping
from typing import NamedTuple

NAME = "__name__"

SeriesName = tuple[tuple[str, str], ...]
"""Labels with values, sorted. No label is empty: one that is not there is."""


class Sample(NamedTuple):
    """What an expression gives for one series."""

    name: SeriesName
    value: float


Vector = list[Sample]


def series_name(labels: Mapping[str, str]) -> SeriesName:
    """In order, without empty ones."""
    return tuple(sorted((name, value) for name, value in labels.items() if value))


def without(name: SeriesName, dropped: frozenset[str]) -> SeriesName:
    return tuple(each for each in name if each[0] not in dropped)


def only(name: SeriesName, kept: frozenset[str]) -> SeriesName:
    return tuple(each for each in name if each[0] in kept)


METRIC = frozenset({NAME})
"""What is dropped where a value is no longer the metric's."""
