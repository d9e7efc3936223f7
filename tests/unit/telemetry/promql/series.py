"""Series as promtool's tests write them, and the history that they make."""

import re
from collections.abc import Iterable, Iterator, Mapping

from muster.model.value import Instant
from muster.telemetry.promql.evaluate import evaluated
from muster.telemetry.promql.history import History, kept_spans
from muster.telemetry.promql.labels import NAME, Vector
from muster.telemetry.promql.parser import parsed
from muster.telemetry.promql.syntax import Expression

STALE = "stale"
Value = float | str | None
"""A number, an end (`stale`), or nothing."""

_ITEM = re.compile(
    r"(?P<first>_|stale|[-+]?(?:NaN|Inf|[\d.]+(?:e[-+]?\d+)?))"
    r"(?P<step>[-+](?:[\d.]+(?:e[-+]?\d+)?))?(?:x(?P<times>\d+))?",
    re.IGNORECASE,
)
_LABEL = re.compile(r'(\w+)\s*=\s*"((?:[^"\\]|\\.)*)"')


def values(text: str) -> list[Value]:
    """`1+2x3 _ stale`: 1 3 5 7, nothing, the end."""
    return [each for item in text.split() for each in _item(item)]


def _item(item: str) -> Iterator[Value]:
    found = _ITEM.fullmatch(item)
    assert found is not None, f"{item!r} is no item of a series"
    first, times = found["first"], found["times"]
    if first == "_":
        yield from [None] * int(times or 1)
        return
    if first == "stale":
        yield STALE
        return
    step = float(found["step"] or 0)
    for turn in range(int(times or 0) + 1):
        yield float(first) + step * turn


def labels_of(series: str) -> dict[str, str]:
    """`up{job="a"}` as labels, the name among them."""
    name, _, rest = series.partition("{")
    found = {label: value.replace('\\"', '"') for label, value in _LABEL.findall(rest)}
    return {NAME: name.strip(), **found} if name.strip() else found


def looks(
    series: Mapping[str, str], interval_ms: int
) -> Iterator[tuple[int, list[tuple[dict[str, str], Value]]]]:
    """Each instant and what there is at it."""
    columns = [(labels_of(name), values(text)) for name, text in series.items()]
    longest = max((len(column) for _, column in columns), default=0)
    for turn in range(longest):
        there = [(labels, column[turn]) for labels, column in columns if turn < len(column)]
        yield turn * interval_ms, there


def fed(history: History, at: int, there: Iterable[tuple[dict[str, str], Value]]) -> None:
    """What promtool's storage is given: a series goes on until it says that it ends."""
    history.begin(Instant(at))
    for labels, value in there:
        name, rest = labels[NAME], {key: each for key, each in labels.items() if key != NAME}
        if isinstance(value, float) and name in history.names:
            history.add(Instant(at), name, rest, value)
        elif value == STALE:
            history.end(Instant(at), name, rest)


def answer(
    expression: str, series: Mapping[str, str], *, at_s: float, every_s: float = 15
) -> Vector:
    """What the expression gives of these series at this second."""
    asked = parsed(expression)
    history = History(kept_spans((asked,)))
    for at, there in looks(series, round(every_s * 1000)):
        if at <= at_s * 1000:
            fed(history, at, there)
    return evaluated(asked, history, Instant(round(at_s * 1000)))


def said(vector: Vector) -> dict[str, float]:
    """`name{label="value"}` with values."""
    return {_name(dict(name)): value for name, value in vector}


def _name(labels: Mapping[str, str]) -> str:
    inside = ",".join(f'{key}="{value}"' for key, value in labels.items() if key != NAME)
    return labels.get(NAME, "") + (f"{{{inside}}}" if inside else "")


def expressions(*texts: str) -> tuple[Expression, ...]:
    return tuple(parsed(text) for text in texts)
