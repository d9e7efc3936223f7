"""How a pod comes in: what its namespace adds, who refuses it, and the job that it is.

The job is submitted in the transaction that writes the pod: there is never one without the other.
"""

import os
import pwd
import stat
from collections.abc import Callable, Mapping
from datetime import UTC
from functools import partial

from muster.client.sending import Origin
from muster.controller.messages import Caller
from muster.controller.use_cases.service import Service
from muster.controller.world.transaction import Transaction
from muster.doors.kubernetes.foreign.kinds import (
    KAI_QUEUE,
    OF_KUEUE,
    POD_GROUPS,
    VOLCANO_QUEUE,
    foreign_kind,
)
from muster.doors.kubernetes.importing.kueue import local_queue_paths
from muster.doors.kubernetes.importing.volcano import queue_paths
from muster.doors.kubernetes.objects.errors import forbidden
from muster.doors.kubernetes.objects.hidden import CREATED_WITH, CREATOR, hidden_in
from muster.doors.kubernetes.objects.kinds import (
    LIMIT_RANGE,
    NAMESPACE,
    NODE,
    POD,
    RESOURCE_QUOTA,
    RUNTIME_CLASS,
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
from muster.doors.kubernetes.pods import admission, limits, quota, security
from muster.doors.kubernetes.pods.changes_of import is_told_apart
from muster.doors.kubernetes.pods.defaults import defaulted
from muster.doors.kubernetes.pods.gang_marks import (
    GANG_JOB,
    KAI,
    VOLCANO,
    Gang,
    gang_of,
    group_named_by,
)
from muster.doors.kubernetes.pods.job_of import (
    PRIORITY_LABEL,
    WARNINGS,
    PodWorld,
    job_of,
)
from muster.doors.kubernetes.pods.links import Links, links_to
from muster.doors.kubernetes.pods.nodes_of import product_label
from muster.doors.kubernetes.pods.queue_marks import (
    KAI_LABEL,
    LOCAL,
    OF_KAI,
    OF_VOLCANO,
    QUEUE_LABELS,
    VOLCANO_LABEL,
    QueueMark,
    queue_mark,
)
from muster.doors.kubernetes.pods.queues_of import (
    PERSON_ANNOTATION,
    local_queues,
    namespaces,
    priority_classes,
)
from muster.doors.kubernetes.pods.rejected import Rejection, rejection
from muster.doors.kubernetes.serve.access import DOOR, ITSELF, WORKLOADS
from muster.doors.kubernetes.serve.counting import OVER, Counting, live_spec, used_of
from muster.doors.kubernetes.serve.pod_changes import PodChanges
from muster.doors.kubernetes.serve.pod_jobs import POD_LABEL, UID_LABEL, PodJobs
from muster.doors.kubernetes.serve.view import Lookup
from muster.doors.request.parse import Submitter, Wanted
from muster.model.errors import ForbiddenError, RefusedError
from muster.model.value import Instant, QueuePath, UserName, replace

QUEUES_OF_GROUPS = {VOLCANO: VOLCANO_LABEL, KAI: KAI_LABEL}
"""The labels that say the same of a pod as its PodGroup does."""

SERVERS_OWN = (CREATOR, CREATED_WITH, GANG_JOB)
"""Annotations that only the server sets."""

NOT_YOURS = (
    "its processes are {}, and only they and the machine's administrator can change what it runs: "
    "create your own beside it"
)


class PodEntry:
    """Looks at new pods, and has their jobs submitted."""

    def __init__(
        self,
        service: Service,
        view: Lookup,
        clock: Callable[[], Instant],
        api: str = "",
        counting: Counting | None = None,
    ) -> None:
        self.counting = counting or Counting(view.read)
        self._jobs = PodJobs(service.queries)
        self._api = api
        self._service = service
        self.view = view
        self._clock = clock

    def seeing(self, view: Lookup) -> "PodEntry":
        """The same, for somebody who sees what is not committed yet: it counts, too."""
        other = PodEntry(self._service, view, self._clock, self._api, self.counting)
        other._jobs = self._jobs
        return other

    def prepared(self, kind: Kind, given: JsonObject, namespace: str, by: Caller) -> JsonObject:
        """A new object with what its namespace adds, and whose it is."""
        if kind == NAMESPACE:
            _demand_volunteer(given, None, by)
        if kind.kind not in WORKLOADS:
            return given
        new = copied(given)
        meta = new.setdefault("metadata", {})
        _say_ours(new, self._whose(new, namespace, by))
        if kind != POD:
            return new
        self._leave_token_out(new, namespace)
        new = limits.filled(defaulted(new), self.view.objects(LIMIT_RANGE, namespace))
        known = self._known(namespace)
        refused = admission.refusal({**new, "metadata": {"namespace": namespace, **meta}}, known)
        if refused is not None:
            raise refused
        return admission.filled(new, known)

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
        ours = {name: before[name] for name in SERVERS_OWN if name in before}
        if not is_same and by.user == creator:
            # What it runs from now on, it runs with the rights of this moment.
            ours = {**ours, CREATED_WITH: _came_with(by)}
            ours = {name: text for name, text in ours.items() if text}
        if {name: said[name] for name in SERVERS_OWN if name in said} == ours:
            return new
        kept = copied(new)
        _say_ours(kept, ours)
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
            return partial(self.counting.demand_room_for, pod)
        if gang is not None:
            metadata(pod)["annotations"][GANG_JOB] = uid_of(pod)
        return partial(self._enter, pod, self._acting(pod, by), wanted)

    def changing(
        self, old: JsonObject, new: JsonObject, by: Caller
    ) -> Callable[[Transaction], None] | None:
        """What follows for its job; StatusError where that cannot be."""
        if annotations_of(new).get(CREATOR) is None or not is_told_apart(old, new):
            return None
        caller = by if by.root else self._acting(new, by)
        return PodChanges(self._service, self._jobs, self.wanted).following(old, new, caller)

    def _enter(
        self, pod: JsonObject, caller: Caller, wanted: Wanted, transaction: Transaction
    ) -> None:
        self.counting.demand_room_for(pod, transaction)
        try:
            self._service.entering(caller, wanted.spec, held=wanted.held)(transaction)
        except (RefusedError, ForbiddenError) as error:
            raise forbidden(POD, name_of(pod), str(error)) from error

    def creator_of(self, pod: JsonObject) -> Caller:
        """The person whose pod it is, with the rights with which they came."""
        said = annotations_of(pod)
        user, came_with = UserName(said.get(CREATOR, "")), said.get(CREATED_WITH, "")
        if came_with == AS_ROOT:
            return Caller(user=user, door=DOOR, root=True)
        if not came_with.startswith(WITH_TOKEN):
            return Caller(user=user, door=DOOR)
        token = self._service.queries.people.token(came_with.removeprefix(WITH_TOKEN))
        if token is None:
            why = "the token that its workload was created with is forgotten: create it again"
            raise forbidden(POD, name_of(pod), why)
        return Caller(user=user, door=DOOR, token=token)

    def _acting(self, pod: JsonObject, by: Caller) -> Caller:
        """Who acts for themselves has their own rights; others, those of the person named."""
        is_theirs = by != ITSELF and by.user == annotations_of(pod).get(CREATOR)
        return by if is_theirs else self.creator_of(pod)

    def _whose(self, obj: JsonObject, namespace: str, by: Caller) -> dict[str, str]:
        """The person who asks; of what a controller makes, whose the workload is that it is of."""
        owner = self._owner(obj, namespace) if by == ITSELF else None
        if owner is not None:
            return hidden_in(owner)
        person = self._person(namespace, by)
        if person is None:
            return {}
        came_with = "" if by == ITSELF else _came_with(by)
        return {CREATOR: person, **({CREATED_WITH: came_with} if came_with else {})}

    def _leave_token_out(self, pod: JsonObject, namespace: str) -> None:
        """Where its account wants no token mounted, and the pod says nothing of that."""
        spec = pod.setdefault("spec", {})
        name = str(spec.get("serviceAccountName") or spec.get("serviceAccount") or "default")
        account = self.view.get(SERVICE_ACCOUNT, namespace, name) or {}
        if account.get("automountServiceAccountToken") is False:
            spec.setdefault("automountServiceAccountToken", False)

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
            runtimes={name_of(each): each for each in self.view.objects(RUNTIME_CLASS)},
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
            pod, quotas, used_of(quotas, self._live(namespace)) if quotas else {}
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

    def _live(self, namespace: str) -> list[JsonObject]:
        """The specs of the pods that are not over."""
        specs = map(live_spec, self.view.objects(POD, namespace))
        return [each for each in specs if each is not None]

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
                **local_queues(queue, site.queues),
                **self._named_queues(namespace_of(pod)),
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

    def _named_queues(self, namespace: str) -> dict[QueueMark, QueuePath]:
        """Queues that LocalQueues of a namespace are, and Queues of Volcano and of KAI."""
        objects = [each for kind in OF_KUEUE for each in self.view.objects(kind)]
        found = {
            QueueMark(kind=LOCAL, name=name): path
            for (where, name), path in local_queue_paths(objects).items()
            if where == namespace
        }
        for kind, of in ((OF_VOLCANO, VOLCANO_QUEUE), (OF_KAI, KAI_QUEUE)):
            for name, path in queue_paths(self.view.objects(of)).items():
                found[QueueMark(kind=kind, name=name)] = path
        return found

    def _in_its_queue(self, pod: JsonObject) -> JsonObject:
        """The pod with the queue of what it was made for, where it names none itself."""
        if queue_mark(pod) is not None:
            return pod
        own = self._queue_of_its_group(pod)
        owner = self._owner(pod, namespace_of(pod))
        named = {} if owner is None else labels_of(owner)
        own |= {name: named[name] for name in (*QUEUE_LABELS, PRIORITY_LABEL) if name in named}
        if not own:
            return pod
        return {**pod, "metadata": {**metadata(pod), "labels": {**own, **labels_of(pod)}}}

    def _queue_of_its_group(self, pod: JsonObject) -> dict[str, str]:
        """The queue that its PodGroup names, as a label."""
        group, name = group_named_by(pod) or ("", "")
        label = QUEUES_OF_GROUPS.get(group)
        found = self._pod_group(group, namespace_of(pod), name) if label else None
        queue = part(found or {}, "spec").get("queue")
        return {label: str(queue)} if label and queue else {}

    def _links(self, pod: JsonObject) -> Links:
        """Variables that name the API, and unless it wants none, the Services beside it."""
        is_linked = part(pod, "spec").get("enableServiceLinks") is not False
        services = self.view.objects(SERVICE, namespace_of(pod)) if is_linked else []
        return links_to(self._api, services) if self._api else ()

    def queue_of(self, namespace: str) -> QueuePath:
        """The queue that a namespace is; the usual one where it is none."""
        site = self._service.queries.site()
        return namespaces(site.queues).get(namespace, site.default_queue)


AS_ROOT, WITH_TOKEN = "root", "token/"


def _came_with(by: Caller) -> str:
    """What gives somebody more rights than their own, or fewer; nothing for most."""
    if by.token is not None:
        return f"{WITH_TOKEN}{by.token.id}"
    return AS_ROOT if by.root else ""


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
