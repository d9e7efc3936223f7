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


class Aged(Value):
    """Text in which each instant is shown as how long ago it is when somebody looks.

    So a row is worked out once for each version of its object, whenever it is shown.
    """

    parts: tuple[str | Instant, ...]


Cell = str | int | bool | Aged
Cells = Callable[[JsonObject], list[Cell]]
"""The cells of one object's row; as many as there are columns."""


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
