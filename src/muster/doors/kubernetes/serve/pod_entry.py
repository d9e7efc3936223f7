"""How a pod comes in: what its namespace adds, who refuses it, and the job that it is.

The job is submitted in the transaction that writes the pod: there is never one without the other.
"""

import os
import pwd
import stat
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC
from decimal import Decimal
from functools import partial

from muster.client.sending import Origin
from muster.controller.messages import Caller, JobQuery
from muster.controller.use_cases.service import Service
from muster.controller.world.transaction import Transaction
from muster.doors.kubernetes.foreign.kinds import OF_KUEUE, POD_GROUPS, foreign_kind
from muster.doors.kubernetes.importing.kueue import local_queue_paths
from muster.doors.kubernetes.objects.errors import forbidden
from muster.doors.kubernetes.objects.kinds import (
    LIMIT_RANGE,
    NAMESPACE,
    NODE,
    POD,
    RESOURCE_QUOTA,
    SERVICE,
    SERVICE_ACCOUNT,
    kind_of,
)
from muster.doors.kubernetes.objects.rbac import ACCOUNT_PREFIX
from muster.doors.kubernetes.objects.times import stamp
from muster.doors.kubernetes.objects.value import (
    JsonObject,
    Kind,
    annotations_of,
    copied,
    labels_of,
    metadata,
    name_of,
    namespace_of,
    part,
    uid_of,
)
from muster.doors.kubernetes.pods import admission, limits, quantities, quota, security
from muster.doors.kubernetes.pods.defaults import defaulted
from muster.doors.kubernetes.pods.gang_marks import GANG_JOB, Gang, gang_of
from muster.doors.kubernetes.pods.job_of import (
    CREATOR,
    PRIORITY_LABEL,
    QUEUE_LABEL,
    WARNINGS,
    PodWorld,
    is_held_back,
    job_of,
)
from muster.doors.kubernetes.pods.links import Links, links_to
from muster.doors.kubernetes.pods.nodes_of import product_label
from muster.doors.kubernetes.pods.queues_of import (
    PERSON_ANNOTATION,
    namespaces,
    priority_classes,
)
from muster.doors.kubernetes.pods.rejected import Rejection, rejection
from muster.doors.kubernetes.serve.access import DOOR, ITSELF, WORKLOADS
from muster.doors.kubernetes.serve.view import Lookup
from muster.doors.request.parse import Submitter, Wanted
from muster.model.errors import ForbiddenError, RefusedError
from muster.model.job import JobSpec, JobState
from muster.model.value import Instant, JobId, QueuePath, UserName, replace

ROOT = Caller(user=UserName("muster"), door=DOOR, root=True)

POD_LABEL = "kubernetes/pod"
GANG_LABEL = "kubernetes/gang"
UID_LABEL = "kubernetes/uid"
"""Labels of jobs: which pod it is, or which gang of pods; see `pod_jobs`."""

SERVERS_OWN = (CREATOR, GANG_JOB)
"""Annotations that only the server sets."""

OVER = ("Succeeded", "Failed")
NOT_YOURS = (
    "its processes are {}, and only they and the machine's administrator can change what it runs: "
    "create your own beside it"
)


class PodEntry:
    """Looks at new pods, and has their jobs submitted."""

    def __init__(
        self, service: Service, view: Lookup, clock: Callable[[], Instant], api: str = ""
    ) -> None:
        self._api = api
        self._service = service
        self.view = view
        self._clock = clock

    def seeing(self, view: Lookup) -> "PodEntry":
        """The same, for somebody who sees what is not committed yet: it counts, too."""
        return PodEntry(self._service, view, self._clock, self._api)

    def prepared(self, kind: Kind, given: JsonObject, namespace: str, by: Caller) -> JsonObject:
        """A new object with what its namespace adds, and whose it is."""
        if kind == NAMESPACE:
            _demand_volunteer(given, None, by)
        if kind.kind not in WORKLOADS:
            return given
        new = copied(given)
        meta = new.setdefault("metadata", {})
        person = self._creator(new, namespace, by)
        _say_ours(new, {} if person is None else {CREATOR: person})
        if kind != POD:
            return new
        new = limits.filled(defaulted(new), self.view.objects(LIMIT_RANGE, namespace))
        known = self._known(namespace)
        refused = admission.refusal({**new, "metadata": {"namespace": namespace, **meta}}, known)
        if refused is not None:
            raise refused
        return admission.with_priority(new, known)

    def changed(self, kind: Kind, new: JsonObject, old: JsonObject, by: Caller) -> JsonObject:
        """The new object, with whose it was; StatusError when who writes may not be that person."""
        if kind == NAMESPACE:
            _demand_volunteer(new, old, by)
        if kind.kind not in WORKLOADS:
            return new
        creator = annotations_of(old).get(CREATOR)
        is_same = _runs(new) == _runs(old)
        if not is_same and not by.root and self._person(namespace_of(old), by) != creator:
            raise forbidden(kind, name_of(old), NOT_YOURS.format(creator or "nobody's"))
        said, before = annotations_of(new), annotations_of(old)
        if all(said.get(name) == before.get(name) for name in SERVERS_OWN):
            return new
        kept = copied(new)
        _say_ours(kept, {name: before[name] for name in SERVERS_OWN if name in before})
        return kept

    def entering(self, pod: JsonObject, by: Caller) -> Callable[[Transaction], None] | None:
        """What submits its job; StatusError when it may not be. The pod is told its warnings.

        None: the node that it names does not take it, and it is over.
        """
        person = annotations_of(pod).get(CREATOR)
        if person is None:
            how = f"annotate the namespace with {PERSON_ANNOTATION}"
            why = f"nobody is named whose processes they are: {how}"
            raise forbidden(POD, name_of(pod), why)
        self._demand_allowed(pod, person)
        why_not = self._rejection(pod)
        if why_not is not None:
            pod["status"] = why_not.status(pod, stamp(self._clock()))
            return None
        wanted = self.wanted(pod)
        if wanted.warnings:
            notes = metadata(pod).setdefault("annotations", {})
            notes[WARNINGS] = "; ".join(wanted.warnings)
        gang = self.gang_of(pod)
        if gang is not None and gang.least != 1:
            # It becomes a job when the others are there: see `pod_gangs`.
            return _nothing
        if gang is not None:
            metadata(pod)["annotations"][GANG_JOB] = uid_of(pod)
        # Who acts for themselves has their own rights; others, those of the person named.
        caller = by if by.user == person else Caller(user=UserName(person), door=DOOR)
        return partial(self._enter, pod, caller, wanted)

    def changing(
        self, old: JsonObject, new: JsonObject, by: Caller
    ) -> Callable[[Transaction], None] | None:
        """A pod that is held back may still get another place; it starts when nothing holds it."""
        if not is_held_back(part(old, "spec")):
            return None
        job = self._held_job(new)
        person = annotations_of(new).get(CREATOR)
        if job is None or person is None:
            return None
        wanted = self.wanted(new)
        caller = by if by.user == person or by.root else Caller(user=UserName(person), door=DOOR)

        def change(spec: JobSpec) -> JobSpec:
            asked = wanted.spec
            return replace(spec, groups=asked.groups, pools=asked.pools, labels=asked.labels)

        def then(transaction: Transaction) -> None:
            try:
                self._service.revising(caller, job, change, held=wanted.held)(transaction)
            except (RefusedError, ForbiddenError) as error:
                raise forbidden(POD, name_of(new), str(error)) from error

        return then

    def _held_job(self, pod: JsonObject) -> JobId | None:
        query = JobQuery(name=name_of(pod), states=(JobState.HELD,))
        for job in self._service.queries.jobs.matching(ROOT, query):
            if job.spec.labels.get(UID_LABEL) == uid_of(pod):
                return job.id
        return None

    def _enter(
        self, pod: JsonObject, caller: Caller, wanted: Wanted, transaction: Transaction
    ) -> None:
        try:
            self._service.entering(caller, wanted.spec, held=wanted.held)(transaction)
        except (RefusedError, ForbiddenError) as error:
            raise forbidden(POD, name_of(pod), str(error)) from error

    def _creator(self, obj: JsonObject, namespace: str, by: Caller) -> str | None:
        """The person who asks; of what a controller makes, whose the workload is that it is of."""
        if by != ITSELF:
            return self._person(namespace, by)
        owner = self._owner(obj, namespace)
        return self._person(namespace, by) if owner is None else annotations_of(owner).get(CREATOR)

    def _person(self, namespace: str, by: Caller) -> str | None:
        """Who somebody is on this machine; an account whose namespace names nobody is nobody."""
        if by == ITSELF:
            kept = self.view.get(NAMESPACE, "", namespace) or {}
            return annotations_of(kept).get(PERSON_ANNOTATION)
        return None if by.user.startswith(ACCOUNT_PREFIX) else str(by.user)

    def _owner(self, obj: JsonObject, namespace: str) -> JsonObject | None:
        """The workload that a controller made this for: the one of that uid, and no namesake."""
        for each in metadata(obj).get("ownerReferences") or ():
            named = str(each.get("apiVersion")), str(each.get("kind"))
            kind = kind_of(each) or foreign_kind(*named)
            if not each.get("controller") or kind is None or kind.kind not in WORKLOADS:
                continue
            found = self.view.get(kind, namespace, str(each.get("name")))
            if found is not None and uid_of(found) == each.get("uid"):
                return found
        return None

    def _known(self, namespace: str) -> admission.Known:
        site = self._service.queries.site()
        accounts = {name_of(each) for each in self.view.objects(SERVICE_ACCOUNT, namespace)}
        classes = priority_classes(site.classes)
        return admission.Known(
            priorities={name: site.classes[each].priority for name, each in classes.items()},
            accounts=frozenset({*accounts, "default"}),
            preempts=frozenset(
                name for name, each in classes.items() if site.classes[each].preempts
            ),
        )

    def _demand_allowed(self, pod: JsonObject, person: str) -> None:
        namespace = namespace_of(pod)
        found = _identity(person)
        if found is None:
            why = f"this machine has no account of {person}, whose processes they would be"
            raise forbidden(POD, name_of(pod), why)
        refused = security.refusal(pod, found, partial(_may_read, found))
        if refused is not None:
            raise refused
        ranges = self.view.objects(LIMIT_RANGE, namespace)
        quotas = self.view.objects(RESOURCE_QUOTA, namespace)
        refused = limits.refusal(pod, ranges) or quota.refusal(
            pod, quotas, self._used(quotas, namespace)
        )
        if refused is not None:
            raise refused

    def _rejection(self, pod: JsonObject) -> Rejection | None:
        name = str(part(pod, "spec").get("nodeName") or "")
        node = self.view.get(NODE, "", name) if name else None
        if node is None:
            return None
        others = [
            part(each, "spec")
            for each in self.view.objects(POD)
            if part(each, "spec").get("nodeName") == name
            and part(each, "status").get("phase") not in OVER
        ]
        return rejection(pod, node, others)

    def _used(self, quotas: Iterable[JsonObject], namespace: str) -> dict[str, dict[str, Decimal]]:
        """What the pods that are not over count as, for each quota."""
        live = [
            part(each, "spec")
            for each in self.view.objects(POD, namespace)
            if part(each, "status").get("phase") not in OVER
        ]
        return {
            name_of(each): quantities.added(
                quota.charge_of(spec) for spec in live if quota.matches(each, spec)
            )
            for each in quotas
        }

    def gang_of(self, pod: JsonObject) -> Gang | None:
        """The gang that a pod says it belongs to."""
        return gang_of(pod, self._pod_group)

    def _pod_group(self, group: str, namespace: str, name: str) -> JsonObject | None:
        return self.view.get(POD_GROUPS[group], namespace, name)

    def wanted(self, pod: JsonObject) -> Wanted:
        """The job that a pod is, were it alone."""
        person = UserName(annotations_of(pod).get(CREATOR, ""))
        site = self._service.queries.site()
        queue = self.queue_of(namespace_of(pod))
        models = {
            product_label(device.model): device.model
            for node in self._service.queries.nodes.all().values()
            for device in node.devices
        }
        world = PodWorld(
            by=Submitter(user=person, queue=queue, now=self._clock()),
            origin=Origin(workdir="/", environ={}, umask=0o022, zone=UTC),
            queues={
                **{
                    path.rpartition("/")[2]: path
                    for path in sorted(site.queues)
                    if path == queue or path.startswith(f"{queue}/")
                },
                **self._local_queues(namespace_of(pod)),
            },
            classes=priority_classes(site.classes),
            products=models,
            links=self._links(pod),
        )
        wanted = job_of(self._in_its_queue(pod), world)
        labels = {
            **wanted.spec.labels,
            POD_LABEL: f"{namespace_of(pod)}/{name_of(pod)}",
            UID_LABEL: uid_of(pod),
        }
        return replace(wanted, spec=replace(wanted.spec, labels=labels))

    def _local_queues(self, namespace: str) -> dict[str, QueuePath]:
        """Queues that LocalQueues of a namespace are, by their names."""
        objects = [each for kind in OF_KUEUE for each in self.view.objects(kind)]
        found = local_queue_paths(objects)
        return {name: path for (where, name), path in found.items() if where == namespace}

    def _in_its_queue(self, pod: JsonObject) -> JsonObject:
        """The pod with the queue of what it was made for, where it names none itself."""
        if QUEUE_LABEL in labels_of(pod):
            return pod
        owner = self._owner(pod, namespace_of(pod))
        named = {} if owner is None else labels_of(owner)
        own = {name: named[name] for name in (QUEUE_LABEL, PRIORITY_LABEL) if name in named}
        if not own:
            return pod
        return {**pod, "metadata": {**metadata(pod), "labels": {**own, **labels_of(pod)}}}

    def _links(self, pod: JsonObject) -> Links:
        """Variables that name the API, and unless it wants none, the Services beside it."""
        is_linked = part(pod, "spec").get("enableServiceLinks") is not False
        services = self.view.objects(SERVICE, namespace_of(pod)) if is_linked else []
        return links_to(self._api, services) if self._api else ()

    def queue_of(self, namespace: str) -> QueuePath:
        """The queue that a namespace is; the usual one where it is none."""
        site = self._service.queries.site()
        return namespaces(site.queues).get(namespace, site.default_queue)


def _nothing(_: Transaction) -> None:
    """Nothing happens besides."""


def _say_ours(obj: JsonObject, ours: Mapping[str, str]) -> None:
    """Say what only the server says; what the writer says of that does not count."""
    others = {name: text for name, text in annotations_of(obj).items() if name not in SERVERS_OWN}
    said = {**others, **ours}
    meta = obj.setdefault("metadata", {})
    if said:
        meta["annotations"] = said
    else:
        meta.pop("annotations", None)


def _runs(obj: JsonObject) -> object:
    """What a workload runs; a pod's own cannot change."""
    spec = part(obj, "spec")
    replicas = [spec[name] for name in spec if name.endswith("ReplicaSpecs") or name == "tasks"]
    return spec.get("template") or part(spec, "jobTemplate") or replicas


def _demand_volunteer(new: JsonObject, old: JsonObject | None, by: Caller) -> None:
    """Whose processes those of accounts are, only that person says, and who may be anybody."""
    person = annotations_of(new).get(PERSON_ANNOTATION)
    before = annotations_of(old or {}).get(PERSON_ANNOTATION)
    if person in {None, before, by.user} or by.root:
        return
    why = f"only {person} and the machine's administrator can set {PERSON_ANNOTATION} to {person}"
    raise forbidden(NAMESPACE, name_of(new), why)


def _identity(person: str) -> security.Identity | None:
    try:
        found = pwd.getpwnam(person)
    except KeyError:
        return None
    groups = tuple(os.getgrouplist(person, found.pw_gid))
    return security.Identity(uid=found.pw_uid, gid=found.pw_gid, groups=groups)


def _may_read(who: security.Identity, path: str) -> bool:
    """By the rights of files and folders; what is mounted is opened with the person's rights.

    Links are followed first: what counts is what they lead to, and the folders above that.
    """
    if not path.startswith("/"):
        return False
    if who.uid == 0:
        return True
    try:
        parts = [part_ for part_ in os.path.realpath(path).split("/") if part_]
    except OSError:
        return False
    for count in range(len(parts) + 1):
        at = "/" + "/".join(parts[:count])
        try:
            found = os.stat(at)
        except FileNotFoundError:
            # It may be made when the pod runs, with the person's rights.
            return True
        except OSError:
            return False
        wanted = 0o5 if count == len(parts) and stat.S_ISDIR(found.st_mode) else 0o1
        if count == len(parts) and not stat.S_ISDIR(found.st_mode):
            wanted = 0o4
        if _rights(who, found) & wanted != wanted:
            return False
    return True


def _rights(who: security.Identity, found: os.stat_result) -> int:
    if found.st_uid == who.uid:
        return found.st_mode >> 6 & 0o7
    if found.st_gid in {who.gid, *who.groups}:
        return found.st_mode >> 3 & 0o7
    return found.st_mode & 0o7
