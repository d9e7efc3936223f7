"""What is done to the pods of attempts: begun, bound, signalled, ended, cleared away."""

import logging
import signal
from collections.abc import Collection, Iterable, Sequence
from functools import partial

from muster.backends.attempts import Deed, End, Kill, Resume, Send
from muster.backends.base import Run
from muster.backends.kubernetes import manifest, pod_manifest
from muster.backends.kubernetes.client import Client, Json, KubernetesRefusedError
from muster.backends.kubernetes.hands import Hands
from muster.backends.kubernetes.manifest import Identity, Manner, binding, name_of
from muster.backends.kubernetes.output import MOST
from muster.backends.kubernetes.pods import HOLD, Key, Pod
from muster.backends.kubernetes.signals import Signals
from muster.model.launch import AdoptedPod
from muster.model.value import Duration, Value

log = logging.getLogger(__name__)

_AT_ONCE = Duration(1_000)
"""With no time at all the API server would forget a pod whose processes still run."""


class Place(Value):
    """Where the objects of an attempt are, and what they are called after.

    names: of its pods, where somebody else made them.
    """

    namespace: str
    key: Key
    names: tuple[str, ...] = ()

    def pod(self, rank: int) -> str:
        """The path of the pod of this rank."""
        name = self.names[rank] if self.names else f"{name_of(self.key)}-{rank}"
        return _path("pods", self.namespace, name)


class Deeds:
    """Everything that changes the cluster. Each may be done again."""

    def __init__(self, client: Client, manner: Manner, hands: Hands) -> None:
        self._client, self._manner, self._hands = client, manner, hands
        self._signals = Signals(client)

    def close(self) -> None:
        self._signals.close()

    def begin(self, run: Run, key: Key, whose: Identity | None) -> tuple[Json, ...]:
        """Make all that the attempt needs. Its pods do not run yet: they have no node."""
        if run.launch.adopts:
            return self._opened(run.launch.adopts)
        kind = pod_manifest if run.launch.pods else manifest
        made = kind.pods(run, self._manner, key, whose)
        self._made("secrets", kind.secret(run, self._manner, key))
        meeting = manifest.service(run, self._manner, key)
        if meeting is not None:
            self._made("services", meeting)
        found = self._hands.at_once([partial(self._made, "pods", each) for each in made])
        failed = next((each for each in found if isinstance(each, Exception)), None)
        if failed is not None:
            raise failed
        return tuple(each for each in found if not isinstance(each, Exception))

    def bind(self, pod: Json, node: str, key: Key | None = None) -> None:
        """Put it there, unless it is somewhere already; it is told whose attempt it is from now."""
        metadata = pod["metadata"]
        path = _path("pods", metadata["namespace"], metadata["name"])
        try:
            self._client.create(f"{path}/binding", binding(pod, node, key))
        except KubernetesRefusedError as error:
            # A conflict: it is bound, or another one has its name now. A look will tell.
            if not error.is_conflict and not error.is_missing:
                raise

    def bind_seen(self, pod: Pod, key: Key) -> None:
        """The same for one that was seen without a node."""
        metadata = {"name": pod.name, "namespace": pod.namespace, "uid": pod.uid}
        if pod.wanted is not None:
            self.bind({"metadata": metadata}, pod.wanted, key)

    def is_there(self, where: Place, rank: int, uid: str = "") -> bool:
        """Ask for certain: a watch may be late. uid: of one whose name others may have again."""
        try:
            found = self._client.get(where.pod(rank))
        except KubernetesRefusedError as error:
            if error.is_missing:
                return False
            raise
        return not uid or found["metadata"]["uid"] == uid

    def do(self, pods: Iterable[Pod], deed: Deed) -> None:
        for pod in pods:
            if pod.is_over:
                continue
            match deed:
                case Send(signal=number, first_only=first_only):
                    self._signal(pod, number, first_only=first_only)
                case End(grace=grace):
                    self._end(pod, grace)
                case Kill():
                    self._end(pod, _AT_ONCE)
                case Resume():
                    """Nothing stands here: that is not among its abilities."""

    def tell_of_end(self, pods: Collection[Pod], deed: Deed, *, is_final: bool) -> None:
        """What made the pods that somebody else made knows why they go.

        A Job that went on for our sake stands again: it would make others in their place.
        is_final: until somebody says otherwise; else they make room for others.
        """
        if not isinstance(deed, End | Kill):
            return
        if isinstance(deed, End) and not is_final:
            self._tell_of_preemption(each for each in pods if each.key is None)
        for namespace, job in sorted({(each.namespace, each.admitted) for each in pods}):
            if not job:
                continue
            held = {"metadata": {"annotations": {HOLD: "true"}}} if is_final else {}
            path = f"/apis/batch/v1/namespaces/{namespace}/jobs/{job}"
            try:
                self._client.merge(path, {**held, "spec": {"suspend": True}})
            except KubernetesRefusedError as error:
                if not error.is_missing:
                    raise

    def clear(self, where: Place, tasks: int) -> None:
        """Remove everything that we made for the attempt."""
        if where.names:
            return
        name = name_of(where.key)
        for rank in range(tasks):
            self._client.delete(where.pod(rank), {})
        for kind in ("secrets", "services"):
            self._client.delete(_path(kind, where.namespace, name), {})

    def let_go(self, pod: Pod) -> None:
        """End it as it says itself: it is a user's, and the others go on."""
        self._end(pod, pod.grace or _AT_ONCE)

    def refresh(self, secret: Json) -> None:
        """What containers read from now on, where they read files."""
        metadata = secret["metadata"]
        path = _path("secrets", metadata["namespace"], metadata["name"])
        self._client.merge(path, {"data": secret["data"]})

    def log(self, where: Place, rank: int, container: str, **query: str) -> bytes:
        """What the task wrote, the first of it that we keep."""
        path = f"{where.pod(rank)}/log"
        return self._client.text(path, container=container, limitBytes=str(MOST), **query)

    def _opened(self, adopts: Sequence[AdoptedPod]) -> tuple[Json, ...]:
        """What somebody else made, and nothing keeps from being bound any more."""
        calls = [partial(self._open_gate, each) for each in adopts if each.gated]
        failed = next(
            (each for each in self._hands.at_once(calls) if isinstance(each, Exception)), None
        )
        if failed is not None:
            raise failed
        return tuple(
            {
                "metadata": {"namespace": each.namespace, "name": each.name, "uid": each.uid},
                "spec": {},
            }
            for each in adopts
        )

    def _open_gate(self, pod: AdoptedPod) -> None:
        """The uid is the condition: one of the same name that came after it keeps its gate."""
        change = {"metadata": {"uid": pod.uid}, "spec": {"schedulingGates": None}}
        self._client.merge(_path("pods", pod.namespace, pod.name), change)

    def _tell_of_preemption(self, pods: Iterable[Pod]) -> None:
        """A failure that is none of their own does not count against their Job."""
        condition = {
            "type": "DisruptionTarget",
            "status": "True",
            "reason": "PreemptionByScheduler",
            "message": "muster: preempted to make room for another job",
        }
        for pod in pods:
            change = {"metadata": {"uid": pod.uid}, "status": {"conditions": [condition]}}
            try:
                self._client.merge(f"{pod.path}/status", change)
            except KubernetesRefusedError as error:
                log.warning("pod %s was not told that it makes room: %s", pod.name, error)

    def _made(self, kind: str, body: Json) -> Json:
        """Create it, or find what we created before."""
        try:
            return self._client.create(_path(kind, body["metadata"]["namespace"]), body)
        except KubernetesRefusedError as error:
            if not error.is_conflict:
                raise
        metadata = body["metadata"]
        return self._client.get(_path(kind, metadata["namespace"], metadata["name"]))

    def _signal(self, pod: Pod, number: int, *, first_only: bool) -> None:
        if number == signal.SIGKILL:
            self._end(pod, _AT_ONCE)
            return
        self._signals.send(pod, number, first_only=first_only)

    def _end(self, pod: Pod, grace: Duration) -> None:
        grace = max(_AT_ONCE, grace if pod.grace is None else min(grace, pod.grace))
        options = {"gracePeriodSeconds": -(-grace // 1_000), "preconditions": {"uid": pod.uid}}
        self._client.delete(pod.path, options)


def _path(kind: str, namespace: str, name: str = "") -> str:
    path = f"/api/v1/namespaces/{namespace}/{kind}"
    return f"{path}/{name}" if name else path
