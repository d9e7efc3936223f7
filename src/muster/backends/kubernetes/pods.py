"""What an API server says of a pod, as far as we ask. Pure."""

from collections.abc import Iterable, Mapping, Set
from enum import Enum
from typing import Any

from muster.backends.fleet import Taken
from muster.backends.kubernetes.amounts import largest, plain, taken_of
from muster.backends.kubernetes.container_status import LOST, instant, life_of, statuses_of
from muster.model.pod import ContainerStatus
from muster.model.value import Duration, Instant, NodeId, Value, replace

SCHEDULER = "muster"
SITE, JOB, ATTEMPT, RANK = "muster.io/site", "muster.io/job", "muster.io/attempt", "muster.io/rank"
TASKS, NODE, PART = "muster.io/tasks", "muster.io/node", "muster.io/part"
ADMITTED, HOLD = "muster.io/admitted-job", "muster.io/hold"
"""Of a pod: the Job of batch/v1 that went on for our sake. Of such a Job: that it must stand."""
HOLDS, OF_USERS = "holds", "pod"
"""The part of a pod that only keeps its room; and of one that is a user's, of our own API."""
CONTAINER = "job"


class Key(Value, gc=False):
    """Whose attempt it is. site: which Muster, because several may share a cluster.

    seal: what makes names that others cannot make; not known of what is only read.
    """

    site: str
    job: int
    attempt: int
    seal: str = ""


class Stage(Enum):
    """How far a pod is."""

    UNBOUND = "unbound"
    WAITS = "waits"
    RUNS = "runs"
    OVER = "over"


class Pod(Value):
    """One pod. Instants are whole seconds, as milliseconds.

    wanted: the node that we chose for it. waiting: why its container does not run yet.
    code: None where it is over and nobody knows how. reason, message: of the pod, not of the job.
    disruption: who deletes it, if Kubernetes itself does. leaves: it was deleted.
    admitted: the Job of batch/v1 that made it, and that stands again when it must make room.
    container: the one that counts. statuses: of all of them, where the pod is a user's of our own
    API; ip, host_ip: its addresses; grace: what it may take to stop; terminals: containers that
    run on one.
    document: all of it, of one that somebody else made and that waits for us to give it a node.
    """

    namespace: str
    name: str
    uid: str
    stage: Stage
    node: NodeId | None
    holds: Taken
    scheduler: str = ""
    key: Key | None = None
    rank: int = 0
    tasks: int = 1
    wanted: NodeId | None = None
    only_holds: bool = False
    started_at: Instant | None = None
    ended_at: Instant | None = None
    code: int | None = None
    signal: int = 0
    out_of_memory: bool = False
    lost: bool = False
    leaves: bool = False
    disruption: str = ""
    reason: str = ""
    message: str = ""
    waiting: str = ""
    admitted: str = ""
    container: str = CONTAINER
    statuses: tuple[ContainerStatus, ...] = ()
    ip: str = ""
    host_ip: str = ""
    grace: Duration | None = None
    terminals: frozenset[str] = frozenset()
    document: Mapping[str, Any] | None = None

    @property
    def is_over(self) -> bool:
        return self.stage is Stage.OVER

    @property
    def restarts(self) -> int:
        """How often a container of it has begun again."""
        return sum(each.restarts for each in self.statuses)

    @property
    def path(self) -> str:
        return f"/api/v1/namespaces/{self.namespace}/pods/{self.name}"


def pod_of(document: Mapping[str, Any]) -> Pod:
    """What is known of it."""
    metadata, spec = document["metadata"], document["spec"]
    status: Mapping[str, Any] = document.get("status") or {}
    labels: Mapping[str, str] = metadata.get("labels") or {}
    notes: Mapping[str, str] = metadata.get("annotations") or {}
    state = _container_state(status)
    ran: Mapping[str, Any] = state.get("terminated") or {}
    running: Mapping[str, Any] = state.get("running") or {}
    waiting: Mapping[str, Any] = state.get("waiting") or {}
    node = spec.get("nodeName") or ""
    key, scheduler = _key(labels), spec.get("schedulerName") or ""
    stage = _stage(status.get("phase") or "", node, is_running=bool(running))
    leaves = "deletionTimestamp" in metadata
    is_offered = scheduler == SCHEDULER and key is None and stage is Stage.UNBOUND and not leaves
    pod = Pod(
        namespace=metadata["namespace"],
        name=metadata["name"],
        uid=metadata["uid"],
        stage=stage,
        node=NodeId(node) if node else None,
        holds=_holds(spec),
        scheduler=scheduler,
        key=key,
        rank=_number(labels.get(RANK)),
        tasks=_number(notes.get(TASKS)) or 1,
        wanted=NodeId(notes[NODE]) if NODE in notes else None,
        only_holds=notes.get(PART) == HOLDS,
        started_at=instant(running.get("startedAt") or ran.get("startedAt")),
        ended_at=instant(ran.get("finishedAt")),
        code=ran.get("exitCode"),
        signal=ran.get("signal") or 0,
        out_of_memory=ran.get("reason") == "OOMKilled",
        lost=ran.get("reason") in LOST,
        leaves=leaves,
        disruption=_disruption(status),
        reason=plain(status.get("reason") or ""),
        message=plain(status.get("message") or ""),
        waiting=_waiting(waiting),
        admitted=_admitted(metadata, notes),
        container=first_container(spec),
        document=document if is_offered else None,
    )
    is_users = notes.get(PART) == OF_USERS and key is not None
    return _of_user(pod, spec, status) if is_users else pod


def _of_user(pod: Pod, spec: Mapping[str, Any], status: Mapping[str, Any]) -> Pod:
    """All of its containers count, and it runs as soon as the first of them has begun."""
    statuses = statuses_of(status)
    life, stage = life_of(statuses), pod.stage
    if stage in {Stage.WAITS, Stage.RUNS}:
        stage = Stage.WAITS if life.started_at is None else Stage.RUNS
    return replace(
        pod,
        stage=stage,
        started_at=life.started_at,
        ended_at=life.ended_at,
        code=0 if status.get("phase") == "Succeeded" else life.code,
        signal=0,
        out_of_memory=life.out_of_memory,
        lost=life.lost,
        waiting=life.waiting,
        statuses=statuses,
        ip=plain(status.get("podIP") or ""),
        host_ip=plain(status.get("hostIP") or ""),
        grace=Duration(1_000 * int(spec.get("terminationGracePeriodSeconds") or 0)),
        terminals=frozenset(
            str(each.get("name")) for each in spec.get("containers") or () if each.get("tty")
        ),
    )


def _admitted(metadata: Mapping[str, Any], notes: Mapping[str, str]) -> str:
    name = notes.get(ADMITTED, "")
    owners = [each.get("name") for each in metadata.get("ownerReferences") or ()]
    return name if name in owners else ""


def first_container(spec: Mapping[str, Any]) -> str:
    """The one that people mean when they name none."""
    return next((str(each.get("name")) for each in spec.get("containers") or ()), CONTAINER)


def taken_by(pods: Iterable[Pod], ours: Set[str]) -> dict[NodeId, Taken]:
    """What pods that are none of ours hold of each node. ours: by their uids."""
    found: dict[NodeId, Taken] = {}
    for pod in pods:
        if pod.node is None or pod.is_over or pod.uid in ours:
            continue
        found[pod.node] = found.get(pod.node, Taken()) + pod.holds
    return found


def _stage(phase: str, node: str, *, is_running: bool) -> Stage:
    if phase in {"Succeeded", "Failed"}:
        return Stage.OVER
    if not node:
        return Stage.UNBOUND
    return Stage.RUNS if is_running else Stage.WAITS


def _container_state(status: Mapping[str, Any]) -> Mapping[str, Any]:
    """Of our container; in a pod that somebody else made, of the first that failed, else of all."""
    found: list[Mapping[str, Any]] = list(status.get("containerStatuses") or ())
    ours = [each for each in found if each.get("name") == CONTAINER]
    states: list[Mapping[str, Any]] = [each.get("state") or {} for each in ours or found]
    failed = [each for each in states if each.get("terminated", {}).get("exitCode")]
    return (failed or states)[0] if states else {}


def _key(labels: Mapping[str, str]) -> Key | None:
    site, job, attempt = labels.get(SITE, ""), labels.get(JOB, ""), labels.get(ATTEMPT, "")
    if not site or not job.isdecimal() or not attempt.isdecimal():
        return None
    return Key(site=site, job=int(job), attempt=int(attempt))


def _holds(spec: Mapping[str, Any]) -> Taken:
    """As the scheduler of Kubernetes counts it: what runs beside each other, or one that inits."""
    beside = Taken()
    inits: list[Taken] = []
    for each in spec.get("initContainers") or ():
        if each.get("restartPolicy") == "Always":
            beside += _asks(each)
        else:
            inits.append(beside + _asks(each))
    for each in spec.get("containers") or ():
        beside += _asks(each)
    return largest(beside, *inits) + taken_of(spec.get("overhead") or {})


def _asks(container: Mapping[str, Any]) -> Taken:
    named: Mapping[str, Any] = container.get("resources") or {}
    return taken_of({**(named.get("limits") or {}), **(named.get("requests") or {})})


def _disruption(status: Mapping[str, Any]) -> str:
    for each in status.get("conditions") or ():
        if each.get("type") == "DisruptionTarget" and each.get("status") == "True":
            return str(each.get("reason") or "DisruptionTarget")
    return ""


def _waiting(state: Mapping[str, Any]) -> str:
    reason, message = state.get("reason") or "", state.get("message") or ""
    return plain(f"{reason}: {message}" if message else reason)


def _number(text: str | None) -> int:
    return int(text) if text and text.isdecimal() else 0
