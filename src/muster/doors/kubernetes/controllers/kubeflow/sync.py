"""What a training job wants changed: its pods, its Services, and what it says of itself."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

from muster.doors.kubernetes.controllers.changes import NOTHING, Delete, Draft, Outcome
from muster.doors.kubernetes.controllers.cluster import Cluster
from muster.doors.kubernetes.controllers.conditions import is_true
from muster.doors.kubernetes.controllers.kubeflow import status as words
from muster.doors.kubernetes.controllers.kubeflow.framework import Framework, Replica, policy_of
from muster.doors.kubernetes.controllers.kubeflow.pods import (
    JOB_NAME,
    OPERATOR,
    ROLE,
    is_leader,
    pod_of,
    service_of,
)
from muster.doors.kubernetes.controllers.pods import (
    container_statuses,
    is_finished,
    is_leaving,
    phase,
    restarts,
)
from muster.doors.kubernetes.objects.kinds import CONFIG_MAP, POD, SERVICE
from muster.doors.kubernetes.objects.times import after, stamp
from muster.doors.kubernetes.objects.value import (
    JsonObject,
    annotations_of,
    items,
    metadata,
    name_of,
    namespace_of,
    part,
    uid_of,
)
from muster.doors.kubernetes.pods.gang_marks import GANG_JOB
from muster.model.value import Instant

RESTARTS = "muster.io/restarts"
"""An annotation: how often the gang was made again."""

_RETRYABLE = 128
"""Exit codes from here on mean that another try may go well: a signal ended it."""


@dataclass
class Look:
    """One look at one job."""

    framework: Framework
    job: JsonObject
    cluster: Cluster
    now: Instant
    draft: Draft
    conditions: list[JsonObject] = field(default_factory=list[JsonObject])
    restarted: int = 0

    @property
    def kind(self) -> str:
        return self.framework.kind.kind

    @property
    def name(self) -> str:
        return name_of(self.job)

    @cached_property
    def replicas(self) -> list[Replica]:
        return self.framework.replicas(self.job)

    @cached_property
    def pods(self) -> dict[str, JsonObject]:
        """Those that the job manages, by name."""
        held = self.cluster.controlled(POD, namespace_of(self.job), uid_of(self.job))
        return {name_of(each): each for each in held}

    def of(self, replica: Replica) -> JsonObject | None:
        return self.pods.get(replica.name_in(self.job))

    def of_role(self, role: str) -> list[JsonObject]:
        found = (self.of(each) for each in self.replicas if each.role == role)
        return [each for each in found if each is not None]

    def say(self, type_: str, reason: str, message: str, *, is_so: bool = True) -> None:
        new = words.condition(type_, f"{self.kind}{reason}", message, is_so=is_so)
        self.conditions = words.with_condition(self.conditions, new, self.now)


def sync(framework: Framework, job: JsonObject, cluster: Cluster, now: Instant) -> Outcome:
    """Start what is missing, end what must end, and say how it is."""
    if is_leaving(job):
        return NOTHING
    draft = Draft(job, f"{framework.kind.singular}-controller")
    conditions = list(items(job, "status", "conditions"))
    look = Look(framework, job, cluster, now, draft, conditions)
    look.restarted = int(annotations_of(job).get(RESTARTS, 0))
    if words.is_finished(job):
        _tidy(look)
        return _outcome(look, {**part(job, "status"), "replicaStatuses": _counted(look)})
    look.say(words.CREATED, "Created", f"{look.kind} {look.name} is created.")
    status = dict(part(job, "status"))
    if policy_of(job).get("suspend"):
        _suspend(look)
        status["startTime"] = None
    else:
        status["startTime"] = status.get("startTime") or stamp(now)
        _resume(look)
        _run(look, status)
    status["replicaStatuses"] = _counted(look)
    return _outcome(look, status)


def _outcome(look: Look, status: JsonObject) -> Outcome:
    status = {**status, "conditions": look.conditions}
    new = {**look.job, "status": {name: held for name, held in status.items() if held is not None}}
    if look.restarted:
        notes = {**annotations_of(look.job), RESTARTS: str(look.restarted)}
        new["metadata"] = {**metadata(look.job), "annotations": notes}
    if new != look.job:
        look.draft.update_status(new)
    return look.draft.outcome()


def _run(look: Look, status: JsonObject) -> None:
    over = _limit_reached(look, status)
    if over is not None:
        _finish(look, status, words.FAILED, over)
        _delete(look, [each for each in look.pods.values() if not is_finished(each)])
        return
    if _succeeded(look):
        message = f"{look.kind} {look.name} is successfully completed."
        _finish(look, status, words.SUCCEEDED, message)
        return
    failed = _failed_roles(look)
    for role, count, retries in failed:
        if not retries:
            message = f"{look.kind} {look.name} is failed because {count} {role} replica(s) failed."
            _finish(look, status, words.FAILED, message)
            return
    if failed:
        role, count, _ = failed[0]
        message = f"{look.kind} {look.name} is restarting because {count} {role} replica(s) failed."
        _restart(look, message)
        return
    if any(each["active"] for each in _counted(look).values() if "active" in each):
        look.say(words.RUNNING, "Running", f"{look.kind} {look.name} is running.")
    _make(look)


def _limit_reached(look: Look, status: JsonObject) -> str | None:
    policy = policy_of(look.job)
    limit = policy.get("backoffLimit")
    often = look.restarted + sum(map(restarts, look.pods.values()))
    if limit is not None and often > int(limit):
        return f"Job {look.name} has failed because it has reached the specified backoff limit"
    deadline_s = policy.get("activeDeadlineSeconds")
    over_at = None if deadline_s is None else after(status.get("startTime"), int(deadline_s))
    if over_at is not None and over_at <= look.now:
        text = "it was active longer than specified deadline"
        return f"Job {look.name} has failed because {text}"
    look.draft.look_again(over_at)
    return None


def _succeeded(look: Look) -> bool:
    leader = look.framework.leader(look.job)
    if leader:
        firsts = [each for each in look.replicas if is_leader(look.framework, look.job, each)]
        return any(_is(look.of(each), "Succeeded") for each in firsts)
    counted = look.framework.counted or look.framework.roles
    done = [_is(look.of(each), "Succeeded") for each in look.replicas if each.role in counted]
    is_elastic = isinstance(part(look.job, "spec").get("elasticPolicy"), dict)
    return any(done) if is_elastic else bool(done) and all(done)


def _is(pod: JsonObject | None, wanted: str) -> bool:
    return pod is not None and phase(pod) == wanted


def _failed_roles(look: Look) -> list[tuple[str, int, bool]]:
    """Role, number of failed replicas, and whether they are tried again."""
    found: list[tuple[str, int, bool]] = []
    for role in dict.fromkeys(each.role for each in look.replicas):
        failed = [each for each in look.of_role(role) if _is(each, "Failed")]
        if not failed:
            continue
        spec = next(each.spec for each in look.replicas if each.role == role)
        policy = str(spec.get("restartPolicy") or look.framework.restart)
        retries = policy in ("Always", "OnFailure") or (
            policy == "ExitCode" and all(_may_be_retried(each) for each in failed)
        )
        found.append((role, len(failed), retries))
    return found


def _may_be_retried(pod: JsonObject) -> bool:
    codes = [
        int(part(each, "state", "terminated").get("exitCode") or 0)
        for each in container_statuses(pod)
    ]
    return max(codes, default=0) >= _RETRYABLE or not any(codes)


def _restart(look: Look, message: str) -> None:
    """A gang starts whole: if one must start again, so must all."""
    if not is_true(look.conditions, words.RESTARTING):
        look.draft.warn(f"{look.kind}{words.RESTARTING}", message)
    look.say(words.RESTARTING, words.RESTARTING, message)
    going = [each for each in look.pods.values() if not is_leaving(each)]
    if going and not any(is_leaving(each) for each in look.pods.values()):
        look.restarted += 1
    _delete(look, going)


def _make(look: Look) -> None:
    """Create what is missing; where one of a gang that has begun is lost, begin again."""
    least = look.framework.least(look.job)
    staying = {name: each for name, each in look.pods.items() if not is_leaving(each)}
    lost = [each for each in look.replicas[:least] if each.name_in(look.job) not in staying]
    has_begun = any(GANG_JOB in annotations_of(each) for each in staying.values())
    if lost and has_begun and least > 1:
        name = lost[0].name_in(look.job)
        _restart(look, f"{look.kind} {look.name} is restarting because pod {name} is gone.")
        return
    if lost and len(staying) < len(look.pods):
        # Those of the gang before are still ending.
        return
    _create_beside(look)
    for replica in look.replicas:
        if look.of(replica) is None:
            _create(look, replica)


def _create_beside(look: Look) -> None:
    """What the pods find, before they are there."""
    for each in look.framework.beside(look.job):
        if look.cluster.get(CONFIG_MAP, namespace_of(each), name_of(each)) is None:
            text = f"Created configmap: {name_of(each)}"
            look.draft.create(each, "SuccessfulCreateConfigMap", text)


def _create(look: Look, replica: Replica) -> None:
    """The name first, so that it can be found when the pod begins."""
    job, name = look.job, replica.name_in(look.job)
    if look.cluster.get(SERVICE, namespace_of(job), name) is None:
        service = service_of(look.framework, job, replica)
        look.draft.create(service, "SuccessfulCreateService", f"Created service: {name}")
    pod = pod_of(look.framework, job, replica)
    look.draft.create(pod, "SuccessfulCreatePod", f"Created pod: {name}")


def _finish(look: Look, status: JsonObject, type_: str, message: str) -> None:
    status["completionTime"] = status.get("completionTime") or stamp(look.now)
    look.draft.emit(f"{look.kind}{type_}", message)
    look.say(type_, type_, message)


def _suspend(look: Look) -> None:
    message = f"{look.kind} {look.name} is suspended."
    if is_true(look.conditions, words.RUNNING):
        look.say(words.RUNNING, words.SUSPENDED, message, is_so=False)
    if not is_true(look.conditions, words.SUSPENDED):
        look.draft.emit(f"{look.kind}{words.SUSPENDED}", message)
        look.say(words.SUSPENDED, words.SUSPENDED, message)
    _delete(look, list(look.pods.values()))


def _resume(look: Look) -> None:
    if is_true(look.conditions, words.SUSPENDED):
        message = f"{look.kind} {look.name} is resumed."
        look.draft.emit(f"{look.kind}Resumed", message)
        look.say(words.SUSPENDED, "Resumed", message, is_so=False)


def _tidy(look: Look) -> None:
    """A job that is over: its pods go as its policy says, and it goes when its time is up."""
    policy = policy_of(look.job)
    match policy.get("cleanPodPolicy"):
        case "All":
            _delete(look, list(look.pods.values()))
        case "Running":
            _delete(look, [each for each in look.pods.values() if not is_finished(each)])
        case _:
            pass
    ttl_s = policy.get("ttlSecondsAfterFinished")
    ended = part(look.job, "status").get("completionTime")
    at = None if ttl_s is None else after(ended, int(ttl_s))
    if at is not None and at <= look.now:
        look.draft.remove(Delete(object=look.job))
    else:
        look.draft.look_again(at)


def _delete(look: Look, pods: Sequence[JsonObject]) -> None:
    for each in pods:
        if not is_leaving(each):
            look.draft.delete(each, "SuccessfulDeletePod", f"Deleted pod: {name_of(each)}")


def _counted(look: Look) -> JsonObject:
    operator = f"{look.framework.kind.singular}-controller"
    return {
        role: words.counts(
            look.of_role(role),
            f"{JOB_NAME}={look.name},{OPERATOR}={operator},{ROLE}={role.lower()}",
        )
        for role in dict.fromkeys(each.role for each in look.replicas)
    }
