"""Objects of the Kubernetes API: written as their door made them, if nobody was quicker."""

from collections.abc import Callable

from muster.controller.messages import Caller
from muster.controller.use_cases.audit import audit
from muster.controller.world.transaction import Transaction
from muster.model.errors import MusterError
from muster.model.kept_object import KeptObject, ObjectKey, RemovedObject
from muster.model.value import Value


class ObjectChangedError(MusterError):
    """Nobody: the object is not as the writer saw it. Look again, and try again."""

    def __init__(self, key: ObjectKey, found: KeptObject | None) -> None:
        super().__init__(f"{key.resource} {key.namespace}/{key.name} changed meanwhile")
        self.key = key
        self.found = found


class ObjectWrite(Value):
    """What is to become of one object.

    seen: the version that the writer decided on; None: there was no such object.
    body: None removes it.
    """

    key: ObjectKey
    seen: int | None
    body: str | None


Written = KeptObject | RemovedObject


class ObjectsWrite(Value):
    """Objects that are written together, or not at all.

    action: what the audit log says that the caller did; None: nobody did, a controller follows.
    also: what else is done in the same transaction, where the objects are written already. It may
    refuse, and then nothing is written.
    """

    caller: Caller
    writes: tuple[ObjectWrite, ...]
    action: str | None = None
    also: Callable[[Transaction], None] | None = None

    def apply(self, transaction: Transaction) -> tuple[Written, ...]:
        """The command. ObjectChangedError: nothing was written."""
        for each in self.writes:
            found = transaction.object(each.key)
            is_as_seen = (None if found is None else found.version) == each.seen
            if not is_as_seen or not transaction.has_room_for(len(self.writes)):
                raise ObjectChangedError(each.key, found)
        with transaction.all_or_nothing():
            written = tuple(_written(each, transaction) for each in self.writes)
            if self.also is not None:
                self.also(transaction)
        if self.action is not None:
            for each in self.writes:
                audit(transaction, self.caller, self.action, _subject(each.key))
        return written


def _written(write: ObjectWrite, transaction: Transaction) -> Written:
    if write.body is None:
        return transaction.remove_object(write.key)
    return transaction.put_object(write.key, write.body)


def _subject(key: ObjectKey) -> str:
    resource = f"{key.resource}.{key.group}" if key.group else key.resource
    return f"{resource} {key.namespace}/{key.name}" if key.namespace else f"{resource} {key.name}"
