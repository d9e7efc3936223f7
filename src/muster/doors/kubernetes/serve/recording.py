"""Events: what controllers say about objects, the same words counted and not repeated."""

from collections import OrderedDict

from muster.doors.kubernetes.controllers.changes import Emit
from muster.doors.kubernetes.objects.errors import StatusError
from muster.doors.kubernetes.objects.kinds import EVENT
from muster.doors.kubernetes.objects.value import (
    JsonObject,
    metadata,
    name_of,
    namespace_of,
    uid_of,
)
from muster.doors.kubernetes.serve.access import ITSELF
from muster.doors.kubernetes.serve.call import Target, Writing
from muster.doors.kubernetes.serve.served import ServedKinds
from muster.doors.kubernetes.serve.writing import Author, ObjectWriter, Request

OF_CLUSTER = "default"
"""The namespace of events about what has none."""


NANOSECONDS = 1_000_000
"""In a millisecond."""

MOST_REMEMBERED = 10_000


class Recorder:
    """Writes events as objects."""

    def __init__(self, writer: ObjectWriter, kinds: ServedKinds) -> None:
        self._writer = writer
        self._kinds = kinds
        self._names: OrderedDict[str, str] = OrderedDict()
        self._last_ns = 0

    def record(self, emit: Emit) -> None:
        """Say it, or count it once more. Nobody waits for an event, and none stops anything."""
        now = self._writer.now()
        namespace = namespace_of(emit.about) or OF_CLUSTER
        name = self._name(emit)
        target = Target(kind=EVENT, namespace=namespace, name=name)
        request = Request(
            target=target,
            writing=Writing(manager=emit.source),
            author=Author(caller=ITSELF),
            blueprint=self._kinds.blueprint(EVENT),
        )

        def mutate(old: JsonObject | None) -> JsonObject:
            if old is None:
                return event_of(emit, name, namespace, now)
            return {**old, "count": int(old.get("count") or 1) + 1, "lastTimestamp": now}

        # A namespace that is ending takes none.
        try:
            self._writer.change(request, mutate)
        except StatusError:
            return

    def _name(self, emit: Emit) -> str:
        """The same for the same words about the same object, for as long as they are remembered.

        It ends in the instant of the first time, as names of Kubernetes' events do: lists are in
        the order of names, and people read them downwards.
        """
        about = emit.about
        said = "\0".join((uid_of(about), emit.type, emit.reason, emit.message, emit.source))
        name = self._names.pop(said, "")
        if not name:
            now_ns = self._writer.instant() * NANOSECONDS
            self._last_ns = max(self._last_ns + 1, now_ns)
            name = f"{name_of(about)}.{self._last_ns:016x}"
        self._names[said] = name
        if len(self._names) > MOST_REMEMBERED:
            self._names.popitem(last=False)
        return name


def event_of(emit: Emit, name: str, namespace: str, now: str) -> JsonObject:
    """The object that says it for the first time."""
    about = emit.about
    given = metadata(about)
    place = {"namespace": namespace_of(about)} if namespace_of(about) else {}
    return {
        "kind": "Event",
        "apiVersion": "v1",
        "metadata": {"name": name, "namespace": namespace},
        "involvedObject": {
            "kind": about.get("kind"),
            **place,
            "name": name_of(about),
            "uid": uid_of(about),
            "apiVersion": about.get("apiVersion"),
            "resourceVersion": str(given.get("resourceVersion", "")),
        },
        "reason": emit.reason,
        "message": emit.message,
        "source": {"component": emit.source},
        "firstTimestamp": now,
        "lastTimestamp": now,
        "count": 1,
        "type": emit.type,
        "eventTime": None,
        "reportingComponent": emit.source,
        "reportingInstance": "",
    }
