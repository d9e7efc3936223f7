"""Where what was measured is kept: beside the journal, wherever that is."""

from pathlib import Path

from muster.stores.measured.base import MeasuredStore
from muster.stores.measured.sqlite import SqliteMeasured


def open_measured(url: str, path: Path) -> MeasuredStore:
    """In the journal's PostgreSQL where it is in one, so that every process has it; else a file."""
    if url.partition(":")[0] in {"postgresql", "postgres"}:
        # The journal's own store has seen that the package is there.
        from muster.stores.measured.postgres import PostgresMeasured  # noqa: PLC0415

        return PostgresMeasured(url)
    return SqliteMeasured(path)
