"""Rows of Tables, worked out once for each version of an object."""

from collections.abc import Sequence

import msgspec

from muster.doors.kubernetes.objects.hidden import shown
from muster.doors.kubernetes.objects.rules import Cell, Printing
from muster.doors.kubernetes.objects.value import JsonObject, Kind, metadata
from muster.doors.kubernetes.serve.form import Form, written
from muster.doors.kubernetes.serve.view import ObjectView
from muster.doors.kubernetes.tables.cells import shown_at
from muster.model.kept_object import KeptObject, ObjectKey
from muster.model.value import Instant, Value

META = "meta.k8s.io"
USUAL_FORM = "v1"
MOST_ROWS = 20_000
"""So many rows are kept, at about a kilobyte each."""


class _Row(Value):
    """What does not depend on when it is shown. carried: the object's metadata, as JSON."""

    version: int
    cells: tuple[Cell, ...]
    carried: msgspec.Raw


class Rows:
    """Any thread may ask: at worst two of them work out the same row."""

    def __init__(self, view: ObjectView) -> None:
        self._view = view
        self._known: dict[ObjectKey, _Row] = {}

    def of(
        self, kept: Sequence[KeptObject], kind: Kind, printing: Printing, form: Form, now: Instant
    ) -> list[JsonObject]:
        """A row for each, with the object's metadata."""
        # Columns of kinds that users define may change, and those of other forms are seldom asked.
        is_usual = form.version == USUAL_FORM and not kind.is_custom and kind.kept_as is None
        if not is_usual:
            objects = map(self._view.read, kept)
            return [table_row(each, printing, now, partial(each, form)) for each in objects]
        rows = [self._row(each, printing, form) for each in kept]
        return [{"cells": _cells_at(row.cells, now), "object": row.carried} for row in rows]

    def _row(self, kept: KeptObject, printing: Printing, form: Form) -> _Row:
        known = self._known.get(kept.key)
        if known is None or known.version != kept.version:
            obj = self._view.read(kept)
            known = _Row(
                version=kept.version,
                cells=tuple(printing.cells(obj)),
                carried=msgspec.Raw(written(partial(obj, form)).rstrip()),
            )
            self._known[kept.key] = known
            while len(self._known) > MOST_ROWS:
                self._known.pop(next(iter(self._known)), None)
        return known


def table_row(
    obj: JsonObject, printing: Printing, now: Instant, carried: JsonObject | None
) -> JsonObject:
    """One row. carried: what it has of the object besides its cells."""
    row: JsonObject = {"cells": _cells_at(printing.cells(obj), now)}
    return row if carried is None else {**row, "object": carried}


def _cells_at(cells: Sequence[Cell], now: Instant) -> list[str | int | bool]:
    return [shown_at(each, now) for each in cells]


def partial(obj: JsonObject, form: Form) -> JsonObject:
    """The object's metadata alone."""
    return {
        "kind": "PartialObjectMetadata",
        "apiVersion": f"{META}/{form.version}",
        "metadata": metadata(shown(obj)),
    }
