"""Which store an address means."""

from pathlib import Path
from typing import Protocol

from muster.model.errors import StoreError, UnknownError
from muster.stores.base import History, Leadership, Store
from muster.stores.memory import MemoryStore
from muster.stores.sqlite import SqliteStore

KNOWN = "sqlite:///path/to/muster.db, postgresql://user@host/database, memory:"


class WholeStore(Store, History, Leadership, Protocol):
    """All the faces of one store."""


def open_store(url: str) -> WholeStore:
    """The store at this address; what is not there yet is made.

    `sqlite:///name` is in the folder where the program runs, `sqlite:////var/name` is not.
    """
    scheme, _, rest = url.partition(":")
    match scheme:
        case "memory":
            return MemoryStore()
        case "sqlite" if rest.startswith("///") and len(rest) > 3:
            return SqliteStore(Path(rest[3:]))
        case "postgresql" | "postgres" if rest.startswith("//"):
            return _postgres(url)
        case _:
            # The whole of it could hold a password.
            text = f"no store is at {scheme!r}:...; an address looks like one of {KNOWN}"
            raise UnknownError(text)


def _postgres(url: str) -> WholeStore:
    try:
        # Only who uses PostgreSQL needs the package.
        from muster.stores.postgres import PostgresStore  # noqa: PLC0415
    except ModuleNotFoundError as error:
        if error.name != "asyncpg":
            raise
        text = "PostgreSQL needs one more package: pip install 'muster-gpu[postgres]'"
        raise StoreError(text) from error
    return PostgresStore(url)
