"""What is asked of the tables of what was measured, in the words that both databases know.

`{int}`, `{text}`, `{blob}` and `{compact}` stand for words in which they differ; `{t}` is what the
names of the tables begin with.
"""

from collections.abc import Generator, Iterable, Mapping, Sequence
from typing import TypeVar

from muster.model.efficiency import FleetUse, JobReport
from muster.model.holding import Holding
from muster.model.minutes import MinuteBlock
from muster.model.value import HOUR, DeviceId, Instant, JobId
from muster.stores.measured import rows
from muster.stores.measured.base import PastQuery, Settled
from muster.stores.talking import Row, Say

T = TypeVar("T")

Asks = Generator[Say, list[Row], T]
"""Yields statements, and is sent their rows."""

TABLES = ("reports", "uses", "holdings", "minutes")

SCHEMA = (
    """CREATE TABLE IF NOT EXISTS {t}reports (job {int}, attempt {int}, until {int},
    user_name {text}, queue {text}, body {blob}, PRIMARY KEY (job, attempt)) {compact}""",
    "CREATE INDEX IF NOT EXISTS {t}reports_until ON {t}reports (until)",
    """CREATE TABLE IF NOT EXISTS {t}uses (hour {int}, cluster {text}, pool {text}, queue {text},
    user_name {text}, use_name {text}, cause {text}, milli_ms {int}, wasted {int},
    PRIMARY KEY (hour, cluster, pool, queue, user_name, use_name, cause)) {compact}""",
    """CREATE TABLE IF NOT EXISTS {t}holdings (device {text}, since {int}, job {int},
    attempt {int}, start {int}, until {int}, body {blob},
    PRIMARY KEY (device, since, job, attempt, start)) {compact}""",
    "CREATE INDEX IF NOT EXISTS {t}holdings_until ON {t}holdings (until)",
    """CREATE TABLE IF NOT EXISTS {t}minutes (job {int}, attempt {int}, hour {int}, node {text},
    device {text}, start {int}, body {blob},
    PRIMARY KEY (job, attempt, hour, node, device, start)) {compact}""",
    "CREATE INDEX IF NOT EXISTS {t}minutes_hour ON {t}minutes (hour)",
)

_PUT_REPORT = """INSERT INTO {t}reports VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT (job, attempt)
    DO UPDATE SET until = excluded.until, user_name = excluded.user_name, queue = excluded.queue,
    body = excluded.body"""
_PUT_HOLDING = """INSERT INTO {t}holdings VALUES (?, ?, ?, ?, ?, ?, ?)
    ON CONFLICT (device, since, job, attempt, start)
    DO UPDATE SET until = excluded.until, body = excluded.body"""
_PUT_MINUTES = """INSERT INTO {t}minutes VALUES (?, ?, ?, ?, ?, ?, ?)
    ON CONFLICT (job, attempt, hour, node, device, start) DO UPDATE SET body = excluded.body"""
_ADD_USE = """INSERT INTO {t}uses VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
    ON CONFLICT (hour, cluster, pool, queue, user_name, use_name, cause)
    DO UPDATE SET milli_ms = {t}uses.milli_ms + excluded.milli_ms,
    wasted = {t}uses.wasted + excluded.wasted"""


class Talks:
    """The questions, for tables whose names begin like this."""

    def __init__(self, begin: str = "") -> None:
        self._begin = begin

    def making(self, words: Mapping[str, str]) -> Asks[None]:
        """The tables, where they are not there."""
        for statement in SCHEMA:
            yield Say(sql=statement.format_map({**words, "t": self._begin}))

    def keeping(self, settled: Settled) -> Asks[None]:
        yield from self._each(_PUT_REPORT, map(rows.report_row, settled.reports))
        yield from self._each(_ADD_USE, map(rows.use_row, settled.uses))
        yield from self._each(_PUT_HOLDING, map(rows.holding_row, settled.holdings))
        yield from self._each(_PUT_MINUTES, map(rows.minutes_row, settled.minutes))

    def report(self, job: JobId, attempt: int | None) -> Asks[JobReport | None]:
        where, given = "job = ?", (job,)
        if attempt is not None:
            where, given = "job = ? AND attempt = ?", (job, attempt)
        sql = f"SELECT body FROM {{t}}reports WHERE {where} ORDER BY attempt DESC LIMIT 1"  # noqa: S608 - our own words
        found = yield self._say(sql, given)
        return rows.decoded(found[0][0], JobReport) if found else None

    def reports(self, query: PastQuery) -> Asks[tuple[JobReport, ...]]:
        conditions = ["until >= ?"]
        given: list[object] = [query.since or 0]
        if query.user is not None:
            conditions.append("user_name = ?")
            given.append(query.user)
        if query.queue is not None:
            path = query.queue
            conditions.append(f"(queue = ? OR substr(queue, 1, {len(path) + 1}) = ?)")
            given.extend((path, f"{path}/"))
        where = " AND ".join(conditions)
        sql = f"SELECT body FROM {{t}}reports WHERE {where} ORDER BY until DESC, job LIMIT ?"  # noqa: S608 - our own words
        found = yield self._say(sql, (*given, query.limit))
        return tuple(rows.decoded(body, JobReport) for (body,) in found)

    def uses(self, since: Instant) -> Asks[tuple[FleetUse, ...]]:
        sql = "SELECT * FROM {t}uses WHERE hour >= ? ORDER BY hour, cluster, pool, queue"
        found = yield self._say(sql, (since // HOUR,))
        return tuple(map(rows.use_of, found))

    def holdings(
        self, since: Instant, until: Instant, device: DeviceId | None
    ) -> Asks[tuple[Holding, ...]]:
        where, given = "since < ? AND until > ?", (until, since)
        if device is not None:
            where, given = f"{where} AND device = ?", (*given, device)
        sql = f"SELECT body FROM {{t}}holdings WHERE {where} ORDER BY since, job, device"  # noqa: S608 - our own words
        found = yield self._say(sql, given)
        return tuple(rows.decoded(body, Holding) for (body,) in found)

    def minutes(self, job: JobId, attempt: int) -> Asks[tuple[MinuteBlock, ...]]:
        sql = """SELECT body FROM {t}minutes WHERE job = ? AND attempt = ?
            ORDER BY hour, node, device, start"""
        found = yield self._say(sql, (job, attempt))
        return tuple(rows.minutes_of(body) for (body,) in found)

    def forgetting(self, before: Instant, minutes_before: Instant) -> Asks[None]:
        yield self._say("DELETE FROM {t}reports WHERE until < ?", (before,))
        yield self._say("DELETE FROM {t}holdings WHERE until < ?", (before,))
        yield self._say("DELETE FROM {t}uses WHERE hour < ?", (before // HOUR,))
        yield self._say("DELETE FROM {t}minutes WHERE hour < ?", (minutes_before // HOUR,))

    def _each(self, sql: str, every: Iterable[rows.Row]) -> Asks[None]:
        for row in every:
            yield self._say(sql, row)

    def _say(self, sql: str, given: Sequence[object]) -> Say:
        return Say(sql=sql.replace("{t}", self._begin), given=tuple(given))
