"""What a kind can add to the machinery that all kinds share: functions of its objects.

`doors/kubernetes/catalogue.py` has a row for each kind that adds something.
"""

from collections.abc import Callable, Mapping

from muster.doors.kubernetes.objects.errors import Cause
from muster.doors.kubernetes.objects.value import JsonObject
from muster.model.value import Instant, Value

Default = Callable[[JsonObject], JsonObject]
"""Fill in what the user left out. The object is the function's own: it may change it."""

Prepare = Callable[[JsonObject, JsonObject | None], JsonObject]
"""What the server itself sets in `(object, old)`, after defaults and before validation.

The object is the function's own. old: None when it is created.
"""

Validate = Callable[[JsonObject, JsonObject | None], list[Cause]]
"""All that is wrong with `(object, old)`; old: None when it is created."""


class Column(Value):
    """A column of a Table. priority: 0 is always shown, 1 only with `-o wide`."""

    name: str
    type: str = "string"
    format: str = ""
    description: str = ""
    priority: int = 0


Cells = Callable[[JsonObject, Instant], list[str | int | bool]]
"""The cells of one object's row, at this instant; as many as there are columns."""


class Printing(Value):
    """How objects of a kind are shown as a Table."""

    columns: tuple[Column, ...]
    cells: Cells


class Rules(Value):
    """What one kind adds.

    keeps_status: what a new object says of its status is kept. Most controllers begin it.
    grace_s: how long an object of this kind has when it is deleted and nobody says how long.
    selectable: fields beyond metadata.name and metadata.namespace that field selectors may name,
    with where they are read; `spec.nodeName`, for example.
    """

    default: Default | None = None
    prepare: Prepare | None = None
    validate: Validate | None = None
    printing: Printing | None = None
    keeps_status: bool = False
    grace_s: Callable[[JsonObject], int] | None = None
    selectable: Mapping[str, Callable[[JsonObject], str]] = {}


NO_RULES = Rules()
