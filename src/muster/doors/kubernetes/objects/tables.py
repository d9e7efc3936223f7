"""Tables: what kubectl prints of objects, made by the server."""

from muster.doors.kubernetes.objects.rules import Column
from muster.doors.kubernetes.objects.value import JsonObject


def column_json(column: Column) -> JsonObject:
    """A column as a Table defines it."""
    return {
        "name": column.name,
        "type": column.type,
        "format": column.format,
        "description": column.description,
        "priority": column.priority,
    }
