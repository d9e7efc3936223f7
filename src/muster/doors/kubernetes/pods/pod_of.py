"""A job that came through another door, as the pods that it would be: one for each task. Pure."""

import hashlib
import re
import uuid
from collections.abc import Mapping

from muster.controller.messages import JobView
from muster.doors.kubernetes.objects.times import stamp
from muster.doors.kubernetes.objects.value import JsonObject, labels_of, uid_of
from muster.doors.kubernetes.pods import quantities
from muster.doors.kubernetes.pods.checks import names
from muster.doors.kubernetes.pods.resources import CPU, GPU, MEMORY, MIG_PREFIX
from muster.doors.kubernetes.pods.status_of import SeenPod, status_of
from muster.launch.images import reference
from muster.model.gpu import GpuAsk, Mig, MpsShare, TimeShare
from muster.model.job import Ask, Cancelled, Job, JobState, TaskGroup
from muster.model.launch import Launch
from muster.model.value import JobId, Value, replace

JOB_LABEL = "muster.io/job"
USER_LABEL = "muster.io/user"
CLASS_LABEL = "muster.io/class"
TASK_LABEL = "muster.io/task"
NO_IMAGE = "muster.io/host"
"""Stands where a pod has an image and the job has none: it runs on the machine itself."""

_IDS = uuid.UUID("b0a7d9a4-4d43-5c0e-9c6f-6d75737465f2")
_LONGEST_NAME = 200


class Task(Value):
    """One task of a job: its group, its number in the group, and its rank in the job."""

    group: TaskGroup
    index: int
    rank: int


def tasks_of(job: Job) -> tuple[Task, ...]:
    """All tasks, in the order of their ranks."""
    found: list[Task] = []
    for group in job.spec.groups:
        for index in range(group.count):
            found.append(Task(group=group, index=index, rank=len(found)))
    return tuple(found)


def pods_of(seen: SeenPod, namespace: str, launch: Launch | None = None) -> tuple[JsonObject, ...]:
    """The pods of a job. launch: None for those who may not see what it runs."""
    return tuple(
        pod_of(replace(seen, task=task.rank), task, namespace, launch)
        for task in tasks_of(seen.view.job)
    )


def pod_of(seen: SeenPod, task: Task, namespace: str, launch: Launch | None) -> JsonObject:
    """One of them, with its status."""
    view = seen.view
    pod: JsonObject = {
        "kind": "Pod",
        "apiVersion": "v1",
        "metadata": _metadata(view, task, namespace),
        "spec": _spec(view, task, launch),
    }
    node = seen.node
    if node is not None:
        pod["spec"]["nodeName"] = node
    pod["status"] = status_of(pod, seen)
    return pod


def pod_name(job: Job, task: Task) -> str:
    """A name that no other pod has: that of the job, its id, and the task where it has several."""
    array = job.spec.array
    number = f"{job.id}" if array is None else f"{array.array}-{array.index}"
    alone = sum(group.count for group in job.spec.groups) == 1
    suffix = number if alone else f"{number}-{slug(task.group.name)}-{task.index}"
    return f"{slug(job.spec.name)[:_LONGEST_NAME]}-{suffix}"


def pod_uid(job: JobId, rank: int) -> str:
    """The same for the same task whenever it is asked for."""
    return str(uuid.uuid5(_IDS, f"{job}/{rank}"))


def job_of_pod(pod: JsonObject) -> JobId | None:
    """The job that this pod is shown for; None if it is a pod of its own.

    Anybody may write labels, and nobody but the server a uid.
    """
    labels = labels_of(pod)
    job, rank = labels.get(JOB_LABEL, ""), labels.get(TASK_LABEL, "")
    if not (job.isdecimal() and rank.isdecimal()):
        return None
    is_so = uid_of(pod) == pod_uid(JobId(int(job)), int(rank))
    return JobId(int(job)) if is_so else None


def slug(text: str) -> str:
    """A text as a part of a name of Kubernetes."""
    found = re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")
    return found or f"x{hashlib.sha256(text.encode()).hexdigest()[:8]}"


def _metadata(view: JobView, task: Task, namespace: str) -> JsonObject:
    job, spec = view.job, view.job.spec
    kept = {
        key: value
        for key, value in spec.labels.items()
        if not names.qualified(key) and not names.label_value(value)
    }
    own = {
        JOB_LABEL: str(job.id),
        USER_LABEL: slug(spec.user),
        CLASS_LABEL: slug(spec.job_class),
        TASK_LABEL: str(task.rank),
    }
    found: JsonObject = {
        "name": pod_name(job, task),
        "namespace": namespace,
        "uid": pod_uid(job.id, task.rank),
        "generation": 1,
        "creationTimestamp": stamp(job.submitted_at),
        "labels": {**kept, **own},
        "annotations": _annotations(job),
    }
    is_going = job.state is JobState.STOPPING and isinstance(job.why, Cancelled)
    if is_going:
        found["deletionTimestamp"] = stamp(job.submitted_at)
        found["deletionGracePeriodSeconds"] = 30
    return found


def _annotations(job: Job) -> dict[str, str]:
    spec = job.spec
    told: Mapping[str, object | None] = {
        "muster.io/name": spec.name,
        "muster.io/queue": spec.queue,
        "muster.io/attempt": job.attempt or None,
        "muster.io/array": None if spec.array is None else spec.array.array,
    }
    return {name: str(value) for name, value in told.items() if value is not None}


def _spec(view: JobView, task: Task, launch: Launch | None) -> JsonObject:
    spec = view.job.spec
    amounts = amounts_of(task.group.each)
    container: JsonObject = {
        "name": "main",
        "image": reference((launch.image if launch is not None else None) or NO_IMAGE),
        "resources": {"limits": amounts, "requests": dict(amounts)} if amounts else {},
        "terminationMessagePath": "/dev/termination-log",
        "terminationMessagePolicy": "File",
        "imagePullPolicy": "IfNotPresent",
    }
    if launch is not None and launch.argv:
        container["command"] = list(launch.argv)
    if launch is not None and launch.workdir:
        container["workingDir"] = launch.workdir
    found: JsonObject = {
        "containers": [container],
        "restartPolicy": "Never",
        "terminationGracePeriodSeconds": 30,
        "dnsPolicy": "ClusterFirst",
        "serviceAccountName": "default",
        "serviceAccount": "default",
        "securityContext": {},
        "schedulerName": "muster",
        "priority": spec.priority,
        "priorityClassName": slug(spec.job_class),
        "enableServiceLinks": True,
        "preemptionPolicy": "PreemptLowerPriority",
        "tolerations": [],
    }
    if spec.time_limit is not None:
        found["activeDeadlineSeconds"] = max(1, spec.time_limit // 1_000)
    if view.job.state is JobState.HELD:
        found["schedulingGates"] = [{"name": "muster.io/held"}]
    return found


def amounts_of(ask: Ask) -> dict[str, str]:
    """What a task needs, as resources of Kubernetes."""
    found: dict[str, str] = {}
    if ask.cpu_milli:
        found[CPU] = quantities.cpu(ask.cpu_milli)
    if ask.memory_mib:
        found[MEMORY] = quantities.memory(ask.memory_mib)
    if ask.gpus is not None and ask.gpus.count:
        found[gpu_resource(ask.gpus)] = str(ask.gpus.count)
    return found


def gpu_resource(gpus: GpuAsk) -> str:
    """The resource that counts them; shares of GPUs count as GPUs, whose number they are of."""
    match gpus.slice:
        case Mig(profile=profile):
            return f"{MIG_PREFIX}{profile}"
        case MpsShare() | TimeShare() | None:
            return GPU
