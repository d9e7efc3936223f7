"""Which job a pod is, and which task of it."""

from muster.controller.messages import Caller, JobQuery
from muster.controller.queries.queries import Queries
from muster.doors.kubernetes.objects.value import JsonObject, annotations_of, uid_of
from muster.doors.kubernetes.pods.gang_marks import GANG_JOB
from muster.doors.kubernetes.serve.access import DOOR
from muster.model.errors import UnknownError
from muster.model.job import Job
from muster.model.value import JobId, UserName, Value

ROOT = Caller(user=UserName("muster"), door=DOOR, root=True)

POD_LABEL = "kubernetes/pod"
GANG_LABEL = "kubernetes/gang"
UID_LABEL = "kubernetes/uid"
"""Labels of jobs: which pod it is, or which gang of pods."""

MOST_KNOWN = 50_000


class PodJob(Value):
    """A task of a job, which a pod is. is_gang: there are others."""

    job: JobId
    task: int = 0
    is_gang: bool = False


class PodJobs:
    """Looks jobs up by what pods say, and believes them only where the job says so too."""

    def __init__(self, queries: Queries) -> None:
        self._queries = queries
        self._ids: dict[str, JobId] = {}
        self._known: dict[str, PodJob] = {}

    def remember(self, job: Job) -> None:
        """It may be asked for."""
        uid = job.spec.labels.get(UID_LABEL)
        if uid:
            self._ids[uid] = job.id
            _bound(self._ids)

    def forget(self, pod: JsonObject) -> None:
        """It is no part of its job any more."""
        self._known.pop(uid_of(pod), None)

    def of(self, pod: JsonObject) -> PodJob | None:
        """The job of a pod; None where it has none yet, or none that is known any more."""
        uid = uid_of(pod)
        known = self._known.get(uid)
        if known is None:
            known = self._found(uid, uid) or self._found(annotations_of(pod).get(GANG_JOB), uid)
            if known is not None:
                self._known[uid] = known
                _bound(self._known)
        return known

    def _found(self, key: str | None, uid: str) -> PodJob | None:
        """The task with this uid, of the job that is known by the key."""
        id = None if key is None else self._id(key)
        job = None if id is None else self._job(id)
        if job is None:
            return None
        if POD_LABEL in job.spec.labels:
            return PodJob(job=job.id) if key == uid else None
        launch = self._queries.jobs.whole_launch(job)
        pods = () if launch is None else launch.pods
        ranks = [rank for rank, each in enumerate(pods) if each.uid == uid]
        return PodJob(job=job.id, task=ranks[0], is_gang=True) if ranks else None

    def _id(self, key: str) -> JobId | None:
        if key in self._ids:
            return self._ids[key]
        live = self._queries.jobs.matching(ROOT, JobQuery())
        found = next((job.id for job in live if job.spec.labels.get(UID_LABEL) == key), None)
        return found or self._queries.jobs.pod_job(key)

    def _job(self, id: JobId) -> Job | None:
        try:
            return self._queries.jobs.live(id) or self._queries.jobs.detail(ROOT, id).view.job
        except UnknownError:
            return None


def _bound(known: "dict[str, JobId] | dict[str, PodJob]") -> None:
    while len(known) > MOST_KNOWN:
        known.pop(next(iter(known)))
