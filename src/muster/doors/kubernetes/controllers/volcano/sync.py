"""What a Volcano Job wants changed: its pods, what follows when one ends, and what it says."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from muster.doors.kubernetes.controllers.changes import NOTHING, Create, Delete, Draft, Outcome
from muster.doors.kubernetes.controllers.cluster import Cluster
from muster.doors.kubernetes.controllers.pods import (
    container_statuses,
    is_finished,
    is_leaving,
    phase,
)
from muster.doors.kubernetes.controllers.volcano.pods import beside, group_of, pod_of
from muster.doors.kubernetes.controllers.volcano.tasks import (
    MOST_RETRIES,
    SPEC_NAME,
    group_name,
    least,
    members,
    tasks_of,
    total,
)
from muster.doors.kubernetes.foreign.kinds import POD_GROUPS
from muster.doors.kubernetes.objects.kinds import CONFIG_MAP, POD, SERVICE
from muster.doors.kubernetes.objects.times import after, stamp
from muster.doors.kubernetes.objects.value import (
    JsonObject,
    items,
    labels_of,
    name_of,
    namespace_of,
    part,
    uid_of,
)
from muster.doors.kubernetes.pods.gang_marks import VOLCANO
from muster.model.value import Instant

SOURCE = "vc-controller-manager"
PENDING, RUNNING, RESTARTING = "Pending", "Running", "Restarting"
COMPLETED, FAILED, ABORTED, TERMINATED = "Completed", "Failed", "Aborted", "Terminated"
FINAL = frozenset({COMPLETED, FAILED, ABORTED, TERMINATED})
ENDS = {"AbortJob": ABORTED, "TerminateJob": TERMINATED, "CompleteJob": COMPLETED}
AGAIN = frozenset({"RestartJob", "RestartTask", "RestartPod", "RestartPartition"})
"""A gang starts whole: whatever is to begin again, all of it does."""

ANY = "*"
POD_FAILED, TASK_COMPLETED = "PodFailed", "TaskCompleted"
_BESIDE = {"Service": SERVICE, "ConfigMap": CONFIG_MAP}


@dataclass
class Look:
    """One look at one job."""

    job: JsonObject
    cluster: Cluster
    now: Instant
    draft: Draft

    @cached_property
    def pods(self) -> dict[str, JsonObject]:
        """Those that it manages, by name."""
        held = self.cluster.controlled(POD, namespace_of(self.job), uid_of(self.job))
        return {name_of(each): each for each in held}

    @property
    def state(self) -> str:
        return str(part(self.job, "status", "state").get("phase") or PENDING)

    @property
    def retries(self) -> int:
        return int(part(self.job, "status").get("retryCount") or 0)

    def count(self, wanted: str) -> int:
        return sum(phase(pod) == wanted for pod in self.pods.values())


def sync(job: JsonObject, cluster: Cluster, now: Instant) -> Outcome:
    """Start what is missing, end what must end, and say how it is."""
    if is_leaving(job):
        return NOTHING
    look = Look(job, cluster, now, Draft(job, SOURCE))
    if look.state in FINAL:
        _tidy(look)
        return _said(look, look.state)
    if look.state == RESTARTING:
        return _said(look, RESTARTING if look.pods else PENDING)
    return _decided(look)


def _decided(look: Look) -> Outcome:
    action, why = _action(look)
    if action in ENDS:
        return _ended(look, ENDS[action], why)
    if action in AGAIN:
        most = part(look.job, "spec").get("maxRetry")
        if look.retries >= int(MOST_RETRIES if most is None else most):
            return _ended(look, FAILED, f"it was restarted {look.retries} times; {why}")
        _delete(look, list(look.pods.values()))
        look.draft.warn("ExecuteAction", f"Start to execute action {action}: {why}")
        return _said(look, RESTARTING, retries=look.retries + 1)
    over = _over(look)
    if over is not None:
        return _ended(look, over, "")
    _make(look)
    started = look.count("Running") + look.count("Succeeded") + look.count("Failed")
    return _said(look, RUNNING if started and started >= least(look.job) else PENDING)


def _action(look: Look) -> tuple[str, str]:
    """What a policy wants done because of what became of a pod, and why; the task's own first."""
    for task in tasks_of(look.job):
        own = [each for each in look.pods.values() if labels_of(each).get(SPEC_NAME) == task.name]
        policies = [*items(task.spec, "policies"), *items(look.job, "spec", "policies")]
        for pod in own:
            if phase(pod) != "Failed":
                continue
            for policy in policies:
                if _is_about(policy, POD_FAILED) or _exit_code(pod) == policy.get("exitCode"):
                    return str(policy.get("action")), f"pod {name_of(pod)} failed"
        done = [each for each in own if phase(each) == "Succeeded"]
        if own and len(done) == task.replicas:
            for policy in items(task.spec, "policies"):
                if _is_about(policy, TASK_COMPLETED):
                    return str(policy.get("action")), f"task {task.name} completed"
    return "", ""


def _is_about(policy: JsonObject, event: str) -> bool:
    named = {policy.get("event"), *items(policy, "events")}
    return event in named or (ANY in named and event == POD_FAILED)


def _exit_code(pod: JsonObject) -> int | None:
    codes = [part(each, "state", "terminated").get("exitCode") for each in container_statuses(pod)]
    return next((int(each) for each in codes if each), None)


def _over(look: Look) -> str | None:
    """The phase it ends in, once enough or all of its pods have ended."""
    succeeded, failed = look.count("Succeeded"), look.count("Failed")
    wanted = part(look.job, "spec").get("minSuccess")
    if wanted and succeeded >= int(wanted):
        return COMPLETED
    if succeeded + failed < total(look.job) or not look.pods:
        return None
    return COMPLETED if not wanted and succeeded >= least(look.job) else FAILED


def _ended(look: Look, final: str, why: str) -> Outcome:
    _delete(look, [each for each in look.pods.values() if not is_finished(each)])
    text = f"Job is {final.lower()}" + (f": {why}" if why else "")
    look.draft.emit(final, text)
    return _said(look, final, message=why)


def _make(look: Look) -> None:
    """The group first, so that no pod is taken for one that starts alone."""
    space = namespace_of(look.job)
    if look.cluster.get(POD_GROUPS[VOLCANO], space, group_name(look.job)) is None:
        look.draft.make(Create(object=group_of(look.job)))
    for kind, obj in beside(look.job):
        if look.cluster.get(_BESIDE[kind], space, name_of(obj)) is None:
            look.draft.make(Create(object=obj))
    for member in members(look.job):
        name = member.name_in(look.job)
        if name not in look.pods:
            text = f"Created pod: {name}"
            look.draft.create(pod_of(look.job, member), "SuccessfulCreate", text)


def _tidy(look: Look) -> None:
    _delete(look, [each for each in look.pods.values() if not is_finished(each)])
    ttl_s = part(look.job, "spec").get("ttlSecondsAfterFinished")
    ended = part(look.job, "status", "state").get("lastTransitionTime")
    at = None if ttl_s is None else after(ended, int(ttl_s))
    if at is not None and at <= look.now:
        look.draft.remove(Delete(object=look.job))
    else:
        look.draft.look_again(at)


def _delete(look: Look, pods: Sequence[JsonObject]) -> None:
    for each in pods:
        if not is_leaving(each):
            look.draft.delete(each, "SuccessfulDelete", f"Deleted pod: {name_of(each)}")


def _said(look: Look, state: str, *, message: str = "", retries: int | None = None) -> Outcome:
    old = part(look.job, "status")
    new = {**look.job, "status": dict(_status(look, old, state, message))}
    if retries is not None:
        new["status"]["retryCount"] = retries
    if new["status"] != old:
        look.draft.update_status(new)
    return look.draft.outcome()


def _status(look: Look, old: JsonObject, state: str, message: str) -> Iterator[tuple[str, object]]:
    before = part(old, "state")
    is_same = before.get("phase") == state
    since = before.get("lastTransitionTime") if is_same else stamp(look.now)
    told = message or (before.get("message", "") if is_same else "")
    yield (
        "state",
        {
            "phase": state,
            "lastTransitionTime": since,
            **({"message": told} if told else {}),
        },
    )
    yield "minAvailable", least(look.job)
    for name in (PENDING, RUNNING, "Succeeded", FAILED):
        if look.count(name):
            yield name.lower(), look.count(name)
    tasks = {
        task.name: {
            "phase": dict(
                sorted(
                    Counter(
                        phase(each)
                        for each in look.pods.values()
                        if labels_of(each).get(SPEC_NAME) == task.name
                    ).items()
                )
            )
        }
        for task in tasks_of(look.job)
    }
    yield "taskStatusCount", tasks
    if look.retries:
        yield "retryCount", look.retries
    conditions = items(old, "conditions")
    yield (
        "conditions",
        (conditions if is_same else [*conditions, {"status": state, "lastTransitionTime": since}]),
    )
