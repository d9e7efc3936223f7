"""When nodes fail and come back: read from a file, or drawn from a seeded model."""

import csv
import io
import random  # noqa: TID251  seeded; the same seed gives the same outages
from collections.abc import Iterable, Iterator, Mapping, Sequence

import msgspec

from muster.backends.simulated.backend import SimulatedBackend
from muster.model.cluster import Node, Pool
from muster.model.errors import MusterError
from muster.model.value import (
    HOUR,
    ClusterName,
    Duration,
    Instant,
    NodeId,
    PoolName,
    Value,
)

COLUMNS = "node,from,to"
SHORTEST_MS = 1_000
SPOT_NOTICE = Duration(120_000)
"""So long before, providers say that they take a node back."""


class BadOutagesError(MusterError):
    """A file of outages cannot be read; the message says what is wanted."""


class Outage(Value, gc=False):
    """A node is down from one instant to another, or for good. taken: a provider took it back."""

    node: NodeId
    begins_at: Instant
    ends_at: Instant | None = None
    taken: bool = False


class Failures(Value, gc=False):
    """Each node fails by itself: `mtbf` apart in the mean, and is mended after `repair`."""

    mtbf: Duration
    repair: Duration = Duration(2 * HOUR)


class Interruptions(Value, gc=False):
    """Each node of a spot pool is taken, `every` apart in the mean, and given back after `away`."""

    every: Duration
    away: Duration = HOUR


class OutagePeriod(Value, gc=False):
    """Outages begin in this time."""

    begins_at: Instant
    ends_at: Instant


def drawn(nodes: Iterable[Node], failures: Failures, span: OutagePeriod, seed: int) -> list[Outage]:
    """Outages of every node, with exponential times between failures and for repairs."""
    return [
        Outage(node=node.id, begins_at=Instant(begin), ends_at=Instant(end))
        for node in nodes
        for begin, end in _times(
            random.Random(f"failure {seed} {node.id}"),  # noqa: S311  a model, no secret
            failures.mtbf,
            failures.repair,
            span,
        )
    ]


def interruptions(
    nodes: Iterable[Node],
    pools: Mapping[PoolName, Pool],
    model: Interruptions,
    span: OutagePeriod,
    seed: int,
) -> list[Outage]:
    """Spot nodes that are taken away, and when they come back."""
    return [
        Outage(node=node.id, begins_at=Instant(begin), ends_at=Instant(end), taken=True)
        for node in nodes
        if node.pool in pools and pools[node.pool].spot
        for begin, end in _times(
            random.Random(f"interruption {seed} {node.id}"),  # noqa: S311  a model, no secret
            model.every,
            model.away,
            span,
        )
    ]


def outages_from(text: str, begin: Instant) -> list[Outage]:
    """A CSV or JSON text with `node`, `from` and `to`: seconds since the trace begins, or spans.

    An empty `to` means for good.
    """
    rows = _json_rows(text) if text.lstrip().startswith(("[", "{")) else _csv_rows(text)
    return [_outage(number, row, begin) for number, row in rows]


def inject(
    outages: Sequence[Outage],
    backends: Mapping[ClusterName, SimulatedBackend],
    nodes: Mapping[NodeId, Node],
) -> None:
    """Let these outages happen."""
    for each in outages:
        node = nodes.get(each.node)
        if node is None:
            raise BadOutagesError(
                f"there is no node {each.node!r} here; nodes are called {_some(nodes)}"
            )
        notice = SPOT_NOTICE if each.taken else Duration(0)
        backends[node.cluster].fail_node(each.node, each.begins_at, each.ends_at, notice)


def _times(
    dice: random.Random, apart: int, lasts: int, span: OutagePeriod
) -> Iterator[tuple[int, int]]:
    at = span.begins_at + _draw(dice, apart)
    while at < span.ends_at:
        end = at + _draw(dice, lasts)
        yield at, end
        at = end + _draw(dice, apart)


def _draw(dice: random.Random, mean: int) -> int:
    return max(SHORTEST_MS, round(dice.expovariate(1 / max(1, mean))))


def _csv_rows(text: str) -> Iterator[tuple[int, Mapping[str, object]]]:
    table = csv.DictReader(io.StringIO(text))
    if table.fieldnames is None or not {"node", "from"} <= set(table.fieldnames):
        raise BadOutagesError(f"a table of outages begins with the line `{COLUMNS}`")
    for number, row in enumerate(table, start=2):
        yield number, dict(row)


def _json_rows(text: str) -> Iterator[tuple[int, Mapping[str, object]]]:
    try:
        rows = msgspec.json.decode(text, type=list[dict[str, object]])
    except msgspec.MsgspecError as wrong:
        example = '[{"node": "n1", "from": "2d", "to": "2d4h"}]'
        raise BadOutagesError(f"outages cannot be read ({wrong}); write {example}") from wrong
    yield from enumerate(rows, start=1)


def _outage(number: int, row: Mapping[str, object], begin: Instant) -> Outage:
    node = row.get("node")
    since = _at(number, "from", row.get("from"))
    until = _at(number, "to", row.get("to"))
    if not isinstance(node, str) or not node or since is None:
        raise BadOutagesError(f"outage {number} needs a `node` and a `from`")
    if until is not None and until <= since:
        raise BadOutagesError(f"outage {number}: `to` must be later than `from`")
    return Outage(
        node=NodeId(node),
        begins_at=Instant(begin + since),
        ends_at=None if until is None else Instant(begin + until),
    )


_UNITS = {"s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}


def _at(number: int, key: str, given: object) -> int | None:
    """Milliseconds since the beginning of the trace."""
    text = "" if given is None else str(given).strip()
    if not text:
        return None
    scale = _UNITS.get(text[-1], 1_000)
    digits = text[:-1] if text[-1] in _UNITS else text
    try:
        return round(float(digits) * scale)
    except ValueError as wrong:
        raise BadOutagesError(
            f"outage {number}: `{key}: {text}` is no time; write seconds, or 90m, 36h, 2.5d, "
            "counted from the beginning of the trace"
        ) from wrong


def _some(nodes: Mapping[NodeId, Node]) -> str:
    names = sorted(nodes)
    return ", ".join(names[:3]) + (" ..." if len(names) > 3 else "")
