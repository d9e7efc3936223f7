"""Shows the jobs of other doors as pods, while this process leads, and explains all that wait.

Such a pod follows its job and never the other way round, but for one thing:
who deletes it cancels the job, if they may.
"""

import logging
from collections.abc import Callable, Iterable, Iterator
from itertools import islice

from muster.controller.messages import Caller, JobQuery, JobView, NotYourJob
from muster.controller.use_cases.objects import ObjectChangedError
from muster.controller.use_cases.service import Service
from muster.controller.world.transaction import Change, Transaction
from muster.doors.kubernetes.objects.errors import StatusError, forbidden
from muster.doors.kubernetes.objects.kinds import POD
from muster.doors.kubernetes.objects.value import (
    JsonObject,
    labels_of,
    metadata,
    name_of,
    namespace_of,
    uid_of,
)
from muster.doors.kubernetes.pods.pod_of import job_of_pod, pods_of
from muster.doors.kubernetes.pods.queues_of import namespace_of_queue
from muster.doors.kubernetes.pods.status_of import SeenPod
from muster.doors.kubernetes.serve.access import ITSELF
from muster.doors.kubernetes.serve.call import Target, Writing
from muster.doors.kubernetes.serve.explaining import Explainer
from muster.doors.kubernetes.serve.leading import LeaderThread
from muster.doors.kubernetes.serve.pod_jobs import POD_LABEL
from muster.doors.kubernetes.serve.served import ServedKinds
from muster.doors.kubernetes.serve.writing import Author, ObjectWriter, Request
from muster.model.errors import ForbiddenError, MusterError, UnknownError
from muster.model.job import FINAL, Job, JobState
from muster.model.value import MINUTE, SECOND, Instant, JobId
from muster.stores.base import Batch

log = logging.getLogger("muster.kubernetes")

MOST_PODS = 2_000
"""How many are shown. Whoever has more jobs lists them with commands made for that."""
SHOWN_AFTER_END = 5 * MINUTE
"""As long as Slurm remembers a job that is over."""
LOOKS_AGAIN = 2 * SECOND
HERE = "127.0.0.1"
REFRESHED = 50
"""Of those that wait, how many are looked at each time: why changes with plans alone."""


class JobPods:
    """One thread that writes pods for jobs that changed; it may lag behind, and nobody waits."""

    def __init__(
        self,
        service: Service,
        writer: ObjectWriter,
        kinds: ServedKinds,
        clock: Callable[[], Instant],
    ) -> None:
        self._service = service
        self._writer = writer
        self._view = writer.view
        self._kinds = kinds
        self._clock = clock
        self._explainer = Explainer(service, writer, kinds, clock)
        self._thread = LeaderThread("job pods", self._run)
        self._changed: dict[JobId, None] = {}
        self._shown: dict[tuple[str, str], JobId] = {}
        self._dismissed: set[JobId] = set()
        self._over: dict[JobId, Instant] = {}
        self._looked_at = Instant(0)
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
            for allocation in batch.allocations:
                self._remember(self._service.queries.jobs.live(allocation.job))
            for kept in batch.objects:
                # Somebody deletes it, maybe after its job has ended.
                shown = self._shown.get((kept.key.namespace, kept.key.name))
                if shown is not None and kept.key.resource == POD.plural:
                    self._changed[shown] = None
            for gone in batch.removed:
                job = self._shown.pop((gone.key.namespace, gone.key.name), None)
                if job is not None and gone.key.resource == POD.plural:
                    self._dismissed.add(job)
            if self._changed:
                self._thread.news.notify()

    def _remember(self, job: Job | None) -> None:
        if job is not None and not is_of_this_door(job):
            self._changed[job.id] = None

    def _run(self) -> None:
        self._find()
        while self._thread.goes_on(lambda: self._changed, LOOKS_AGAIN / SECOND):
            with self._thread.news:
                jobs, self._changed = list(self._changed), {}
            self._keep_all(jobs)
            if self._clock() >= self._looked_at + LOOKS_AGAIN:
                self._looked_at = self._clock()
                self._look_again()

    def _keep_all(self, jobs: Iterable[JobId]) -> None:
        for job in jobs:
            try:
                self._keep(job)
            except ObjectChangedError:
                with self._thread.news:
                    self._changed[job] = None
            except (MusterError, StatusError) as error:
                log.warning("the pod of job %s could not be kept: %s", job, error)

    def _look_again(self) -> None:
        """At what changes without a commit: why jobs wait, and how long others are over."""
        waiting = dict(islice(self._placed(JobState.PENDING), MOST_PODS))
        own = [job for job, place in waiting.items() if self._shown.get(place) == job]
        self._keep_all((*own[:REFRESHED], *self._outlived()))
        self._explainer.explain_waiting(waiting)
        self._explainer.diagnose(dict(islice(self._placed(JobState.RUNNING), MOST_PODS)))

    def _find(self) -> None:
        """Jobs that live, and those whose pods were left by who led before."""
        for pod in self._view.objects(POD):
            job = job_of_pod(pod)
            if job is not None:
                with self._thread.news:
                    self._shown[namespace_of(pod), name_of(pod)] = job
                    self._changed[job] = None
        for job in self._service.queries.jobs.matching(ITSELF, JobQuery()):
            with self._thread.news:
                self._remember(job)

    def _outlived(self) -> list[JobId]:
        """Jobs that are over for so long that nobody looks for their pods."""
        now = self._clock()
        found = [job for job, since in self._over.items() if now >= since + SHOWN_AFTER_END]
        for job in found:
            del self._over[job]
        return found

    def _placed(self, state: JobState) -> Iterator[tuple[JobId, tuple[str, str]]]:
        """Jobs of all doors in this state, each with the place of its first pod."""
        with self._thread.news:
            shown = list(self._shown.items())
        own = {job: place for place, job in reversed(shown)}
        wanted = JobQuery(states=(state,))
        for job in self._service.queries.jobs.matching(ITSELF, wanted):
            namespace, slash, name = job.spec.labels.get(POD_LABEL, "").partition("/")
            place = (namespace, name) if slash else own.get(job.id)
            if place is not None:
                yield job.id, place

    def _keep(self, job: JobId) -> None:
        view = self._job(job)
        if view is None or job in self._dismissed:
            self._remove_all(job)
            return
        now = self._clock()
        if view.job.state in FINAL:
            if (view.ended_at or now) + SHOWN_AFTER_END <= now:
                self._remove_all(job)
                return
            self._over.setdefault(job, view.ended_at or now)
        why = "" if view.wait is None else view.wait.why.sentence(view.job.spec, now)
        seen = SeenPod(view=view, why_pending=why, host=HERE, now=now)
        queues = self._service.queries.site().queues
        namespace = namespace_of_queue(view.job.spec.queue, queues)
        for pod in pods_of(seen, namespace):
            self._show(job, pod, is_over=view.job.state in FINAL)

    def _show(self, job: JobId, wanted: JsonObject, *, is_over: bool) -> None:
        place = (namespace_of(wanted), name_of(wanted))
        kept = self._view.find(POD, *place)
        if kept is None:
            if place not in self._shown and len(self._shown) < MOST_PODS:
                with self._thread.news:
                    self._shown[place] = job
                self._writer.make_as_is(self._request(wanted), wanted)
            return
        old = self._view.read(kept)
        if uid_of(old) != uid_of(wanted):
            # Somebody gave a pod of their own this name.
            return
        if is_over and "deletionTimestamp" in metadata(old):
            self._writer.remove(self._request(old), kept)
            return
        new = self._after(old, wanted)
        if new != old:
            self._writer.put_as_is(self._request(new), kept, new)

    def _after(self, old: JsonObject, wanted: JsonObject) -> JsonObject:
        """What people wrote on it stays; times of conditions that are as they were stay too."""
        meta = {**metadata(old), "labels": {**labels_of(old), **labels_of(wanted)}}
        same = {
            (each["type"], each["status"]): each.get("lastTransitionTime")
            for each in old.get("status", {}).get("conditions", ())
        }
        status = dict(wanted["status"])
        status["conditions"] = [
            {
                **each,
                "lastTransitionTime": same.get((each["type"], each["status"]))
                or each.get("lastTransitionTime"),
            }
            for each in status.get("conditions", ())
        ]
        return {**old, "metadata": meta, "spec": wanted["spec"], "status": status}

    def _remove_all(self, job: JobId) -> None:
        for place in [place for place, of in self._shown.items() if of == job]:
            kept = self._view.find(POD, *place)
            if kept is not None:
                pod = self._view.read(kept)
                if job_of_pod(pod) == job:
                    self._writer.remove(self._request(pod), kept)
            with self._thread.news:
                self._shown.pop(place, None)

    def _job(self, job: JobId) -> JobView | None:
        try:
            return self._service.queries.jobs.detail(ITSELF, job).view
        except UnknownError:
            return None

    def _request(self, pod: JsonObject) -> Request:
        return Request(
            target=Target(kind=POD, namespace=namespace_of(pod), name=name_of(pod)),
            writing=Writing(manager="muster"),
            author=Author(caller=ITSELF),
            blueprint=self._kinds.blueprint(POD),
        )


def is_of_this_door(job: Job) -> bool:
    """Is it the job of pods that are kept already?"""
    return any(label.startswith("kubernetes/") for label in job.spec.labels)


def cancel_for(service: Service, pod: JsonObject, by: Caller) -> None:
    """Who deletes the pod of a job of another door cancels the job; StatusError if they may not."""
    job = job_of_pod(pod)
    if job is None or not service.queries.jobs.is_live(job):
        return
    try:
        why = service.cancel(by, (job,)).result().failed.get(job)
    except ForbiddenError as error:
        raise forbidden(POD, name_of(pod), str(error)) from error
    if isinstance(why, NotYourJob):
        raise forbidden(POD, name_of(pod), f"job {job} is somebody else's")
