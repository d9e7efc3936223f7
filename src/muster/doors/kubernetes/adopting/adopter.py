"""Makes jobs of pods that users of other clusters want us to place, and tells them why they wait.

A job is submitted once for each set of pods, whatever dies: its request key is made of their uids.
What becomes of a pod that has its node is told by the cluster's backend, as of every attempt.
"""

import hashlib
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future
from datetime import UTC

from muster.client.sending import Origin
from muster.controller.messages import JobQuery, JobView, Receipt
from muster.controller.rights import OURS
from muster.controller.use_cases.service import Service
from muster.controller.world.transaction import Transaction
from muster.doors.kubernetes.adopting import telling
from muster.doors.kubernetes.adopting.offers import (
    adopted_pod,
    assembled,
    is_free,
    opening,
)
from muster.doors.kubernetes.adopting.port import Adopted, OtherCluster
from muster.doors.kubernetes.objects.errors import StatusError
from muster.doors.kubernetes.objects.value import (
    JsonObject,
    name_of,
    namespace_of,
    part,
    uid_of,
)
from muster.doors.kubernetes.pods.gang_marks import Gang, waits_for
from muster.doors.kubernetes.pods.gangs_of import DifferError, Member, gang_job, in_order
from muster.doors.kubernetes.pods.job_of import PodWorld, job_elsewhere
from muster.doors.kubernetes.pods.queues_of import local_queues, priority_classes
from muster.doors.kubernetes.pods.where_of import PRODUCT
from muster.doors.kubernetes.serve.leading import LeaderThread
from muster.doors.kubernetes.serve.pod_jobs import ROOT
from muster.doors.request.parse import Submitter, Wanted
from muster.model.errors import BackendDownError, MusterError, UnknownError
from muster.model.job import FINAL, WAITING, JobState
from muster.model.launch import AdoptedPod
from muster.model.value import ClusterName, Instant, JobId, replace

log = logging.getLogger("muster.kubernetes")

ADOPTED, GANG_LABEL = f"{OURS}adopted", f"{OURS}adopted-gang"
"""Labels of such jobs: `CLUSTER/NAMESPACE/NAME` of the first pod, and the same of the gang."""

LOOKS_EVERY_S = 0.25
LOOKS_AGAIN_MS = 2_000
"""So often all that waits is looked at, though nothing there is new: plans change why it waits."""

TOLD_AFTER_MS, TOLD_EVERY_MS = 3_000, 10_000
MOST_TOLD = 20
"""So many pods are told in a row why they wait, and each of them so late and so seldom."""

TRIES_AGAIN_MS = 10_000
"""What was refused may be allowed after a while: rules and nodes change."""

Clock = Callable[[], Instant]
Uids = tuple[str, ...]
Namespaces = Mapping[str, Adopted]
"""Those of a cluster whose pods are adopted."""


class Adopter:
    """One thread for all clusters, while this process leads."""

    def __init__(
        self,
        service: Service,
        clusters: Callable[[], Sequence[OtherCluster]],
        adopts: Mapping[ClusterName, Namespaces],
        clock: Clock,
    ) -> None:
        self._service, self._clusters, self._clock = service, clusters, clock
        self._namespaces = adopts
        self._thread = LeaderThread("adopting", self._run)
        self._jobs: dict[ClusterName, dict[str, tuple[JobId, AdoptedPod]]] = {}
        self._refused: dict[Uids, tuple[Instant, str]] = {}
        self._tries: dict[str, int] = {}
        self._told: dict[str, Instant] = {}
        self._seen: dict[ClusterName, int] = {}
        self._looked_at = Instant(0)

    def begin(self, transaction: Transaction) -> None:  # noqa: ARG002 -- as companions are
        """This process leads from now on."""
        self._thread.begin()

    def rest(self) -> None:
        """Another process leads."""
        self._thread.rest()

    def close(self) -> None:
        """Finish what is under way, and stop."""
        self._thread.close()

    def _run(self) -> None:
        self._find_jobs()
        while self._thread.goes_on(bool, LOOKS_EVERY_S):
            now = self._clock()
            is_due = now - self._looked_at >= LOOKS_AGAIN_MS
            for each in self._clusters():
                if is_due or self._seen.get(each.name) != each.version:
                    self._seen[each.name] = each.version
                    self._look(each)
            self._looked_at = now if is_due else self._looked_at

    def _find_jobs(self) -> None:
        """Those that an earlier leader submitted, or we before a restart."""
        self._jobs.clear()
        for job in self._service.queries.jobs.matching(ROOT, JobQuery()):
            cluster = job.spec.labels.get(ADOPTED, "").partition("/")[0]
            launch = self._service.queries.jobs.whole_launch(job) if cluster else None
            if launch is not None:
                self._remember(ClusterName(cluster), job.id, launch.adopts)

    def _remember(self, cluster: ClusterName, job: JobId, pods: Iterable[AdoptedPod]) -> None:
        known, soon = self._jobs.setdefault(cluster, {}), self._clock() + TOLD_AFTER_MS
        for each in pods:
            known[each.uid] = (job, each)
            self._told[each.uid] = Instant(soon - TOLD_EVERY_MS)

    def _look(self, cluster: OtherCluster) -> None:
        """Errors of one cluster keep no other from being looked at."""
        try:
            self._let_jobs_go_on(cluster)
            offered = {
                uid_of(each): each
                for each in cluster.offered()
                if namespace_of(each) in self._namespaces[cluster.name]
            }
            self._drop_gone(cluster, offered)
            self._adopt(cluster, offered)
            self._mind(cluster, offered)
        except MusterError as error:
            log.warning("pods of cluster %s could not be looked at: %s", cluster.name, error)

    def _let_jobs_go_on(self, cluster: OtherCluster) -> None:
        for job in cluster.suspended():
            found = opening(job) if namespace_of(job) in self._namespaces[cluster.name] else None
            if found is not None:
                cluster.merge(found.path, found.change)

    # New pods

    def _adopt(self, cluster: OtherCluster, offered: Mapping[str, JsonObject]) -> None:
        known = self._jobs.setdefault(cluster.name, {})
        free = [pod for uid, pod in offered.items() if uid not in known and is_free(pod)]
        asked: list[tuple[list[JsonObject], Future[Receipt]]] = []
        for gang, pods in assembled(free, cluster.get):
            for together in self._parted(cluster, gang, in_order(pods)):
                submitted = self._submitted(cluster, gang, together)
                if submitted is not None:
                    asked.append((together, submitted))
        for together, submitted in asked:
            try:
                receipt = submitted.result()
            except MusterError as error:
                self._refuse(cluster, together, str(error))
                continue
            self._remember(cluster.name, receipt.jobs[0], map(adopted_pod, together))

    def _parted(
        self, cluster: OtherCluster, gang: Gang | None, pods: list[JsonObject]
    ) -> list[list[JsonObject]]:
        """Those that are one job each. Whoever comes after a gang has started starts alone."""
        if gang is None or gang.least == 1 or self._has_begun(cluster, gang):
            return [[each] for each in pods]
        if gang.missing or len(pods) < gang.least:
            self._refuse(cluster, pods, waits_for(gang, len(pods)))
            return []
        return [pods[: gang.least], *([each] for each in pods[gang.least :])]

    def _has_begun(self, cluster: OtherCluster, gang: Gang) -> bool:
        """Does a job of this gang hold its room? One that waits takes no others in."""
        jobs = {job for job, _ in self._jobs[cluster.name].values()}
        live = filter(None, map(self._service.queries.jobs.live, jobs))
        label = _label(cluster, gang)
        return any(
            job.spec.labels.get(GANG_LABEL) == label and job.state not in WAITING for job in live
        )

    def _submitted(
        self, cluster: OtherCluster, gang: Gang | None, pods: list[JsonObject]
    ) -> "Future[Receipt] | None":
        uids, now = tuple(map(uid_of, pods)), self._clock()
        until, _ = self._refused.get(uids, (now, ""))
        if now < until:
            return None
        try:
            wanted = self._wanted(cluster, gang, pods)
        except (DifferError, StatusError) as error:
            self._refuse(cluster, pods, str(error))
            return None
        tries = sum(self._tries.get(each, 0) for each in uids)
        key = hashlib.sha256("/".join((cluster.name, str(tries), *uids)).encode()).hexdigest()
        return self._service.submit(
            ROOT, wanted.spec, patient=True, request_key=f"adopted-{key[:40]}"
        )

    def _wanted(self, cluster: OtherCluster, gang: Gang | None, pods: list[JsonObject]) -> Wanted:
        first = pods[0]
        world = self._world(self._namespaces[cluster.name][namespace_of(first)])
        members = [
            Member(pod=each, wanted=job_elsewhere(each, adopted_pod(each), world)) for each in pods
        ]
        wanted, more = members[0].wanted, dict[str, str]()
        if gang is not None and len(members) > 1:
            wanted, more = gang_job(gang.name, members), {GANG_LABEL: _label(cluster, gang)}
        said = wanted.spec.labels
        labels = {
            **{key: text for key, text in said.items() if not key.startswith(OURS)},
            ADOPTED: f"{cluster.name}/{namespace_of(first)}/{name_of(first)}",
            **more,
        }
        spec = replace(wanted.spec, clusters=(cluster.name,), labels=labels)
        return replace(wanted, spec=spec)

    def _world(self, whose: Adopted) -> PodWorld:
        site = self._service.queries.site()
        return PodWorld(
            by=Submitter(user=whose.user, queue=whose.queue, now=self._clock()),
            origin=Origin(workdir="/", environ={}, umask=0o022, zone=UTC),
            queues=local_queues(whose.queue, site.queues),
            classes=priority_classes(site.classes),
            products={
                node.labels.get(PRODUCT, ""): device.model
                for node in self._service.queries.nodes.all().values()
                for device in node.devices
            },
        )

    def _refuse(self, cluster: OtherCluster, pods: list[JsonObject], why: str) -> None:
        now = self._clock()
        self._refused[tuple(map(uid_of, pods))] = (Instant(now + TRIES_AGAIN_MS), why)
        for each in pods[:MOST_TOLD]:
            if now - self._told.get(uid_of(each), 0) >= TOLD_EVERY_MS:
                self._tell(cluster, each, why)

    # Pods that have a job

    def _drop_gone(self, cluster: OtherCluster, offered: Mapping[str, JsonObject]) -> None:
        """A pod that is gone, or has a node from others, takes its waiting job with it."""
        known = self._jobs.setdefault(cluster.name, {})
        gone: dict[JobId, None] = {}
        for uid, (job, pod) in tuple(known.items()):
            if uid in offered:
                continue
            live = self._service.queries.jobs.live(job)
            if live is None:
                del known[uid]
                self._told.pop(uid, None)
            elif live.state in WAITING and not self._still_waits(cluster, pod):
                gone[job] = None
        self._forget_refusals()
        if gone:
            self._service.cancel(ROOT, tuple(gone)).result()
            kept = {uid: found for uid, found in known.items() if found[0] not in gone}
            self._jobs[cluster.name] = kept

    def _forget_refusals(self) -> None:
        long_ago = self._clock() - 6 * TRIES_AGAIN_MS
        self._refused = {key: said for key, said in self._refused.items() if said[0] > long_ago}

    def _still_waits(self, cluster: OtherCluster, pod: AdoptedPod) -> bool:
        """Ask for certain: a watch may be late."""
        found = cluster.get(_path(pod))
        if found is None or uid_of(found) != pod.uid or not is_free(found):
            return False
        return not part(found, "spec").get("nodeName")

    def _mind(self, cluster: OtherCluster, offered: Mapping[str, JsonObject]) -> None:
        """Tell pods why they wait; those whose job was cancelled go."""
        known, now = self._jobs[cluster.name], self._clock()
        due = [
            uid for uid in offered if uid in known and now - self._told.get(uid, 0) >= TOLD_EVERY_MS
        ]
        due.sort(key=lambda uid: (self._told.get(uid, 0), uid))
        for uid in due[:MOST_TOLD]:
            self._told[uid] = now
            job, pod = known[uid]
            view = self._view(job)
            if view is None or view.job.state in FINAL:
                del known[uid]
                self._end(cluster, view, pod)
            elif view.wait is not None:
                why = view.wait.why.sentence(view.job.spec, now)
                self._tell(cluster, offered[uid], f"job {job} waits: {why}")
            elif view.job.state is JobState.HELD:
                self._tell(cluster, offered[uid], f"job {job} is held")

    def _end(self, cluster: OtherCluster, view: JobView | None, pod: AdoptedPod) -> None:
        """Its job is over, and it never began. Who cancelled it meant the pod."""
        if view is not None and view.job.state is JobState.CANCELLED:
            cluster.delete(_path(pod), pod.uid)
            return
        # It is another request from now on.
        self._tries[pod.uid] = self._tries.get(pod.uid, 0) + 1

    def _view(self, job: JobId) -> JobView | None:
        try:
            return self._service.queries.jobs.detail(ROOT, job).view
        except UnknownError:
            return None

    def _tell(self, cluster: OtherCluster, pod: JsonObject, why: str) -> None:
        now = self._clock()
        self._told[uid_of(pod)] = now
        change = telling.waits(pod, why, now)
        if change is None:
            return
        try:
            cluster.merge(f"{_path(adopted_pod(pod))}/status", change)
        except BackendDownError as error:
            log.debug("pod %s was not told why it waits: %s", name_of(pod), error)


def _path(pod: AdoptedPod) -> str:
    return f"/api/v1/namespaces/{pod.namespace}/pods/{pod.name}"


def _label(cluster: OtherCluster, gang: Gang) -> str:
    return f"{cluster.name}/{gang.namespace}/{gang.name}"
