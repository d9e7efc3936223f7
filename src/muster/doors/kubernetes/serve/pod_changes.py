"""What happens to its job when a pod is changed, in the transaction that writes the pod."""

from collections.abc import Callable
from functools import partial

from muster.controller.messages import Caller
from muster.controller.use_cases.service import Service
from muster.controller.world.transaction import Transaction
from muster.doors.kubernetes.objects.errors import forbidden
from muster.doors.kubernetes.objects.kinds import POD
from muster.doors.kubernetes.objects.value import JsonObject, annotations_of, metadata, name_of
from muster.doors.kubernetes.pods.changes_of import (
    asked_of_us,
    other_images,
    with_pods_own,
    with_what_differs,
)
from muster.doors.kubernetes.pods.job_of import WARNINGS
from muster.doors.kubernetes.serve.pod_jobs import PodJob, PodJobs
from muster.doors.request.parse import Wanted
from muster.lifecycle.step import UNSTARTED
from muster.model.errors import ForbiddenError, RefusedError, UnknownError
from muster.model.job import JobSpec
from muster.model.launch import Launch
from muster.model.value import Value

Then = Callable[[Transaction], None]

KEEPS_ITS_IMAGE = "{} has no effect: what runs keeps its image; delete the pod and create it again"
OF_GANG = "the pods of a gang are one job: delete them and create them again"
RUNS = "its job has started: see what `muster update` can still change, or create the pod again"


class _Revision(Value):
    """A change of a job. launch: what it runs from now on; None: as before.

    releases: it was held back, and is not any more.
    """

    job: PodJob
    change: Callable[[JobSpec], JobSpec]
    launch: Launch | None = None
    releases: bool = False


class PodChanges:
    """Says what follows from changes of pods. wanted: reads the job that a pod is."""

    def __init__(
        self, service: Service, jobs: PodJobs, wanted: Callable[[JsonObject], Wanted]
    ) -> None:
        self._service = service
        self._wanted = wanted
        self._jobs = jobs

    def following(self, old: JsonObject, new: JsonObject, caller: Caller) -> Then | None:
        """What follows; StatusError where it cannot be. The new pod is told its warnings."""
        found = self._jobs.of(new)
        job = None if found is None else self._service.queries.jobs.live(found.job)
        if found is None or job is None:
            # It waits for its gang, which reads it when it is formed; or it is over.
            return None
        if job.state in UNSTARTED and not found.is_gang:
            revision = self._of_waiting(found, old, new)
        else:
            revision = self._of_started(found, old, new, is_waiting=job.state in UNSTARTED)
        return partial(self._revise, caller, new, revision)

    def _of_waiting(self, found: PodJob, old: JsonObject, new: JsonObject) -> _Revision:
        was, wanted = self._wanted(old), self._wanted(new)
        if was.warnings != wanted.warnings:
            _warn(new, wanted.warnings)
        launch = wanted.spec.launch
        return _Revision(
            job=found,
            change=lambda spec: with_what_differs(spec, was.spec, wanted.spec),
            launch=None if was.spec.launch == launch else launch,
            releases=was.held and not wanted.held,
        )

    def _of_started(
        self, found: PodJob, old: JsonObject, new: JsonObject, *, is_waiting: bool
    ) -> _Revision:
        images = other_images(old, new)
        if asked_of_us(old) != asked_of_us(new) or (images and is_waiting):
            raise forbidden(POD, name_of(new), OF_GANG if found.is_gang else RUNS)
        if images:
            said = annotations_of(new).get(WARNINGS)
            more = [KEEPS_ITS_IMAGE.format(each) for each in images]
            _warn(new, tuple(dict.fromkeys([*([said] if said else []), *more])))
        return _Revision(
            job=found,
            change=lambda spec: with_pods_own(spec, old, new, is_gang=found.is_gang),
        )

    def _revise(
        self, caller: Caller, pod: JsonObject, revision: _Revision, transaction: Transaction
    ) -> None:
        job = transaction.job(revision.job.job)
        if job is None or not (
            revision.releases or revision.launch or revision.change(job.spec) != job.spec
        ):
            return
        revise = self._service.revising(
            caller,
            job.id,
            revision.change,
            launch=revision.launch,
            releases=revision.releases,
        )
        try:
            revise(transaction)
        except (RefusedError, ForbiddenError, UnknownError) as error:
            raise forbidden(POD, name_of(pod), str(error)) from error


def _warn(pod: JsonObject, warnings: tuple[str, ...]) -> None:
    notes = metadata(pod).setdefault("annotations", {})
    if warnings:
        notes[WARNINGS] = "; ".join(warnings)
    else:
        notes.pop(WARNINGS, None)
