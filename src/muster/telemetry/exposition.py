"""Metrics as text: classic 0.0.4 of Prometheus, and OpenMetrics 1.0 (pure).

One block for each name, whoever gave its points, in the order in which names first came. DCGM's
counters have no `_total`, which OpenMetrics demands: there they are of an unknown type, under the
names that everybody knows.
"""

from collections.abc import Callable, Iterable, Iterator
from zlib import crc32

from muster.telemetry.family import Family, FamilyKind, Labels, Point

CLASSIC_MEDIA = "text/plain; version=0.0.4; charset=utf-8"
OPEN_MEDIA = "application/openmetrics-text; version=1.0.0; charset=utf-8"

LONGEST_LABEL = 128
"""Names come from users: what is longer is cut, so that one of them does not fill the page."""

_TOTAL = "_total"

_Head = Callable[[Family], str]


def classic(families: Iterable[Family]) -> str:
    """For everybody who does not ask for the other one."""
    return "".join(_text(families, _classic_head))


def openmetrics(families: Iterable[Family]) -> str:
    """With units, and an end by which one sees that nothing is missing."""
    return "".join((*_text(families, _open_head), "# EOF\n"))


def _text(families: Iterable[Family], head: _Head) -> Iterator[str]:
    # Families share the labels of their devices and queues: each is written once. They are held by
    # their points all the while, so that their ids are theirs alone.
    written: dict[int, str] = {}
    for name, parts in _by_name(families).items():
        lines = [line for part in parts for line in _lines(name, part.points, written)]
        if lines:
            yield head(parts[0])
            yield from lines


def _by_name(families: Iterable[Family]) -> dict[str, list[Family]]:
    found: dict[str, list[Family]] = {}
    for family in families:
        found.setdefault(family.name, []).append(family)
    return found


def _lines(name: str, points: tuple[Point, ...], written: dict[int, str]) -> list[str]:
    lines: list[str] = []
    for labels, value, suffix in points:
        key = id(labels)
        text = written.get(key)
        if text is None:
            text = written[key] = _labels(labels)
        number = repr(value)
        if number[-1] in "fn":
            number = _special(value)
        lines.append(f"{name}{suffix}{text} {number}\n")
    return lines


def _labels(labels: Labels) -> str:
    if not labels:
        return ""
    return "{" + ",".join(f'{name}="{_escaped(value)}"' for name, value in labels) + "}"


def _escaped(value: str) -> str:
    cut = value if len(value) <= LONGEST_LABEL else _cut(value)
    if '"' in cut or "\\" in cut or "\n" in cut:
        cut = cut.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")
    # A name that is no whole Unicode would make the page unreadable.
    return cut if cut.isprintable() else cut.encode("utf-8", "replace").decode("utf-8")


def _cut(value: str) -> str:
    """Two names that begin alike stay two: a page with a series that is there twice is refused."""
    told_apart = f"…{crc32(value.encode('utf-8', 'replace')):08x}"
    return value[: LONGEST_LABEL - len(told_apart)] + told_apart


def _special(value: float) -> str:
    if value != value:  # noqa: PLR0124 -- only NaN is not itself
        return "NaN"
    return "+Inf" if value > 0 else "-Inf"


def _classic_head(family: Family) -> str:
    return f"# HELP {family.name} {_help(family.help)}\n# TYPE {family.name} {family.kind}\n"


def _open_head(family: Family) -> str:
    is_total = family.kind is FamilyKind.COUNTER and family.name.endswith(_TOTAL)
    name = family.name.removesuffix(_TOTAL) if is_total else family.name
    kind = "unknown" if family.kind is FamilyKind.COUNTER and not is_total else str(family.kind)
    unit = ""
    if family.unit and name.endswith(f"_{family.unit}"):
        unit = f"# UNIT {name} {family.unit}\n"
    help = _help(family.help).replace('"', r"\"")
    return f"# TYPE {name} {kind}\n{unit}# HELP {name} {help}\n"


def _help(text: str) -> str:
    return text.replace("\\", r"\\").replace("\n", r"\n")
