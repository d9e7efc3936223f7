"""A Kubernetes cluster as a backend: watches say what is, one thread orders and keeps time."""

import contextlib
import logging
import queue
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from signal import SIGTERM

from muster.backends.attempts import Attempt, Deed, End, Look, Send
from muster.backends.base import (
    Action,
    Continue,
    Cut,
    Forget,
    Limit,
    Mend,
    OutputQuery,
    Run,
    Signal,
    Stop,
    Supply,
    Suspend,
    Wake,
)
from muster.backends.fleet import NodeWatch
from muster.backends.kubernetes.adoption import Adoption
from muster.backends.kubernetes.attempt import (
    apart,
    as_led,
    final,
    hopeless,
    look_of,
    must_end,
    over,
    unknown_pod,
)
from muster.backends.kubernetes.client import (
    Client,
    KubernetesDownError,
    KubernetesRefusedError,
)
from muster.backends.kubernetes.deeds import Deeds
from muster.backends.kubernetes.hands import Hands
from muster.backends.kubernetes.known import (
    MUSTER,
    note_of,
    note_of_run,
    shares_of,
    told_again,
)
from muster.backends.kubernetes.link import KubernetesLink
from muster.backends.kubernetes.logs import Logs
from muster.backends.kubernetes.making import Making
from muster.backends.kubernetes.mirror import Mirror
from muster.backends.kubernetes.nodes import Fleet, node_of
from muster.backends.kubernetes.pods import Pod, Stage, pod_of, taken_by
from muster.backends.kubernetes.register import AttemptId, Register
from muster.backends.kubernetes.strangers import Strangers
from muster.backends.kubernetes.visits import ClusterVisit
from muster.backends.looking import CheckpointLook
from muster.backends.notes import Note, Notes
from muster.launch.attempt import in_rank_order
from muster.launch.pods.variables import MissingError
from muster.model.cluster import Abilities, BackendKind, Cluster, Node, NodeState
from muster.model.errors import UnknownError
from muster.model.event import ClusterSeen, Event, JobEnded
from muster.model.job import LaunchFailed, Preempted, Requeued
from muster.model.placement import Allocation
from muster.model.running import Output, Visit, VisitStream
from muster.model.value import Instant, JobId, NodeId, replace

Clock = Callable[[], Instant]

log = logging.getLogger(__name__)

_LOOK_MS = 1_000
"""How often attempts are looked at when no watch has anything new."""
_LOOK_SHARE = 6
"""A look at all takes one part in so many of the time; one comes each second at the latest."""
_AT_ONCE = 200


class KubernetesBackend:
    """What is sent is queued for the thread; what it finds out is kept until it is observed."""

    def __init__(
        self, link: KubernetesLink, client: Client, folder: Path, wake: Wake, clock: Clock
    ) -> None:
        self._link, self._client, self._wake, self._clock = link, client, wake, clock
        self._hands = Hands()
        self._deeds = Deeds(client, link.manner, self._hands)
        self._notes = Notes(folder / "attempts")
        fleet = Fleet(cluster=link.name, models=link.models, levels=link.levels)
        self._node_mirror: Mirror[Node] = Mirror(
            client, "/api/v1/nodes", lambda found: node_of(found, fleet), self._poke
        )
        self._pod_mirror: Mirror[Pod] = Mirror(client, "/api/v1/pods", pod_of, self._poke)
        self._abilities = Abilities(
            repartition=False,
            suspend=False,
            # Where NVIDIA's runtime is the usual one, a variable of the pod's gives it all GPUs.
            device_wall=False,
            image_files=False,
            commands=bool(link.manner.image),
            host_paths=False,
            tokens=False,
            stop_signals=False,
            checkpoint_probes=False,
            terminals=False,
            steps=False,
            adoption=link.adopts,
        )
        self.adoption = (
            Adoption(link.name, client, self._pod_mirror, self._poke) if link.adopts else None
        )
        self._reachable = False
        self._actions: queue.SimpleQueue[Action] = queue.SimpleQueue()
        self._backlog: deque[Action] = deque()
        self._news: list[Event] = []
        self._told: tuple[Event, ...] = ()
        self._lock = threading.Lock()
        self._woken = threading.Event()
        self._closing = False
        self._register = Register(link)
        self._logs = Logs(folder / "output", link, self._deeds, self._register)
        self._making = Making(link, self._register, self._deeds, self._notes, self._hands)
        self._strangers = Strangers(link.name, self._register, self._deeds, self._notes)
        self._due: deque[tuple[AttemptId, Deed]] = deque()
        self._nodes = NodeWatch()
        self._looked_for_files = Instant(0)
        self._look_due, self._look_put_off = Instant(0), False
        self._thread: threading.Thread | None = None

    @property
    def cluster(self) -> Cluster:
        return Cluster(
            name=self._link.name,
            backend=BackendKind.KUBERNETES,
            abilities=self._abilities,
            order=self._link.order,
            reachable=self._reachable,
            place=f"kubernetes:{self._link.site}",
            orphans=self._strangers.told,
        )

    def adopt(self, allocations: tuple[Allocation, ...]) -> None:
        """What has pods goes on; what was begun and is not wanted any more ends."""
        self._stop_threads()
        self._report_from_the_start()
        known = {(note.job, note.attempt): note for note in self._notes.kept()}
        for each in allocations:
            key = (each.job, each.attempt)
            note = known.pop(key, None) or note_of(each, self._register.called(key))
            if note is None:
                continue
            self._register.enter(Attempt(note=note))
            self._register.devices[key] = shares_of(each)
            if note.ended is not None:
                self._news.extend(told_again(note))
        self._strangers.begin(known.values())
        self._look_due = Instant(0)
        with contextlib.suppress(KubernetesDownError, KubernetesRefusedError):
            self._node_mirror.fill()
            self._pod_mirror.fill()
            self._set_reachable(reachable=True)
        self._turn(())
        if not self._reachable:
            self._report_cluster(self._clock())
            self._publish()
        self._closing = False
        self._node_mirror.start()
        self._pod_mirror.start()
        if self.adoption is not None:
            self.adoption.start()
        self._thread = threading.Thread(target=self._work, name=f"kubernetes-{self._link.name}")
        self._thread.start()

    def do(self, action: Action) -> None:
        self._actions.put(action)
        self._woken.set()

    def observe(self, now: Instant) -> tuple[Event, ...]:  # noqa: ARG002 -- the port's
        with self._lock:
            found, self._told = self._told, ()
        return found

    def output(self, query: OutputQuery) -> Output:
        """Of the pod while it is there, and what was kept of it after that."""
        return self._logs.read(query)

    def visit(self, job: JobId, attempt: int, task: int, wanted: Visit) -> VisitStream:
        pod = self._register.last.get((job, attempt), {}).get(task)
        if pod is None or not pod.statuses or pod.is_over:
            raise UnknownError("the pod does not run")
        try:
            return ClusterVisit(self._client.way(), pod.path, wanted, pod.terminals)
        except KubernetesDownError as error:
            raise UnknownError(str(error)) from error

    def close(self) -> None:
        self._stop_threads()
        self._hands.close()
        self._deeds.close()
        self._client.close()

    def _stop_threads(self) -> None:
        if self._thread is not None:
            self._closing = True
            self._woken.set()
            self._thread.join()
            self._thread = None
            self._node_mirror.close()
            self._pod_mirror.close()
            if self.adoption is not None:
                self.adoption.close()

    def _report_from_the_start(self) -> None:
        self._news.clear()
        self._told = ()
        self._register.clear()
        self._backlog.clear()
        self._due.clear()
        self._nodes.forget()
        self._reachable = False

    # The thread: take what was sent, look, do what is due, wait.

    def _poke(self) -> None:
        self._woken.set()

    def _work(self) -> None:
        while not self._closing:
            self._woken.wait(self._wait_ms() / 1_000)
            self._woken.clear()
            taken: list[Action] = []
            while len(taken) < _AT_ONCE and not self._actions.empty():
                taken.append(self._actions.get())
            if not self._actions.empty():
                self._woken.set()
            self._turn(taken)

    def _turn(self, actions: Iterable[Action]) -> None:
        try:
            self._backlog.extend(actions)
            while self._backlog:
                self._take_or_refuse(self._backlog[0])
                self._backlog.popleft()
            self._begin_all()
            failure = self._node_mirror.failure or self._pod_mirror.failure
            if failure:
                raise KubernetesDownError(failure)
            self._look_if_due()
            self._act()
            self._set_reachable(reachable=self._reachable or self._thread is not None)
        except (KubernetesDownError, KubernetesRefusedError, OSError) as error:
            if self._reachable:
                log.warning("cluster %s does not answer: %s", self._link.name, error)
            self._set_reachable(reachable=False)
        except Exception:
            # What it says makes no sense: that is no better than silence, and must not end us.
            log.exception("cluster %s answers what nobody understands", self._link.name)
            self._set_reachable(reachable=False)
        self._publish()

    def _publish(self) -> None:
        """What one turn found is observed together: a cluster that answers, and all its nodes."""
        if self._news:
            with self._lock:
                self._told = (*self._told, *self._news)
            self._news.clear()
            self._wake()

    def _wait_ms(self) -> int:
        now = self._clock()
        dues = [each.next_due() for each in self._register.attempts.values()]
        soonest = min((due for due in dues if due is not None), default=now + _LOOK_MS)
        looks = self._look_due - now if self._look_put_off else _LOOK_MS
        return max(10, min(soonest - now, looks))

    def _set_reachable(self, *, reachable: bool) -> None:
        if reachable != self._reachable:
            self._reachable = reachable
            self._report_cluster(self._clock())

    def _report_cluster(self, now: Instant) -> None:
        self._news.append(ClusterSeen(at=now, cluster=self.cluster))

    def _take_or_refuse(self, action: Action) -> None:
        """What cannot be done at all ends its attempt, and no other."""
        try:
            self._take(action)
        except (KubernetesDownError, OSError):
            raise
        except Exception as error:
            log.exception("cluster %s cannot do %s", self._link.name, type(action).__name__)
            if isinstance(action, Run):
                self._refuse(action, error)

    def _refuse(self, run: Run, error: Exception) -> None:
        key = (run.job.id, run.allocation.attempt)
        self._register.begun(key)
        attempt = self._register.attempts.setdefault(key, Attempt(note=self._begun(run)))
        self._finish(key, attempt.end(LaunchFailed(text=str(error)), self._clock()))

    def _take(self, action: Action) -> None:
        match action:
            case Run():
                self._run(in_rank_order(action))
            case Stop():
                self._stop(action)
            case Signal() | Limit():
                attempt = self._register.attempts.get((action.job, action.attempt))
                if attempt is not None and not attempt.is_over:
                    self._order(attempt, action)
            case Forget():
                self._forget((action.job, action.attempt))
            case Supply():
                nodes = {node.id: node for node in self._node_mirror.all()}
                self._making.supply(action, nodes, self._clock())
            case Suspend() | Continue() | Cut() | Mend():
                """None of these is among its abilities, and its nodes are Kubernetes' to mend."""

    def _run(self, run: Run) -> None:
        key = (run.job.id, run.allocation.attempt)
        known = self._register.attempts.get(key)
        if known is not None and (known.is_over or known.note.handle is not None):
            return
        if known is None:
            self._register.enter(Attempt(note=self._begun(run)))
            self._register.devices[key] = shares_of(run.allocation)
        self._register.unbegun[key] = run

    def _begin_all(self) -> None:
        """Begin what was not begun yet, many attempts at a time, each for itself.

        What was made before an answer was lost is found under its name, and made no second time.
        """
        keys = tuple(each for each in self._register.unbegun if each not in self._register.lacking)
        failures: list[Exception] = []
        tried = self._hands.at_once([partial(self._making.begin, key) for key in keys])
        for key, bound in zip(keys, tried, strict=True):
            if isinstance(bound, KubernetesDownError | OSError):
                failures.append(bound)
            elif isinstance(bound, MissingError):
                self._lacks(key, str(bound))
            elif isinstance(bound, Exception):
                log.warning("cluster %s cannot begin job %s: %s", self._link.name, key[0], bound)
                self._refuse(self._register.unbegun[key], bound)
            else:
                self._register.begun(key)
                failures += self._not_bound(bound)
        if failures:
            raise failures[0]

    def _lacks(self, key: AttemptId, why: str) -> None:
        """As with a kubelet, it waits until what it reads is there."""
        self._register.lacking.add(key)
        note = self._register.attempts[key].note
        self._news.extend(self._register.news_of(key).lacking(note, why, self._clock()))

    def _not_bound(self, tried: Sequence[Exception | None]) -> Iterator[Exception]:
        """Those whose server did not answer: a look will tell, and bind what has no node."""
        for each in tried:
            if isinstance(each, KubernetesDownError | OSError):
                yield each
            elif isinstance(each, Exception):
                log.warning("cluster %s: a pod was not bound: %s", self._link.name, each)

    def _stop(self, order: Stop) -> None:
        key = (order.job, order.attempt)
        attempt = self._register.attempts.get(key)
        if attempt is None:
            note = Note(
                job=order.job, attempt=order.attempt, user=MUSTER, nodes=(), began_at=self._clock()
            )
            attempt = self._register.attempts[key] = Attempt(note=note)
        if attempt.is_over:
            return
        attempt.stop(order, self._clock())
        self._keep(attempt)
        if attempt.note.handle is None:
            run = self._register.unbegun.get(key)
            if run is not None:
                self._deeds.clear(self._register.place(key), len(run.allocation.placements))
                self._register.begun(key)
            self._finish(key, attempt.end(order.why, self._clock()))

    def _order(self, attempt: Attempt, action: Signal | Limit) -> None:
        if isinstance(action, Limit):
            attempt.limit(action)
            self._keep(attempt)
            return
        pods = self._register.last.get((action.job, action.attempt), {})
        wanted = [pod for rank, pod in pods.items() if action.task in {None, rank}]
        if action.task is not None and action.signal == SIGTERM and attempt.note.pods:
            self._let_go(attempt, action.task, wanted)
            return
        self._deeds.do(wanted, Send(signal=action.signal, first_only=action.shell_only))

    def _let_go(self, attempt: Attempt, rank: int, pods: Iterable[Pod]) -> None:
        """End one pod of a gang, as it says itself; the others go on."""
        if rank not in attempt.note.let_go:
            attempt.note = replace(attempt.note, let_go=(*attempt.note.let_go, rank))
            self._keep(attempt)
        for pod in pods:
            self._logs.keep((attempt.note.job, attempt.note.attempt), [pod])
            self._deeds.let_go(pod)

    def _forget(self, key: AttemptId) -> None:
        places = self._register.places(key)
        attempt = self._register.drop(key)
        last = self._register.last.pop(key, {})
        tasks = max(len(attempt.note.nodes) if attempt is not None else 0, 1 + max(last, default=0))
        for where in places:
            self._deeds.clear(where, tasks)
        self._notes.drop(*key)

    # Looking

    def _look_if_due(self) -> None:
        """A look takes its time where much runs: most of all time is left for other things."""
        begun = self._clock()
        self._look_put_off = begun < self._look_due
        if not self._look_put_off:
            self._look(begun)
            took = self._clock() - begun
            self._look_due = Instant(begun + min(took * _LOOK_SHARE, _LOOK_MS))

    def _look(self, now: Instant) -> None:
        pods, nodes = self._pod_mirror.all(), self._node_mirror.all()
        claimed = list(filter(None, map(self._register.claimed, pods)))
        ours: dict[AttemptId, dict[int, Pod]] = {}
        for key, pod in claimed:
            ours.setdefault(key, {})[pod.rank] = pod
        self._nodes.are(nodes)
        known = (found.values() for key, found in ours.items() if key in self._register.attempts)
        self._nodes.others_hold(taken_by(pods, {pod.uid for found in known for pod in found}))
        down = {node.id for node in nodes if node.state is NodeState.DOWN}
        there = {node.id for node in nodes}
        for key, attempt in tuple(self._register.attempts.items()):
            if attempt.is_over or attempt.note.handle is None:
                continue
            found, before = ours.get(key, {}), self._register.last.get(key, {})
            self._register.last[key] = {**before, **found}
            self._logs.keep_earlier_runs(key, found, before)
            lost = down | {each for each in attempt.note.nodes if each not in there}
            at = (frozenset(lost), now)
            self._tried(key, partial(self._look_at, key, attempt, tuple(found.values()), at))
        if self._strangers.look(claimed, now):
            self._report_cluster(now)
        self._look_for_checkpoints(now)
        self._report_nodes(now)

    def _look_at(
        self,
        key: AttemptId,
        attempt: Attempt,
        pods: tuple[Pod, ...],
        at: tuple[frozenset[NodeId], Instant],
    ) -> None:
        down, now = at
        note, is_adopted = attempt.note, bool(attempt.note.names)
        pods, gone = apart(pods, self._gone(key, attempt, pods), note)
        unbound = [pod for pod in pods if pod.stage is Stage.UNBOUND and not pod.leaves]
        if unbound and not gone and note.stop is None:
            for pod in unbound:
                self._deeds.bind_seen(pod, self._register.mark(key))
            return
        if not pods and not gone:
            return
        seen = as_led(look_of(pods, gone, down, now), pods, note)
        seen = final(seen) if is_adopted else seen
        if not any(pod.started_at for pod in (*pods, *gone)) and note.started_at is None:
            seen = replace(seen, started_at=None)
        self._tell(key, attempt, (seen, now), (*pods, *map(over, gone)))
        if attempt.is_over or is_adopted:
            # What becomes of the others is for those to say whose pods they are.
            return
        if must_end(pods, gone, down, attempt.note):
            self._break_off(attempt, pods, now)
        elif (why := hopeless(pods, attempt.note, now)) is not None and note.stop is None:
            order = Stop(job=key[0], attempt=key[1], why=why, grace=note.grace)
            attempt.stop(order, now)
            self._keep(attempt)

    def _tell(
        self, key: AttemptId, attempt: Attempt, seen: tuple[Look, Instant], pods: tuple[Pod, ...]
    ) -> None:
        """What is new of it; how its pods are is told before its end."""
        look, now = seen
        found = tuple(attempt.look(look, now))
        ends = [each for each in found if isinstance(each, JobEnded)]
        if ends:
            self._logs.keep(key, pods)
        others = [each for each in found if not isinstance(each, JobEnded)]
        news = self._register.news_of(key).of(attempt.note, pods, look, now)
        self._finish(key, (*others, *news, *ends))

    def _break_off(self, attempt: Attempt, pods: Iterable[Pod], now: Instant) -> None:
        """One part is over: the others end too, and its end stays the reason."""
        if attempt.timeline is not None:
            attempt.break_off(now)
            return
        self._deeds.do((pod for pod in pods if not pod.leaves), End(grace=attempt.note.grace))

    def _gone(self, key: AttemptId, attempt: Attempt, pods: Iterable[Pod]) -> tuple[Pod, ...]:
        """Pods of the attempt that are certainly no longer there, as they were last seen."""
        there = {pod.rank for pod in pods}
        note, last, place = (
            attempt.note,
            self._register.last.get(key, {}),
            self._register.place(key),
        )
        missing = [rank for rank in range(len(note.nodes)) if rank not in there]
        return tuple(
            last.get(rank) or unknown_pod(note, rank)
            for rank in missing
            if not self._deeds.is_there(place, rank, _uid_of(note, rank))
        )

    def _look_for_checkpoints(self, now: Instant) -> None:
        if now - self._looked_for_files < _LOOK_MS // 2:
            return
        self._looked_for_files = now
        for key, attempt in self._register.attempts.items():
            if attempt.note.checkpoint is None or attempt.is_over or attempt.timeline is None:
                continue
            saved = self._register.looks.setdefault(key, CheckpointLook()).news(attempt.note, now)
            if saved is not None:
                attempt.note = replace(attempt.note, saved=saved)
                attempt.checkpointed(now)
                self._keep(attempt)
                self._news.append(saved)

    def _report_nodes(self, now: Instant) -> None:
        ours = [share for shares in self._register.devices.values() for share in shares]
        self._news.extend(self._nodes.news(ours, now))

    def _act(self) -> None:
        """Do what is due; what nobody answered to stays due."""
        now = self._clock()
        for key, attempt in self._register.attempts.items():
            self._due.extend((key, deed) for deed in attempt.due(now))
        refused: list[tuple[AttemptId, Deed]] = []
        while self._due:
            key, deed = self._due[0]
            if not self._tried(key, partial(self._end_or_send, key, deed)):
                refused.append((key, deed))
            self._due.popleft()
        self._due.extend(refused)

    def _end_or_send(self, key: AttemptId, deed: Deed) -> None:
        pods = self._register.last.get(key, {}).values()
        if isinstance(deed, End):
            self._logs.keep(key, pods)
        self._deeds.tell_of_end(pods, deed, is_final=self._is_final(key))
        self._deeds.do(pods, deed)

    def _tried(self, key: AttemptId, do: Callable[[], None]) -> bool:
        """Was it taken? What is refused of one attempt must not keep the others waiting."""
        try:
            do()
        except KubernetesRefusedError as error:
            log.warning("cluster %s refuses job %s.%s: %s", self._link.name, *key, error)
            return False
        return True

    def _is_final(self, key: AttemptId) -> bool:
        """Will the job not be tried again, as far as we are asked?"""
        stop = self._register.attempts[key].note.stop
        return stop is None or not isinstance(stop.why, Preempted | Requeued)

    def _finish(self, key: AttemptId, events: Iterable[Event]) -> None:
        """Tell what happened, and note an end before it is told."""
        found = tuple(events)
        if found:
            self._keep(self._register.attempts[key])
        if any(isinstance(event, JobEnded) for event in found):
            self._register.devices.pop(key, None)
        self._news.extend(found)

    def _keep(self, attempt: Attempt) -> None:
        self._notes.keep(attempt.note)

    def _begun(self, run: Run) -> Note:
        mark = self._register.mark((run.job.id, run.allocation.attempt))
        return note_of_run(run, self._link.manner, mark, self._clock())


def _uid_of(note: Note, rank: int) -> str:
    """Names that others chose may be given again; those that we make are never."""
    return note.parts[rank] if note.names else ""
