"""How a pod is, from the job that it is: phase, conditions and containers. Pure."""

from muster.controller.messages import JobView
from muster.doors.kubernetes.objects.times import stamp
from muster.doors.kubernetes.objects.value import JsonObject, items, part
from muster.doors.kubernetes.pods import resources
from muster.doors.kubernetes.pods.job_of import is_for_others
from muster.launch.attempt import ranked
from muster.model.job import (
    FINAL,
    Cancelled,
    DeadlinePassed,
    EndReason,
    Exited,
    HeldBy,
    JobState,
    LaunchFailed,
    NodeFailed,
    OutOfMemory,
    Preempted,
    Requeued,
    Signaled,
    TimedOut,
    exit_of,
)
from muster.model.pod import ContainerRun, ContainerStatus, Phase, PodStatus
from muster.model.value import Instant, Value

PENDING, RUNNING, SUCCEEDED, FAILED = "Pending", "Running", "Succeeded", "Failed"
GATED = "Scheduling is blocked due to non-empty scheduling gates"
_SIGNALLED = 128
_KILLED = 137
_OUT_OF_MEMORY = 125
"""By which a run says that it needed more memory than it had."""


class SeenPod(Value, kw_only=True):
    """Everything that the status of a pod is made of.

    generation: of the pod's spec.
    task: which of the job's tasks it is. is_gang: the others are pods with an end of their own.
    why_pending: the words for a pod that waits.
    host: the address of its node. now: for conditions that changed just now.
    is_own: it came through this door, so that what its containers do is told by who runs them.
    """

    view: JobView
    generation: int = 1
    task: int = 0
    is_gang: bool = False
    status: PodStatus | None = None
    why_pending: str = ""
    host: str = ""
    is_own: bool = False
    now: Instant

    @property
    def node(self) -> str | None:
        """Where it runs or ran last."""
        allocation = self.view.allocation
        if allocation is None or self.task >= len(allocation.placements):
            return None
        return ranked(self.view.job, allocation.placements)[self.task].node

    @property
    def has_own_end(self) -> bool:
        """Is it a pod of a gang that ended by itself, whatever the others do?"""
        if not self.is_gang or self.status is None or not self.status.over:
            return False
        job = self.view.job
        by_itself = Exited | Signaled | OutOfMemory
        return job.state not in FINAL or isinstance(job.ended_for, by_itself)


def status_of(pod: JsonObject, seen: SeenPod) -> JsonObject:
    """The status of a pod whose spec this is; times of conditions that stay are kept."""
    spec, old = part(pod, "spec"), part(pod, "status")
    generation = part(pod, "metadata").get("generation", 1)
    found: JsonObject = {"phase": phase_of(spec, seen)}
    if seen.node is not None or old.get("startTime"):
        found["observedGeneration"] = generation
    reason, message = _reason(seen)
    if "deletionTimestamp" in part(pod, "metadata") and isinstance(
        seen.view.job.ended_for, Cancelled
    ):
        # Its job was cancelled because somebody deleted the pod, which says so itself.
        reason = ""
    if reason:
        found |= {"reason": reason, "message": message}
    if _is_placed(seen) or _was_placed(seen, old):
        found |= _addresses(seen, old)
        started = seen.view.allocation.placed_at if seen.view.allocation is not None else None
        found["startTime"] = stamp(started) if started is not None else old.get("startTime")
        found |= _containers(spec, seen, found["phase"])
    elif seen.view.job.claim is not None:
        placements = seen.view.job.claim.placements
        if seen.task < len(placements):
            found["nominatedNodeName"] = placements[seen.task].node
    found["qosClass"] = old.get("qosClass") or resources.qos_class(spec)
    if _is_placed(seen) or _was_placed(seen, old):
        found |= _amounts(spec, found["phase"])
    made = _conditions(spec, found, old, seen)
    if items(found, "containerStatuses"):
        made = [{**each, "observedGeneration": generation} for each in made]
    found["conditions"] = _timed(made, old, seen.now)
    return _without_none(found)


def unformed_status(pod: JsonObject, why: str, now: Instant) -> JsonObject:
    """The status of a pod that is no job yet, because its gang is not there."""
    spec, old = part(pod, "spec"), part(pod, "status")
    told = Told(is_so=False, reason="Unschedulable", message=why).condition("PodScheduled")
    return {
        **old,
        "phase": PENDING,
        "qosClass": old.get("qosClass") or resources.qos_class(spec),
        "conditions": _timed([told], old, now),
    }


def _amounts(spec: JsonObject, phase: str) -> JsonObject:
    """What the pod as a whole has; of one that is over nothing is left."""
    if phase in (SUCCEEDED, FAILED):
        return {"resources": {}}
    requests, limits = resources.shown_requests(spec), resources.shown_limits(spec)
    every = {"limits": limits, "requests": requests}
    # As soon as the pod's control group limits it, that alone is told.
    grouped = {
        kind: {name: text for name, text in each.items() if name in resources.QOS_RESOURCES}
        for kind, each in every.items()
    }
    told = grouped if any(grouped.values()) else every
    found: JsonObject = {"resources": {kind: each for kind, each in told.items() if each}}
    return {**found, "allocatedResources": requests} if requests else found


def phase_of(spec: JsonObject, seen: SeenPod) -> str:
    """Pending, Running, Succeeded or Failed."""
    if seen.has_own_end and seen.status is not None:
        ends = [each.ended for each in seen.status.containers]
        return FAILED if any(end is not None and exit_code(end) for end in ends) else SUCCEEDED
    match seen.view.job.state:
        case JobState.HELD | JobState.PENDING | JobState.STARTING:
            return PENDING
        case JobState.RUNNING | JobState.SUSPENDED | JobState.STOPPING:
            return PENDING if _is_setting_up(spec, seen) else RUNNING
        case JobState.COMPLETED:
            return SUCCEEDED
        case JobState.FAILED | JobState.CANCELLED:
            return FAILED


def _is_setting_up(spec: JsonObject, seen: SeenPod) -> bool:
    """Has none of its main containers been started yet?"""
    if seen.status is None:
        return seen.is_own
    mains = [seen.status.of(str(each.get("name"))) for each in items(spec, "containers")]
    return any(each is None or _never_began(each) for each in mains)


def _never_began(container: ContainerStatus) -> bool:
    return container.phase is Phase.WAITING and container.last is None


def _is_placed(seen: SeenPod) -> bool:
    return seen.view.allocation is not None


def _was_placed(seen: SeenPod, old: JsonObject) -> bool:
    job = seen.view.job
    return job.state in FINAL and (seen.view.started_at is not None or "startTime" in old)


def _addresses(seen: SeenPod, old: JsonObject) -> JsonObject:
    host = seen.host or old.get("hostIP") or ""
    own = (seen.status.ip if seen.status is not None else "") or old.get("podIP") or host
    if not host:
        return {}
    return {
        "hostIP": host,
        "hostIPs": [{"ip": host}],
        "podIP": own,
        "podIPs": [{"ip": own}],
    }


def _reason(seen: SeenPod) -> tuple[str, str]:
    """Why the pod as a whole failed, where it was not a container's doing."""
    job = seen.view.job
    if job.state not in FINAL or seen.has_own_end:
        return "", ""
    return end_words(job.ended_for)


def end_words(why: EndReason | None) -> tuple[str, str]:
    """Reason and message of a pod that ended so; empty where its containers say it."""
    match why:
        case TimedOut():
            return (
                "DeadlineExceeded",
                "Pod was active on the node longer than the specified deadline",
            )
        case Preempted(by=by):
            return "Preempted", f"Preempted by job {by}"
        case NodeFailed(node=node):
            return "NodeLost", f"Node {node} which was running pod is unresponsive"
        case Cancelled(by=by):
            return "Cancelled", f"Cancelled by {by}"
        case LaunchFailed(text=text):
            return "StartError", text
        case DeadlinePassed():
            return "DeadlineExceeded", "Pod could no longer end before its deadline"
        case Exited() | Signaled() | OutOfMemory() | Requeued() | None:
            return "", ""


def _containers(spec: JsonObject, seen: SeenPod, phase: str) -> JsonObject:
    found: JsonObject = {}
    for kind, name in (
        ("initContainers", "initContainerStatuses"),
        ("containers", "containerStatuses"),
    ):
        listed = [_container(spec, each, seen, phase) for each in items(spec, kind)]
        if listed:
            found[name] = listed
    return found


def _container(spec: JsonObject, own: JsonObject, seen: SeenPod, phase: str) -> JsonObject:
    name = str(own.get("name"))
    status = seen.status.of(name) if seen.status is not None else _guessed(name, seen)
    is_init = own in items(spec, "initContainers")
    waits = "PodInitializing" if items(spec, "initContainers") else "ContainerCreating"
    if status is None:
        status = ContainerStatus(name=name, reason=waits)
    is_over = status.phase is Phase.ENDED
    has_done = is_init and is_over and status.ended is not None and not status.ended.code
    found: JsonObject = {
        "name": name,
        "state": _state(status, waits),
        "lastState": {} if status.last is None else {"terminated": _run(status.last)},
        "ready": (status.ready and phase == RUNNING) or has_done,
        "restartCount": status.restarts,
        "image": _full_name(status.image) if status.id else own.get("image", ""),
        "imageID": status.image_id if status.id else "",
        "started": status.started and status.phase is Phase.RUNNING,
        "resources": {kind: amounts for kind, amounts in part(own, "resources").items() if amounts},
        "volumeMounts": [_mounted(each) for each in items(own, "volumeMounts")],
    }
    if status.id:
        found["containerID"] = status.id
    if phase == RUNNING and part(own, "resources", "requests"):
        found["allocatedResources"] = part(own, "resources", "requests")
        found |= _devices(own, seen)
    if not found["volumeMounts"]:
        del found["volumeMounts"]
    return found


def _full_name(image: str) -> str:
    """An image with the registry that is meant where none is named."""
    first, slash, _ = image.partition("/")
    if not slash:
        return f"docker.io/library/{image}"
    is_host = "." in first or ":" in first or first == "localhost"
    return image if is_host else f"docker.io/{image}"


def _devices(own: JsonObject, seen: SeenPod) -> JsonObject:
    """Which GPUs a container that asks for some has: all of its pod's."""
    asked = [each for each in part(own, "resources", "limits") if resources.is_gpu(each)]
    allocation = seen.view.allocation
    if not asked or allocation is None or seen.task >= len(allocation.placements):
        return {}
    shares = allocation.placements[seen.task].devices
    health = [{"health": "Healthy", "resourceID": str(each.device)} for each in shares]
    return {"allocatedResourcesStatus": [{"name": asked[0], "resources": health}]}


def _mounted(mount: JsonObject) -> JsonObject:
    shown = {"mountPath": mount.get("mountPath"), "name": mount.get("name")}
    if mount.get("readOnly"):
        shown |= {"readOnly": True, "recursiveReadOnly": "Disabled"}
    return shown


def _guessed(name: str, seen: SeenPod) -> ContainerStatus | None:
    """The one container of a job that came through another door."""
    view, job = seen.view, seen.view.job
    began = view.started_at or (view.allocation.started_at if view.allocation else None)
    if job.state in FINAL:
        return ContainerStatus(
            name=name,
            phase=Phase.ENDED,
            restarts=max(0, job.attempt - 1),
            ended=run_of(job.ended_for, began or view.ended_at or 0, view.ended_at or 0),
        )
    if began is None or seen.is_own:
        return None
    return ContainerStatus(
        name=name,
        phase=Phase.RUNNING,
        at=began,
        restarts=max(0, job.attempt - 1),
        ready=job.state is JobState.RUNNING,
        started=True,
    )


def run_of(why: EndReason | None, began_at: int, ended_at: int) -> ContainerRun:
    """The run of a container whose job ended so."""
    code, signal = exit_of(why) or (0, 15)
    if isinstance(why, OutOfMemory):
        signal = _OUT_OF_MEMORY
    return ContainerRun(began_at=began_at, ended_at=ended_at, code=code, signal=signal)


def _state(status: ContainerStatus, waits: str) -> JsonObject:
    match status.phase:
        case Phase.WAITING:
            waiting = {"reason": status.reason or waits}
            if status.message:
                waiting["message"] = status.message
            return {"waiting": waiting}
        case Phase.RUNNING:
            return {"running": {"startedAt": stamp(status.at)}}
        case Phase.ENDED:
            run = status.ended or ContainerRun(began_at=status.at, ended_at=status.at)
            return {"terminated": _run(run)}


def _run(run: ContainerRun) -> JsonObject:
    code = exit_code(run)
    found: JsonObject = {
        "exitCode": code,
        "reason": run.reason or _word(run, code),
        "startedAt": stamp(run.began_at),
        "finishedAt": stamp(run.ended_at),
    }
    if run.message:
        found["message"] = run.message
    if run.id:
        found["containerID"] = run.id
    return found


def exit_code(run: ContainerRun) -> int:
    """As a shell would put it."""
    if run.signal == _OUT_OF_MEMORY:
        return _KILLED
    return _SIGNALLED + run.signal if run.signal else run.code


def _word(run: ContainerRun, code: int) -> str:
    if run.signal == _OUT_OF_MEMORY:
        return "OOMKilled"
    return "Error" if code else "Completed"


class Told(Value, gc=False):
    """What a condition says: whether it is so, and why."""

    is_so: bool
    reason: str = ""
    message: str = ""

    def condition(self, kind: str) -> JsonObject:
        """As a pod has it."""
        found: JsonObject = {"type": kind, "status": "True" if self.is_so else "False"}
        if self.reason:
            found["reason"] = self.reason
        if self.message:
            found["message"] = self.message
        return found


SO = Told(is_so=True)


def _conditions(
    spec: JsonObject, found: JsonObject, old: JsonObject, seen: SeenPod
) -> list[JsonObject]:
    job = seen.view.job
    if not items(found, "containerStatuses"):
        return _unscheduled(spec, seen)
    is_over = found["phase"] in (SUCCEEDED, FAILED)
    ready = _readiness(found)
    made = [
        Told(is_so=not is_over).condition("PodReadyToStartContainers"),
        _initialized(spec, found).condition("Initialized"),
        _gated(ready, spec, old).condition("Ready"),
        ready.condition("ContainersReady"),
        SO.condition("PodScheduled"),
    ]
    if isinstance(job.ended_for, Preempted):
        why = f"Muster: preempting to accommodate job {job.ended_for.by}"
        told = Told(is_so=True, reason="PreemptionByScheduler", message=why)
        made.append(told.condition("DisruptionTarget"))
    return made


def _gated(ready: Told, spec: JsonObject, old: JsonObject) -> Told:
    """Readiness also needs what others must say of the pod, where it names that."""
    said = {str(each.get("type")): each.get("status") for each in items(old, "conditions")}
    gates = [str(each.get("conditionType")) for each in items(spec, "readinessGates")]
    missing = [
        f'corresponding condition of pod readiness gate "{gate}" does not exist.'
        if gate not in said
        else f'the status of pod readiness gate "{gate}" is not "True", but {said[gate]}'
        for gate in gates
        if said.get(gate) != "True"
    ]
    if not ready.is_so or not missing:
        return ready
    return Told(is_so=False, reason="ReadinessGatesNotReady", message=", ".join(missing))


def _unscheduled(spec: JsonObject, seen: SeenPod) -> list[JsonObject]:
    """Of a pod without a place: why it has none, where that is for us to say."""
    job, name = seen.view.job, "PodScheduled"
    if items(spec, "schedulingGates"):
        return [Told(is_so=False, reason="SchedulingGated", message=GATED).condition(name)]
    if job.state in FINAL or (is_for_others(spec) and not spec.get("nodeName")):
        return []
    if spec.get("nodeName"):
        return [SO.condition(name)]
    if not seen.why_pending:
        # Nobody has looked at it yet.
        return []
    reason = "Held" if isinstance(job.why, HeldBy) else "Unschedulable"
    told = Told(is_so=False, reason=reason, message=seen.why_pending).condition(name)
    return [{**told, "observedGeneration": seen.generation}]


def _initialized(spec: JsonObject, found: JsonObject) -> Told:
    if found["phase"] == SUCCEEDED:
        return Told(is_so=True, reason="PodCompleted")
    sidecars = {
        str(each.get("name"))
        for each in items(spec, "initContainers")
        if resources.is_sidecar(each)
    }
    waiting = [
        each["name"]
        for each in items(found, "initContainerStatuses")
        if not (each["ready"] or (each["name"] in sidecars and each["started"]))
    ]
    if not waiting:
        return SO
    return Told(
        is_so=False,
        reason="ContainersNotInitialized",
        message=f"containers with incomplete status: [{' '.join(waiting)}]",
    )


def _readiness(found: JsonObject) -> Told:
    if found["phase"] in (SUCCEEDED, FAILED):
        word = "PodCompleted" if found["phase"] == SUCCEEDED else "PodFailed"
        return Told(is_so=False, reason=word)
    unready = [each["name"] for each in items(found, "containerStatuses") if not each["ready"]]
    if not unready:
        return SO
    return Told(
        is_so=False,
        reason="ContainersNotReady",
        message=f"containers with unready status: [{' '.join(unready)}]",
    )


def _timed(conditions: list[JsonObject], old: JsonObject, now: Instant) -> list[JsonObject]:
    """Each says since when it is so."""
    before = {str(each.get("type")): each for each in items(old, "conditions")}
    known = {str(each["type"]) for each in conditions}
    # What others have set, such as readiness gates, stays as it is.
    foreign = [each for name, each in before.items() if name not in known | _OURS]
    timed: list[JsonObject] = []
    for each in conditions:
        was = before.get(str(each["type"]), {})
        since = was.get("lastTransitionTime") if was.get("status") == each["status"] else None
        timed.append({"lastProbeTime": None, "lastTransitionTime": since or stamp(now), **each})
    return [*timed, *foreign]


_OURS = frozenset(
    "PodReadyToStartContainers Initialized Ready ContainersReady PodScheduled".split()
)


def _without_none(found: JsonObject) -> JsonObject:
    return {name: value for name, value in found.items() if value is not None}
