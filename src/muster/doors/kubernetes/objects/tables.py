"""Tables: what kubectl prints of objects, made by the server."""

from muster.doors.kubernetes.objects.rules import Column, Printing
from muster.doors.kubernetes.objects.value import JsonObject
from muster.model.value import Instant


def column_json(column: Column) -> JsonObject:
    """A column as a Table defines it."""
    return {
        "name": column.name,
        "type": column.type,
        "format": column.format,
        "description": column.description,
        "priority": column.priority,
    }


def table_row(
    obj: JsonObject, printing: Printing, now: Instant, carried: JsonObject | None
) -> JsonObject:
    """One row. carried: what it has of the object besides its cells."""
    row: JsonObject = {"cells": printing.cells(obj, now)}
    return row if carried is None else {**row, "object": carried}
