"""Brings a database to the shape that this program knows, step by step."""

from collections.abc import Mapping

from muster.model.errors import StoreError
from muster.stores.migrations import MIGRATIONS
from muster.stores.talking import Row, Say, Talk

_META = """CREATE TABLE IF NOT EXISTS meta (
    id {int} PRIMARY KEY, schema_number {int} NOT NULL, version {int} NOT NULL,
    next_job {int} NOT NULL, next_event {int} NOT NULL)"""

_NUMBER = "SELECT schema_number FROM meta WHERE id = 1"

Steps = tuple[tuple[str, ...], ...]


def migrating(where: str, words: Mapping[str, str], steps: Steps = MIGRATIONS) -> Talk[None]:
    """Take the steps that this database has not seen; one that has seen more is refused."""
    yield Say(sql=_META.format_map(words))
    rows = yield Say(sql=_NUMBER)
    number = _known(where, rows, len(steps))
    if not rows:
        yield Say(sql="INSERT INTO meta VALUES (1, 0, 0, 1, 1)")
    for step in steps[number:]:
        for statement in step:
            yield Say(sql=statement.format_map(words))
    yield Say(sql="UPDATE meta SET schema_number = ? WHERE id = 1", given=(len(steps),))


def _known(where: str, rows: list[Row], newest: int) -> int:
    number: int = rows[0][0] if rows else 0
    if number > newest:
        text = (
            f"{where} was written by a newer Muster (its tables are number {number}, this program"
            f" knows {newest}); use that version or a newer one"
        )
        raise StoreError(text)
    return number
