"""What a controller wants changed: values that whoever runs controllers carries out.

All changes of one `Outcome` are made in their order, in one batch, or none of them is.
"""

from typing import Literal

from muster.doors.kubernetes.objects.value import JsonObject, name_of, namespace_of, uid_of
from muster.model.value import Instant, Value

Propagation = Literal["Background", "Foreground", "Orphan"]


class Emit(Value):
    """An event about an object, in the words of the controller that saw it."""

    about: JsonObject
    type: Literal["Normal", "Warning"]
    reason: str
    message: str
    source: str


class Create(Value):
    """A new object.

    emitted: what is said when it is there.
    refusal: what is said when admission refuses it; the refusal's text follows its message.
    Once one is refused, the outcome's later creations are left for the next time.
    """

    object: JsonObject
    emitted: Emit | None = None
    refusal: Emit | None = None


class Update(Value):
    """Everything but the status, as it is to be."""

    object: JsonObject
    emitted: Emit | None = None


class UpdateStatus(Value):
    """The status as it is to be. Annotations that controllers keep are written with it."""

    object: JsonObject


class Delete(Value):
    """An object that must go, if it is still the one with this uid.

    grace_s: None leaves the choice to the object.
    """

    object: JsonObject
    propagation: Propagation = "Background"
    grace_s: int | None = None
    emitted: Emit | None = None


Change = Create | Update | UpdateStatus | Delete | Emit


class Outcome(Value):
    """What one look at one object led to. again_at: when to look again though nothing changes."""

    changes: tuple[Change, ...] = ()
    again_at: Instant | None = None


NOTHING = Outcome()


class Draft:
    """The outcome of one look, while it is worked out."""

    def __init__(self, about: JsonObject, source: str) -> None:
        self.about = about
        self._source = source
        self._changes: list[Change] = []
        self._again_at: Instant | None = None

    def create(self, obj: JsonObject, reason: str, message: str) -> None:
        """Create an object, and say so."""
        self._changes.append(
            Create(
                object=obj,
                emitted=self._event("Normal", reason, message),
                refusal=self._event("Warning", "FailedCreate", "Error creating: "),
            )
        )

    def make(self, create: Create) -> None:
        """Create an object with words of its own."""
        self._changes.append(create)

    def update(self, obj: JsonObject) -> None:
        self._changes.append(Update(object=obj))

    def update_status(self, obj: JsonObject) -> None:
        self._changes.append(UpdateStatus(object=obj))

    def delete(self, obj: JsonObject, reason: str = "", message: str = "") -> None:
        """Delete an object, and say so where there are words for it."""
        emitted = self._event("Normal", reason, message) if reason else None
        self._changes.append(Delete(object=obj, emitted=emitted))

    def remove(self, delete: Delete) -> None:
        """Delete an object in a way of its own."""
        self._changes.append(delete)

    def emit(self, reason: str, message: str) -> None:
        self._changes.append(self._event("Normal", reason, message))

    def warn(self, reason: str, message: str) -> None:
        self._changes.append(self._event("Warning", reason, message))

    def look_again(self, at: Instant | None) -> None:
        """Look again at this instant, or earlier."""
        if at is not None:
            self._again_at = at if self._again_at is None else min(at, self._again_at)

    def outcome(self) -> Outcome:
        return Outcome(changes=tuple(self._changes), again_at=self._again_at)

    def _event(self, kind: Literal["Normal", "Warning"], reason: str, message: str) -> Emit:
        return Emit(
            about=self.about, type=kind, reason=reason, message=message, source=self._source
        )


def place(obj: JsonObject) -> tuple[str, str, str]:
    """Namespace, name and uid: enough to find it again, and to know that it is the same."""
    return namespace_of(obj), name_of(obj), uid_of(obj)
