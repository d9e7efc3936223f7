"""How the pods of an attempt stand together, as a look at it. Pure."""

from collections.abc import Iterable, Sequence

from muster.backends.attempts import Look, Phase
from muster.backends.fleet import Taken
from muster.backends.kubernetes.pods import Pod, Stage
from muster.backends.notes import Note
from muster.model.job import (
    Cancelled,
    EndReason,
    Exited,
    LaunchFailed,
    NodeFailed,
    OutOfMemory,
    Requeued,
    Signaled,
)
from muster.model.value import Instant, NodeId, UserName, replace

KUBERNETES = UserName("kubernetes")
"""On whose behalf Kubernetes itself ends a pod, or an administrator with kubectl."""

_NO_CONFIG = "CreateContainerConfigError"
_HOPELESS = ("InvalidImageName", "ErrImageNeverPull", _NO_CONFIG)
"""A container that waits for one of these waits for ever."""

_PULL_MS = 300_000
"""How long an image may fail to come, or a container to begin."""
_SECOND_MS = 999
_LOST_NODE = frozenset({"DeletionByTaintManager", "DeletionByPodGC", "TerminationByKubelet"})
_BEFELL = NodeFailed | Requeued
_REJECTED = frozenset({"UnexpectedAdmissionError", "NodeAffinity", "NodePorts", "TaintToleration"})


def look_of(pods: Sequence[Pod], gone: Sequence[Pod], down: Iterable[NodeId], now: Instant) -> Look:
    """What Kubernetes says of the attempt.

    gone: pods of it that are no longer there, as they were last seen. down: nodes that are lost;
    a pod that was told to leave one of them is not waited for.
    """
    lost_nodes = frozenset(down)
    left = [pod for pod in pods if not _is_lost(pod, lost_nodes)]
    ended = [*gone, *(pod for pod in pods if _is_lost(pod, lost_nodes))]
    over = [pod for pod in left if pod.is_over] + ended
    live = [pod for pod in left if not pod.is_over]
    started_at = _started_at([*left, *ended], now)
    if not live:
        return Look(
            phase=Phase.OVER,
            started_at=started_at,
            ended_at=_latest(over, now),
            why=_why(over, lost_nodes),
        )
    all_began = all(pod.stage is Stage.RUNS for pod in live)
    if all_began or is_broken(pods, gone, lost_nodes):
        return Look(phase=Phase.RUNS, started_at=started_at or now)
    return Look(phase=Phase.WAITS)


def as_led(seen: Look, pods: Iterable[Pod], note: Note) -> Look:
    """A gang with a leader ends as that did, unless something befell the gang."""
    leader = next((pod for pod in pods if pod.rank == note.leader and pod.is_over), None)
    if leader is None or seen.phase is not Phase.OVER or isinstance(seen.why, _BEFELL):
        return seen
    return replace(seen, why=_fault(leader, frozenset()) or Exited(code=0))


def must_end(pods: Sequence[Pod], gone: Sequence[Pod], down: Iterable[NodeId], note: Note) -> bool:
    """Must those that are left end? Pods of users end each for itself, unless one is lost."""
    if not note.pods and not any(pod.statuses for pod in (*pods, *gone)):
        return is_broken(pods, gone, down)
    lost_nodes = frozenset(down)
    if gone or any(_is_lost(pod, lost_nodes) for pod in pods):
        return True
    return any(pod.is_over and isinstance(_fault(pod, lost_nodes), _BEFELL) for pod in pods)


def apart(
    pods: Iterable[Pod], gone: Iterable[Pod], note: Note
) -> tuple[tuple[Pod, ...], tuple[Pod, ...]]:
    """Those that count as there, and as gone.

    One that was told to end while the others go on is there, and over well.
    """
    asked = [over(pod) for pod in gone if pod.rank in note.let_go]
    there = tuple(_well(pod) if pod.rank in note.let_go else pod for pod in (*pods, *asked))
    return there, tuple(pod for pod in gone if pod.rank not in note.let_go)


def over(pod: Pod) -> Pod:
    """As it was last seen, now that it is gone."""
    return replace(pod, stage=Stage.OVER)


def _well(pod: Pod) -> Pod:
    return replace(pod, code=0, out_of_memory=False, lost=False, disruption="", reason="")


def final(seen: Look) -> Look:
    """A pod that somebody else made is not made again by us: whose it is may do so."""
    if isinstance(seen.why, Requeued):
        return replace(seen, why=Cancelled(by=seen.why.by))
    return seen


def is_broken(pods: Sequence[Pod], gone: Sequence[Pod], down: Iterable[NodeId]) -> bool:
    """Must those that are left end? One of them failed or is gone, or the script is done."""
    lost_nodes = frozenset(down)
    if gone or any(_is_lost(pod, lost_nodes) for pod in pods):
        return True
    if any(pod.is_over and _fault(pod, lost_nodes) is not None for pod in pods):
        return True
    working = [pod for pod in pods if not pod.only_holds]
    return bool(working) and all(pod.is_over for pod in working)


def hopeless(pods: Iterable[Pod], note: Note, now: Instant) -> EndReason | None:
    """A container that will not begin, and what its kubelet says."""
    for pod in pods:
        reason = pod.waiting.partition(":")[0]
        is_stuck = "BackOff" in reason or "Err" in reason
        # Variables of a user's pod are out of a Secret that may be on its way to the kubelet.
        may_come = bool(pod.statuses) and reason == _NO_CONFIG
        is_final = reason in _HOPELESS and not may_come
        if is_final or (is_stuck and now - note.began_at > _PULL_MS):
            return LaunchFailed(text=pod.waiting)
    return None


def unknown_pod(note: Note, rank: int) -> Pod:
    """One that nobody saw end: it is lost; somebody else's was deleted before it began."""
    is_ours = not note.names
    return Pod(
        namespace="",
        name="",
        uid="",
        stage=Stage.OVER if is_ours else Stage.UNBOUND,
        node=note.nodes[rank],
        holds=Taken(),
        rank=rank,
        lost=is_ours,
    )


def _is_lost(pod: Pod, down: frozenset[NodeId]) -> bool:
    """Its node does not answer, and Kubernetes has given it up."""
    return not pod.is_over and pod.leaves and pod.node in down


def _started_at(pods: Iterable[Pod], now: Instant) -> Instant | None:
    """When the last of those began that did. Kubernetes tells the second in which it was."""
    found = [pod.started_at for pod in pods if pod.started_at is not None]
    return Instant(min(max(found) + _SECOND_MS, now)) if found else None


def _latest(pods: Iterable[Pod], now: Instant) -> Instant:
    found = [pod.ended_at for pod in pods if pod.ended_at is not None]
    return Instant(min(max(found) + _SECOND_MS, now)) if found else now


def _why(over: Sequence[Pod], down: frozenset[NodeId]) -> EndReason:
    """Of the one that failed first; of several at a time, that of the lowest rank."""
    faults = [(pod, why) for pod in over if (why := _fault(pod, down)) is not None]
    if not faults:
        return Exited(code=0)
    # Those that were ended because of another have no code of their own.
    _, why = min(faults, key=lambda each: _turn(each[0]))
    return why


def _turn(pod: Pod) -> tuple[bool, int, int]:
    is_consequence = pod.only_holds or (pod.leaves and not pod.disruption)
    return is_consequence, pod.ended_at or 0, pod.rank


def _fault(pod: Pod, down: frozenset[NodeId]) -> EndReason | None:
    """How it ended, unless it ended well."""
    node = pod.node or NodeId("unknown")
    if pod.lost or node in down or pod.disruption in _LOST_NODE:
        return NodeFailed(node=node)
    if pod.disruption or pod.reason == "Evicted" or _is_rejected(pod):
        return Requeued(by=KUBERNETES)
    if pod.out_of_memory:
        return OutOfMemory(node=node)
    if not pod.is_over:
        # Somebody deleted it.
        return Cancelled(by=KUBERNETES)
    if pod.signal:
        return Signaled(signal=pod.signal)
    if pod.code is None:
        text = f"{pod.reason}: {pod.message}" if pod.message else pod.reason
        return LaunchFailed(text=text or f"pod {pod.name} failed")
    return Exited(code=pod.code) if pod.code else None


def _is_rejected(pod: Pod) -> bool:
    """The kubelet did not let it in: somebody else was there first."""
    return pod.code is None and (pod.reason.startswith("OutOf") or pod.reason in _REJECTED)
