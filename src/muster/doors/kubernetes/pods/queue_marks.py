"""The marks by which pods say in which queue they wait, as several schedulers have them. Pure."""

from muster.doors.kubernetes.objects.value import JsonObject, annotations_of, labels_of
from muster.model.value import Value

KUEUE_LABEL = "kueue.x-k8s.io/queue-name"
VOLCANO_LABEL = "volcano.sh/queue-name"
KAI_LABEL = "kai.scheduler/queue"

LOCAL, OF_VOLCANO, OF_KAI = "LocalQueue", "Queue of Volcano", "Queue of KAI"
"""What kind of object a queue is."""

_LABELS = {KUEUE_LABEL: LOCAL, VOLCANO_LABEL: OF_VOLCANO, KAI_LABEL: OF_KAI, "runai/queue": OF_KAI}
QUEUE_LABELS = tuple(_LABELS)
_ANNOTATIONS = {
    "scheduling.volcano.sh/queue-name": OF_VOLCANO,
    VOLCANO_LABEL: OF_VOLCANO,
}

USUAL = "default"
"""A queue of Volcano and of KAI that every cluster has: here, that of the namespace."""


class QueueMark(Value):
    """A queue that something names."""

    kind: str
    name: str

    @property
    def may_be_missing(self) -> bool:
        """Does it mean the namespace's own queue, where there is none of this name?"""
        return self.name == USUAL and self.kind != LOCAL


def queue_mark(obj: JsonObject) -> QueueMark | None:
    """The queue that an object names; None where it names none."""
    for said, marks in ((labels_of(obj), _LABELS), (annotations_of(obj), _ANNOTATIONS)):
        for mark, kind in marks.items():
            if said.get(mark):
                return QueueMark(kind=kind, name=str(said[mark]))
    return None
