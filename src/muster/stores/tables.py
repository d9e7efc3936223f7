"""The tables as they are written to: their columns, what kind they are, and their keys.

The migrations make them; the newest state of all migrations and this page must agree.
"""

from enum import StrEnum

from muster.model.value import Value


class ColumnType(StrEnum):
    """What a column holds."""

    INT = "int"
    TEXT = "text"
    BLOB = "blob"


class Table(Value, cache_hash=True):
    """One table. Rows with a known key replace the old ones; without a key they are only added.

    by_content: a row's key says all that is in it, so that one that is there is the same one.
    """

    name: str
    columns: tuple[tuple[str, ColumnType], ...]
    key: tuple[str, ...] = ()
    by_content: bool = False

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(name for name, _ in self.columns)

    @property
    def key_places(self) -> tuple[int, ...]:
        return tuple(self.names.index(name) for name in self.key)

    def kind(self, column: str) -> ColumnType:
        return dict(self.columns)[column]

    def at_conflict(self) -> str:
        """What becomes of a row whose key is there already."""
        if not self.key:
            return ""
        rest = [name for name in self.names if name not in self.key]
        changes = ", ".join(f"{name} = excluded.{name}" for name in rest)
        outcome = f"DO UPDATE SET {changes}" if rest and not self.by_content else "DO NOTHING"
        return f" ON CONFLICT ({', '.join(self.key)}) {outcome}"


def _table(name: str, columns: str, key: str = "", *, by_content: bool = False) -> Table:
    pairs = (column.split(":") for column in columns.split())
    typed = tuple((column, ColumnType(kind)) for column, kind in pairs)
    return Table(name=name, columns=typed, key=tuple(key.split()), by_content=by_content)


EVENTS = _table("events", "number:int version:int at:int job:int kind:text body:blob spec:text")
CHANGES = _table("changes", "version:int body:blob")
JOBS = _table("jobs", "id:int array_id:int body:blob spec:text", "id")
ALLOCATIONS = _table("allocations", "job:int body:blob", "job")
LAUNCHES = _table("launches", "job:int body:blob", "job")
ATTEMPTS = _table("attempts", "job:int number:int body:blob", "job number")
STEPS = _table("steps", "job:int attempt:int number:int body:blob", "job attempt number")
HISTORY = _table(
    "history",
    "id:int array_id:int user_name:text queue:text name:text state:text"
    " submitted_at:int started_at:int ended_at:int body:blob spec:text",
    "id",
)
SPECS = _table("specs", "name:text body:blob", "name", by_content=True)
HISTORY_QUEUES = _table("history_queues", "queue:text ended_at:int job:int", "queue ended_at job")
HISTORY_NODES = _table("history_nodes", "node:text job:int", "node job")
CLUSTERS = _table("clusters", "name:text body:blob", "name")
NODES = _table("nodes", "id:text body:blob", "id")
SITE = _table("site", "id:int body:blob", "id")
USED = _table("used", "queue:text user_name:text body:blob", "queue user_name")
USUAL = _table("usual", "position:int body:blob", "position")
TOKENS = _table("tokens", "id:text body:blob", "id")
OBJECTS = _table(
    "objects",
    "group_name:text resource:text namespace:text name:text version:int body:text",
    "group_name resource namespace name",
)
DATES = _table("dates", "job:int started_at:int body:blob", "job")
AUDIT = _table("audit", "version:int position:int at:int body:blob")
