"""What cells of many kinds have in common: ages, containers, labels, lists that are cut short."""

from collections.abc import Sequence

from muster.doors.kubernetes.objects.rules import Aged, Cell, Column
from muster.doors.kubernetes.objects.times import instant
from muster.doors.kubernetes.objects.value import JsonObject, items, metadata, part
from muster.model.value import SECOND, Instant

NAME = Column(name="Name", format="name")
AGE = Column(name="Age")
NONE = "<none>"
UNKNOWN = "<unknown>"
MINUTE_S, HOUR_S, DAY_S, YEAR_S = 60, 3_600, 86_400, 365 * 86_400


def text(name: str) -> Column:
    return Column(name=name)


def number(name: str) -> Column:
    return Column(name=name, type="integer")


def wide(name: str) -> Column:
    """A column that only `-o wide` shows."""
    return Column(name=name, priority=1)


WORKLOAD = (wide("Containers"), wide("Images"), wide("Selector"))
"""What wide rows say of a pod template."""


def age(obj: JsonObject) -> Cell:
    """How long ago it was created."""
    return since(metadata(obj).get("creationTimestamp"))


def since(stamp: str | None) -> Cell:
    """How long ago a stamp was."""
    then = instant(stamp)
    return UNKNOWN if then is None else Aged(parts=(then,))


def joined(*cells: Cell) -> Cell:
    """One cell of several."""
    parts: list[str | Instant] = []
    for each in cells:
        parts += each.parts if isinstance(each, Aged) else (str(each),)
    return Aged(parts=tuple(parts))


def shown_at(cell: Cell, now: Instant) -> str | int | bool:
    """A cell as it is shown at an instant."""
    if not isinstance(cell, Aged):
        return cell
    return "".join(
        each if isinstance(each, str) else duration((now - each) // SECOND) for each in cell.parts
    )


def duration(seconds: int) -> str:
    """A time in two units at most, the coarser the longer it is."""
    if seconds < -1:
        return "<invalid>"
    if seconds < 2 * MINUTE_S:
        return f"{max(0, seconds)}s"
    if seconds < 10 * MINUTE_S:
        return _two(seconds, (MINUTE_S, "m"), (1, "s"))
    if seconds < 3 * HOUR_S:
        return f"{seconds // MINUTE_S}m"
    if seconds < 8 * HOUR_S:
        return _two(seconds, (HOUR_S, "h"), (MINUTE_S, "m"))
    if seconds < 2 * DAY_S:
        return f"{seconds // HOUR_S}h"
    if seconds < 8 * DAY_S:
        return _two(seconds, (DAY_S, "d"), (HOUR_S, "h"))
    if seconds < 2 * YEAR_S:
        return f"{seconds // DAY_S}d"
    if seconds < 8 * YEAR_S:
        return _two(seconds, (YEAR_S, "y"), (DAY_S, "d"))
    return f"{seconds // YEAR_S}y"


def containers(pod_spec: JsonObject) -> list[Cell]:
    """Names and images of a pod's containers."""
    found = items(pod_spec, "containers")
    return [_joined(found, "name"), _joined(found, "image")]


def shown_labels(labels: JsonObject) -> str:
    """As `a=b,c=d`, in the order of keys."""
    return ",".join(f"{key}={labels[key]}" for key in sorted(labels)) or NONE


def first_of(values: Sequence[str], most: int, *, empty: str) -> str:
    """The first few, and how many more there are."""
    told = ",".join(values[:most])
    if len(values) > most:
        return f"{told} + {len(values) - most} more..."
    return told or empty


def count(obj: JsonObject, name: str) -> int:
    """A counter of the status; zero where it is not written."""
    return part(obj, "status").get(name) or 0


def _joined(found: Sequence[JsonObject], field: str) -> str:
    return ",".join(str(each.get(field, "")) for each in found)


def _two(seconds: int, large: tuple[int, str], small: tuple[int, str]) -> str:
    size, unit = large
    rest = seconds % size // small[0]
    return f"{seconds // size}{unit}{rest}{small[1]}" if rest else f"{seconds // size}{unit}"
