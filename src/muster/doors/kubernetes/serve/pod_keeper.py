"""Keeps pods, nodes and namespaces what jobs, nodes and queues are, while this process leads.

What happened to a job is written into its pod; a pod that is deleted takes its job with it.
"""

import logging
import platform
from collections.abc import Callable, Iterable, Mapping

from muster.controller.messages import JobQuery, JobView
from muster.controller.use_cases.objects import ObjectChangedError
from muster.controller.use_cases.service import Service
from muster.controller.world.transaction import Change, Transaction
from muster.doors.kubernetes.foreign.kinds import (
    CLUSTER_QUEUE,
    KAI_QUEUE,
    LOCAL_QUEUE,
    OF_KUEUE,
    VOLCANO_QUEUE,
)
from muster.doors.kubernetes.foreign.queues import queue_status
from muster.doors.kubernetes.importing.kueue import cluster_queue_paths, local_queue_paths
from muster.doors.kubernetes.importing.volcano import queue_paths
from muster.doors.kubernetes.objects.errors import StatusError
from muster.doors.kubernetes.objects.kinds import EVENT, NAMESPACE, NODE, POD, PRIORITY_CLASS
from muster.doors.kubernetes.objects.value import (
    JsonObject,
    Kind,
    annotations_of,
    copied,
    items,
    metadata,
    name_of,
    namespace_of,
    part,
    uid_of,
)
from muster.doors.kubernetes.pods import events_of
from muster.doors.kubernetes.pods.gang_marks import GANG_JOB
from muster.doors.kubernetes.pods.job_of import is_held_back
from muster.doors.kubernetes.pods.nodes_of import GpuAlert, Machine, SeenNode, node_of
from muster.doors.kubernetes.pods.pod_of import job_of_pod
from muster.doors.kubernetes.pods.queues_of import (
    CLASS_ANNOTATION,
    QUEUE_ANNOTATION,
    namespaces,
    priority_class_object,
    priority_classes,
)
from muster.doors.kubernetes.pods.refreshed import refreshed
from muster.doors.kubernetes.pods.rejected import rejected
from muster.doors.kubernetes.pods.status_of import SeenPod, status_of, unformed_status
from muster.doors.kubernetes.pods.unschedulable import Around, message
from muster.doors.kubernetes.serve.beginning import MUSTER
from muster.doors.kubernetes.serve.call import Target, Writing
from muster.doors.kubernetes.serve.counting import OVER
from muster.doors.kubernetes.serve.deleting import Deleter, Deletion
from muster.doors.kubernetes.serve.leading import LeaderThread
from muster.doors.kubernetes.serve.pod_facts import Place
from muster.doors.kubernetes.serve.pod_gangs import PodGangs, Waiting
from muster.doors.kubernetes.serve.pod_jobs import POD_LABEL, ROOT, UID_LABEL, PodJob, PodJobs
from muster.doors.kubernetes.serve.served import ServedKinds
from muster.doors.kubernetes.serve.writing import ObjectWriter, Request
from muster.model.errors import MusterError, StoreError, UnknownError
from muster.model.event import PodSeen
from muster.model.job import FINAL, WAITING, Job, JobState, Preempted, TimedOut
from muster.model.kept_object import KeptObject
from muster.model.pod import PodStatus
from muster.model.value import Instant, JobId
from muster.stores.base import Batch

log = logging.getLogger("muster.kubernetes")

LOOKS_AGAIN_MS = 2_000
"""So often everything is looked at: why a pod waits changes with plans, of which no commit tells.

In between only pods are looked at of which something was told.
"""

MOST_AT_ONCE = 300
"""So many that wait are looked at each time; where there are more, they take turns."""

HERE = "127.0.0.1"
OF_CLASSES = ("value", "description", "preemptionPolicy")
"""What a PriorityClass tells of its job class."""

ASKS_AGAIN_MS = 10_000
"""So long a pod of a gang that was told to end may take before it is told again."""


class PodKeeper:
    """One thread that looks at what changed, and at what waits every other second."""

    def __init__(
        self,
        service: Service,
        writer: ObjectWriter,
        kinds: ServedKinds,
        clock: Callable[[], Instant],
        gangs: PodGangs,
    ) -> None:
        self._service = service
        self._gangs = gangs
        self._writer = writer
        self._view = writer.view
        self._kinds = kinds
        self._clock = clock
        self._thread = LeaderThread("pods", self._run)
        self._changed: dict[Place, None] = {}
        # What could not be kept, for another reason than that somebody was quicker.
        self._again: dict[Place, None] = {}
        self._beside = {
            "nodes": self._keep_nodes,
            "namespaces": self._keep_namespaces,
            "priority classes": self._keep_priority_classes,
            "queues": self._keep_queues,
        }
        self._jobs = PodJobs(service.queries)
        self._members: dict[str, tuple[Place, ...]] = {}
        # By where the pod is, as long as it is there: its uid, and what was asked or told.
        self._ending: dict[Place, tuple[str, Instant]] = {}
        self._told: dict[Place, set[tuple[str, str, int]]] = {}
        self._looked_at = Instant(0)
        self._looked_up_to: Place = ("", "")
        self._machine = Machine(
            address=HERE, kernel=platform.release(), os_image=_os_name(), runtime="podman://4"
        )
        self._leave = service.queries.objects.follow(self._note)

    def begin(self, transaction: Transaction) -> None:  # noqa: ARG002 - as companions are
        """This process leads from now on."""
        self._thread.begin()

    def rest(self) -> None:
        """Another process leads."""
        self._thread.rest()

    def close(self) -> None:
        """Finish what is under way, and stop."""
        self._leave()
        self._thread.close()

    def _note(self, batch: Batch, _: tuple[Change, ...]) -> None:
        """Called from the thread that commits."""
        with self._thread.news:
            for job in (*batch.jobs, *(each.job for each in batch.ended)):
                self._remember(job)
            for event in batch.events:
                if isinstance(event, PodSeen):
                    self._remember(self._service.queries.jobs.live(event.job))
            for allocation in batch.allocations:
                self._remember(self._service.queries.jobs.live(allocation.job))
            for kept in (*batch.objects, *batch.removed):
                if (kept.key.group, kept.key.resource) == ("", "pods"):
                    self._changed[kept.key.namespace, kept.key.name] = None
            if self._changed:
                self._thread.news.notify()

    def _remember(self, job: Job | None) -> None:
        if job is None or UID_LABEL not in job.spec.labels:
            return
        self._jobs.remember(job)
        place = _place(job)
        places = self._members.get(job.spec.labels[UID_LABEL], ()) if place is None else (place,)
        self._changed |= dict.fromkeys(places)

    def _run(self) -> None:
        self._find_jobs()
        while self._thread.goes_on(lambda: self._changed, self._left_s()):
            with self._thread.news:
                places, self._changed = list(self._changed), {}
            self._look(places)

    def _look(self, places: list[Place]) -> None:
        now = self._clock()
        is_due = now - self._looked_at >= LOOKS_AGAIN_MS
        if is_due:
            self._looked_at = now
            again, self._again = list(self._again), {}
            places = [*places, *again, *self._pending()]
            for what, keep in self._beside.items():
                _try(what, keep)
        if is_due or any(map(self._is_of_gang, places)):
            _try("gangs", self._keep_gangs)
        left = dict.fromkeys(places)
        try:
            for place in tuple(left):
                self._try_to_keep(place)
                del left[place]
        except StoreError as error:
            # Then no other pod can be written either.
            log.warning("pods could not be kept: %s", error)
            self._again |= left

    def _try_to_keep(self, place: Place) -> None:
        """Nobody tells again what happened to a pod: what could not be written stays to be done."""
        try:
            self._keep(place)
        except ObjectChangedError:
            with self._thread.news:
                self._changed[place] = None
        except StoreError:
            raise
        except MusterError as error:
            log.warning("pod %s/%s could not be kept: %s", *place, error)
            self._again[place] = None

    def _is_of_gang(self, place: Place) -> bool:
        pod = self._view.get(POD, *place)
        return pod is not None and self._gangs.is_one_of(pod)

    def _left_s(self) -> float:
        """Until everything is looked at."""
        left_ms = self._looked_at + LOOKS_AGAIN_MS - self._clock()
        return min(max(0, left_ms), LOOKS_AGAIN_MS) / 1_000

    def _find_jobs(self) -> None:
        """What there is to look at, also of whoever led before and could not write it any more."""
        self._find_members()
        unended = [
            (kept.key.namespace, kept.key.name)
            for kept, facts in self._gangs.pods.all()
            if not facts.is_over or facts.is_leaving
        ]
        with self._thread.news:
            self._changed |= dict.fromkeys(unended)
        for job in self._service.queries.jobs.matching(ROOT, JobQuery()):
            with self._thread.news:
                self._remember(job)

    def _pending(self) -> list[Place]:
        """Pods that wait, in turn: their job may have moved on, or waits for another reason."""
        found = [
            (kept.key.namespace, kept.key.name)
            for kept, facts in self._gangs.pods.all()
            if facts.is_waiting
        ]
        later = [place for place in found if place > self._looked_up_to]
        taken = [*later, *found[: len(found) - len(later)]][:MOST_AT_ONCE]
        self._looked_up_to = taken[-1] if len(found) > MOST_AT_ONCE else ("", "")
        return taken

    def _find_members(self) -> None:
        """Which pods are together."""
        found: dict[str, list[Place]] = {}
        for kept, facts in self._gangs.pods.all():
            if facts.gang_job:
                found.setdefault(facts.gang_job, []).append((kept.key.namespace, kept.key.name))
        with self._thread.news:
            self._members = {uid: tuple(places) for uid, places in found.items()}

    def _keep_gangs(self) -> None:
        waiting = self._gangs.look()
        self._find_members()
        for each in waiting:
            self._write_waiting(each)

    def _keep_queues(self) -> None:
        """Queues of Kueue say what waits and runs in them."""
        objects = [each for kind in OF_KUEUE for each in self._view.objects(kind)]
        above, below = cluster_queue_paths(objects), local_queue_paths(objects)
        for each in objects:
            if each.get("kind") not in ("ClusterQueue", "LocalQueue"):
                continue
            own = namespace_of(each), name_of(each)
            path = below.get(own) if own[0] else above.get(f"queue/{own[1]}")
            use = None if path is None else self._service.queries.queues.find(path)
            kind = LOCAL_QUEUE if own[0] else CLUSTER_QUEUE
            kept = self._view.find(kind, *own)
            new = {**each, "status": queue_status(each, use, self._clock())}
            if kept is not None and new != each:
                self._writer.put_as_is(self._request(kind, new), kept, new)

        for kind in (VOLCANO_QUEUE, KAI_QUEUE):
            self._keep_named_queues(kind)

    def _keep_named_queues(self, kind: Kind) -> None:
        """Queues of Volcano and of KAI say the same."""
        objects = self._view.objects(kind)
        for name, path in queue_paths(objects).items():
            use = self._service.queries.queues.find(path)
            kept = self._view.find(kind, "", name)
            if kept is None or use is None:
                continue
            old = self._view.read(kept)
            told = {"state": "Open", "pending": use.waiting, "running": use.running}
            new = {**old, "status": {**part(old, "status"), **told}}
            if new != old:
                self._writer.put_as_is(self._request(kind, new), kept, new)

    def _write_waiting(self, waiting: Waiting) -> None:
        """The pod has no job yet, and says why."""
        pod, now = waiting.pod, self._clock()
        kept = self._view.find(POD, namespace_of(pod), name_of(pod))
        if kept is None or self._view.read(kept) != pod:
            return
        new = {**pod, "status": unformed_status(pod, waiting.why, now)}
        self._say(new, events_of.waits(waiting.why, now, now))
        if new != pod:
            self._writer.put_as_is(self._request(POD, new), kept, new)

    def _keep(self, place: Place) -> None:
        kept = self._view.find(POD, *place)
        if kept is None:
            self._told.pop(place, None)
            self._ending.pop(place, None)
            self._cancel_orphans(place)
            return
        pod = self._view.read(kept)
        found = self._jobs.of(pod)
        view = None if found is None else self._view_of(found)
        if found is None or view is None:
            # That of a job of another door goes when the job has ended: see `job_pods`.
            if "deletionTimestamp" in metadata(pod) and job_of_pod(pod) is None:
                self._remove(pod, kept)
            elif (why := rejected(pod)) is not None:
                self._write_news(pod, [events_of.rejected(pod, why.reason, why.text)])
            return
        if "deletionTimestamp" in metadata(pod):
            is_over = view.job.state in FINAL
            if is_over or self._is_done(found):
                # Whoever watches sees how it ended before it is gone, or waits for others.
                self._write(pod, kept, view, found)
                last = self._view.find(POD, *place)
                if last is not None:
                    self._remove(pod, last)
                return
            self._end(pod, found, view.job)
        elif view.job.state is JobState.STOPPING and isinstance(view.job.why, Preempted):
            self._make_room(pod, view, view.job.why)
            return
        self._write(pod, kept, view, found)

    def _end(self, pod: JsonObject, found: PodJob, job: Job) -> None:
        """A pod that is deleted takes its job with it; of a gang, once all are deleted."""
        mates = self._mates(pod) if found.is_gang else []
        if not mates or job.state in WAITING:
            self._service.cancel(ROOT, (found.job,)).result()
            for each in mates:
                self._jobs.forget(each)
            self._gangs.dissolve(mates)
            return
        place, now = (namespace_of(pod), name_of(pod)), self._clock()
        uid, asked = self._ending.get(place, ("", Instant(0)))
        if uid != uid_of(pod) or now - asked > ASKS_AGAIN_MS:
            self._ending[place] = (uid_of(pod), now)
            self._service.stop_task(ROOT, found.job, found.task).result()

    def _is_done(self, found: PodJob) -> bool:
        """Has this one of a gang ended, while others go on?"""
        status = self._service.queries.jobs.pod_status(found.job, found.task)
        return found.is_gang and status is not None and status.over

    def _mates(self, pod: JsonObject) -> list[JsonObject]:
        """The others of its gang that nobody deletes, or that ended by themselves."""
        places = self._members.get(annotations_of(pod).get(GANG_JOB, ""), ())
        others = [self._view.get(POD, *place) for place in places]
        return [
            each
            for each in others
            if each is not None
            and uid_of(each) != uid_of(pod)
            and (
                "deletionTimestamp" not in metadata(each)
                or part(each, "status").get("phase") in OVER
            )
        ]

    def _make_room(self, pod: JsonObject, view: JobView, why: Preempted) -> None:
        """A pod that is preempted is deleted: whoever wants another one creates it."""
        other = self._service.queries.jobs.live(why.by)
        uid = "" if other is None else other.spec.labels.get(UID_LABEL, "")
        where = "" if view.allocation is None else str(view.allocation.placements[0].node)
        event = events_of.preempted(f"pod {uid}" if uid else f"job {why.by}", where, self._clock())
        self._write_event(events_of.event_object(pod, event))
        Deleter(self._writer).delete(self._request(POD, pod), Deletion(), self._clock())

    def _cancel_orphans(self, place: Place) -> None:
        """A pod that is gone has no job."""
        live = self._service.queries.jobs.matching(ROOT, JobQuery())
        gone = [job.id for job in live if _place(job) == place]
        if gone and self._view.find(POD, *place) is None:
            self._service.cancel(ROOT, tuple(gone)).result()

    def _view_of(self, found: PodJob) -> JobView | None:
        try:
            return self._service.queries.jobs.detail(ROOT, found.job).view
        except UnknownError:
            return None

    def _write(self, pod: JsonObject, kept: KeptObject, view: JobView, found: PodJob) -> None:
        now = self._clock()
        status = self._service.queries.jobs.pod_status(view.job.id, found.task)
        if status is None and view.job.state not in FINAL:
            if items(pod, "status", "containerStatuses"):
                # Known to who led before: the backend will say it again.
                return
            # A job runs a while before its first container does.
            status = PodStatus()
        seen = SeenPod(
            view=view,
            generation=int(metadata(pod).get("generation") or 1),
            task=found.task,
            is_gang=found.is_gang,
            status=status,
            why_pending=self._why(pod, view, now),
            host=status.host_ip if status is not None and status.host_ip else HERE,
            is_own=True,
            now=now,
        )
        new = copied(pod)
        if seen.node is not None:
            new["spec"]["nodeName"] = str(seen.node)
        new["status"] = status_of(pod, seen)
        self._tell(new, seen)
        if new != pod:
            self._writer.put_as_is(self._request(POD, new), kept, new)

    def _why(self, pod: JsonObject, view: JobView, now: Instant) -> str:
        if view.wait is None:
            return ""
        spec, fleet = view.job.spec, self._service.queries.nodes.fleet()
        has_rules = any(each.where.near or each.where.apart for each in spec.groups)
        around = Around(
            fleet=fleet,
            labels=self._labels(fleet.allocations) if has_rules else {},
            preempts=part(pod, "spec").get("preemptionPolicy") != "Never",
            is_clearing=view.job.claim is not None,
        )
        return message(spec, view.wait.why, around, now)

    def _labels(self, jobs: Iterable[JobId]) -> dict[JobId, Mapping[str, str]]:
        found = {each: self._service.queries.jobs.live(each) for each in jobs}
        return {key: job.spec.labels for key, job in found.items() if job is not None}

    def _tell(self, pod: JsonObject, seen: SeenPod) -> None:
        """Events: where it was put, why it waits, what happened in it."""
        node, view = seen.node, seen.view
        told: list[events_of.PodEvent] = []
        if view.allocation is not None and node is not None:
            told.append(events_of.scheduled(pod, node, view.allocation.placed_at))
        elif seen.why_pending and not is_held_back(part(pod, "spec")):
            told.append(events_of.waits(seen.why_pending, seen.now, seen.now))
        if isinstance(view.job.ended_for, TimedOut) and view.ended_at is not None:
            told.append(events_of.too_long(view.ended_at))
        if seen.status is not None:
            told += [events_of.noted(each, node or "") for each in seen.status.notes]
        self._write_news(pod, told)

    def _write_news(self, pod: JsonObject, told: Iterable[events_of.PodEvent]) -> None:
        for event in told:
            self._say(pod, event)

    def _say(self, pod: JsonObject, event: events_of.PodEvent) -> None:
        obj = events_of.event_object(pod, event)
        mark = (uid_of(pod), name_of(obj), event.count)
        told = self._told.setdefault((namespace_of(pod), name_of(pod)), set())
        if mark not in told:
            told.add(mark)
            self._write_event(obj)

    def _write_event(self, event: JsonObject) -> None:
        request = self._request(EVENT, event)

        def mutate(old: JsonObject | None) -> JsonObject:
            if old is None:
                return event
            kept = {name: event[name] for name in ("count", "lastTimestamp") if name in event}
            return {**old, **kept}

        try:
            self._writer.change(request, mutate)
        except StatusError as error:
            # A namespace that is ending takes none.
            log.debug("an event was not kept: %s", error)

    def _remove(self, pod: JsonObject, kept: KeptObject) -> None:
        if not metadata(pod).get("finalizers"):
            self._writer.remove(self._request(POD, pod), kept)

    def _keep_nodes(self) -> None:
        # Looked at before the fleet: what is written then is never older than what is told.
        held = {name_of(each): each for each in self._view.objects(NODE)}
        fleet, now = self._service.queries.nodes.fleet(), self._clock()
        alerts = self._gpu_alerts()
        for name, node in sorted(fleet.nodes.items()):
            seen = SeenNode(
                node=node,
                pool=fleet.pools.get(node.pool),
                machine=self._machine,
                since=now,
                now=now,
                alerts=None if alerts is None else tuple(alerts.get(name, ())),
            )
            self._keep_object(NODE, node_of(seen, held.get(name, {})))
        for gone in self._view.objects(NODE):
            kept = self._view.find(NODE, "", name_of(gone))
            if kept is not None and name_of(gone) not in fleet.nodes:
                self._writer.remove(self._request(NODE, gone), kept)

    def _gpu_alerts(self) -> Mapping[str, list[GpuAlert]] | None:
        """What fires of GPUs, by their nodes."""
        firing = self._service.queries.alerts.firing()
        if firing is None:
            return None
        found: dict[str, list[GpuAlert]] = {}
        for each in firing:
            gpu = GpuAlert(gpu=each.label("gpu"), name=each.name)
            found.setdefault(each.label("Hostname"), []).append(gpu)
        return found

    def _keep_namespaces(self) -> None:
        site = self._service.queries.site()
        for name, path in namespaces(site.queues).items():
            if self._view.find(NAMESPACE, "", name) is None:
                given = {"metadata": {"name": name, "annotations": {QUEUE_ANNOTATION: str(path)}}}
                self._create(NAMESPACE, given)

    def _keep_priority_classes(self) -> None:
        """Each job class of the rules is a PriorityClass."""
        classes = self._service.queries.site().classes
        wanted = {
            name: priority_class_object(classes[each], self._clock())
            for name, each in priority_classes(classes).items()
        }
        held = {name_of(each): each for each in self._view.objects(PRIORITY_CLASS)}
        for name in wanted.keys() - held.keys():
            self._create(PRIORITY_CLASS, wanted[name])
        for name, obj in held.items():
            kept = self._view.find(PRIORITY_CLASS, "", name)
            if CLASS_ANNOTATION not in annotations_of(obj) or kept is None:
                continue
            if name not in wanted:
                self._writer.remove(self._request(PRIORITY_CLASS, obj), kept)
            elif any(obj.get(each) != wanted[name][each] for each in OF_CLASSES):
                new = {**copied(obj), **{each: wanted[name][each] for each in OF_CLASSES}}
                self._writer.put_as_is(self._request(PRIORITY_CLASS, obj), kept, new)

    def _keep_object(self, kind: Kind, wanted: JsonObject) -> None:
        kept = self._view.find(kind, namespace_of(wanted), name_of(wanted))
        if kept is None:
            self._create(kind, wanted)
            return
        old = self._view.read(kept)
        new = refreshed(old, wanted)
        if new != old:
            self._writer.put_as_is(self._request(kind, new), kept, new)

    def _create(self, kind: Kind, obj: JsonObject) -> None:
        try:
            self._writer.create(self._request(kind, obj), obj)
        except StatusError as error:
            log.warning("%s %s was not made: %s", kind.kind, name_of(obj), error)

    def _request(self, kind: Kind, obj: JsonObject) -> Request:
        return Request(
            target=Target(kind=kind, namespace=namespace_of(obj), name=name_of(obj)),
            writing=Writing(manager="kubelet"),
            author=MUSTER,
            blueprint=self._kinds.blueprint(kind),
        )


def _try(what: str, keep: Callable[[], None]) -> None:
    """What could not be kept is looked at again with everything."""
    try:
        keep()
    except MusterError as error:
        log.warning("%s could not be kept: %s", what, error)


def _place(job: Job | None) -> Place | None:
    label = "" if job is None else job.spec.labels.get(POD_LABEL, "")
    namespace, slash, name = label.partition("/")
    return (namespace, name) if slash else None


def _os_name() -> str:
    try:
        return platform.freedesktop_os_release().get("PRETTY_NAME", "Linux")
    except OSError:
        return "Linux"
