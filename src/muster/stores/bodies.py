"""How values become bytes in a row, and back: JSON, so that people can read a database too."""

from collections.abc import Iterable
from typing import Any

import msgspec

from muster.model.cluster import Cluster, Node
from muster.model.dates import KeptDate
from muster.model.event import Event, StepBegan, StepEnded
from muster.model.history import Attempt, AuditEntry, Ended
from muster.model.job import Job
from muster.model.kept_object import ObjectKey, RemovedObject
from muster.model.launch import Launch
from muster.model.placement import Allocation
from muster.model.site import Site, Token
from muster.model.snapshot import UsedLately, UsualAsk
from muster.model.steps import Step
from muster.model.value import ClusterName, JobId, NodeId, QueuePath, UserName, Value


class Touched(Value):
    """Which values one version changed or took away; its events are those from `first_event`.

    requests: the audit entries that say which jobs came of a request with a key, whole: all
    processes must know them, and there is no key to find them by.
    """

    first_event: int
    events: int = 0
    jobs: tuple[JobId, ...] = ()
    ended: tuple[JobId, ...] = ()
    allocations: tuple[JobId, ...] = ()
    freed: tuple[JobId, ...] = ()
    steps: tuple[tuple[JobId, int, int], ...] = ()
    clusters: tuple[ClusterName, ...] = ()
    nodes: tuple[NodeId, ...] = ()
    gone: tuple[NodeId, ...] = ()
    used: tuple[tuple[QueuePath, UserName], ...] = ()
    tokens: tuple[str, ...] = ()
    objects: tuple[ObjectKey, ...] = ()
    removed: tuple[RemovedObject, ...] = ()
    requests: tuple[AuditEntry, ...] = ()
    site: bool = False
    usual: bool = False


_ENCODER = msgspec.json.Encoder()
encoded = _ENCODER.encode

_EVENT: msgspec.json.Decoder[Any] = msgspec.json.Decoder(Event)
job_from = msgspec.json.Decoder(Job).decode
ended_from = msgspec.json.Decoder(Ended).decode
allocation_from = msgspec.json.Decoder(Allocation).decode
attempt_from = msgspec.json.Decoder(Attempt).decode
step_from = msgspec.json.Decoder(Step).decode
launch_from = msgspec.json.Decoder(Launch).decode
cluster_from = msgspec.json.Decoder(Cluster).decode
node_from = msgspec.json.Decoder(Node).decode
site_from = msgspec.json.Decoder(Site).decode
used_from = msgspec.json.Decoder(UsedLately).decode
usual_from = msgspec.json.Decoder(UsualAsk).decode
token_from = msgspec.json.Decoder(Token).decode
date_from = msgspec.json.Decoder(KeptDate).decode
audit_from = msgspec.json.Decoder(AuditEntry).decode
touched_from = msgspec.json.Decoder(Touched).decode


def event_from(body: bytes) -> Event:
    event: Event = _EVENT.decode(body)
    return event


def job_of(event: Event) -> JobId | None:
    """The job that an event is about, if it is about one."""
    if isinstance(event, (StepBegan, StepEnded)):
        return event.step.job
    return getattr(event, "job", None)


def requests_in(entries: Iterable[AuditEntry]) -> tuple[AuditEntry, ...]:
    """Those that say which jobs came of a request with a key."""
    return tuple(entry for entry in entries if entry.request is not None)


def kind_of(event: Event) -> str:
    return str(event.__struct_config__.tag)
