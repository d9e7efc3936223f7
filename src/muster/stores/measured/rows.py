"""Values as rows of the tables of what was measured, and back (pure)."""

import zlib
from collections.abc import Sequence
from typing import Any, TypeVar

import msgspec

from muster.model.efficiency import FleetUse, JobReport
from muster.model.finding import Cause
from muster.model.holding import Holding
from muster.model.minutes import MinuteBlock
from muster.model.value import (
    HOUR,
    ClusterName,
    Instant,
    PoolName,
    QueuePath,
    UserName,
)

T = TypeVar("T")
Row = tuple[Any, ...]

NO_START = -1

_QUICKLY = 1
"""Minutes are many, and much alike: the least effort packs them well."""


def report_row(report: JobReport) -> Row:
    body = msgspec.msgpack.encode(report)
    return report.job, report.attempt, report.until, report.user, report.queue, body


def holding_row(holding: Holding) -> Row:
    return (
        holding.device,
        holding.since,
        holding.job,
        holding.attempt,
        _start(holding.start),
        holding.until,
        msgspec.msgpack.encode(holding),
    )


def minutes_row(block: MinuteBlock) -> Row:
    return (
        block.job,
        block.attempt,
        block.hour // HOUR,
        block.node,
        block.device,
        _start(block.start),
        zlib.compress(msgspec.msgpack.encode(block), _QUICKLY),
    )


def use_row(use: FleetUse) -> Row:
    return (
        use.at // HOUR,
        use.cluster,
        use.pool,
        use.queue,
        use.user,
        use.use,
        use.cause or "",
        use.milli_ms,
        use.wasted,
    )


def use_of(row: Sequence[Any]) -> FleetUse:
    hour, cluster, pool, queue, user, use, cause, milli_ms, wasted = row
    return FleetUse(
        at=Instant(hour * HOUR),
        cluster=ClusterName(cluster),
        pool=PoolName(pool),
        queue=QueuePath(queue),
        user=UserName(user),
        use=use,
        cause=Cause(cause) if cause else None,
        milli_ms=milli_ms,
        wasted=wasted,
    )


def decoded(body: bytes, kind: type[T]) -> T:
    return msgspec.msgpack.decode(body, type=kind)


def minutes_of(body: bytes) -> MinuteBlock:
    return decoded(zlib.decompress(body), MinuteBlock)


def _start(start: int | None) -> int:
    return NO_START if start is None else start
