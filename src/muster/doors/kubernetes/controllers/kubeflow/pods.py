"""The pods and Services of a training job, as its controller makes them."""

from muster.doors.kubernetes.controllers.kubeflow.framework import Framework, Replica, policy_of
from muster.doors.kubernetes.controllers.owning import owner_reference, pod_from
from muster.doors.kubernetes.objects.value import (
    JsonObject,
    items,
    labels_of,
    metadata,
    name_of,
    namespace_of,
    part,
)
from muster.doors.kubernetes.pods.gang_marks import GANG, GANG_LEADER, GANG_SIZE

JOB_NAME = "training.kubeflow.org/job-name"
OPERATOR = "training.kubeflow.org/operator-name"
ROLE = "training.kubeflow.org/replica-type"
INDEX = "training.kubeflow.org/replica-index"
JOB_ROLE = "training.kubeflow.org/job-role"
QUEUE = "kueue.x-k8s.io/queue-name"
CLASS = "kueue.x-k8s.io/priority-class"
PASSED_ON = (QUEUE, CLASS)
"""Labels of the job that its pods have too."""

_PORT = 23_456
_NEVER_AGAIN = {"ExitCode": "Never"}
"""Whoever exits so is deleted and made again by the controller."""


def replica_labels(framework: Framework, job: JsonObject, replica: Replica) -> dict[str, str]:
    """By which a pod is found."""
    found = {
        OPERATOR: f"{framework.kind.singular}-controller",
        JOB_NAME: name_of(job),
        ROLE: replica.role.lower(),
        INDEX: str(replica.index),
    }
    if is_leader(framework, job, replica):
        found[JOB_ROLE] = "master"
    return found


def is_leader(framework: Framework, job: JsonObject, replica: Replica) -> bool:
    return replica.role == framework.leader(job) and replica.index == 0


def pod_of(framework: Framework, job: JsonObject, replica: Replica) -> JsonObject:
    """The pod of a replica, as a part of its gang."""
    pod = pod_from(part(replica.spec, "template"), job)
    meta, spec = metadata(pod), part(pod, "spec")
    del meta["generateName"]
    meta["name"] = replica.name_in(job)
    passed = {name: text for name, text in labels_of(job).items() if name in PASSED_ON}
    policy = part(policy_of(job), "schedulingPolicy")
    if policy.get("queue"):
        passed.setdefault(QUEUE, str(policy["queue"]))
    labels = replica_labels(framework, job, replica)
    meta["labels"] = {**passed, **labels_of(pod), **labels}
    marks = {
        GANG: f"{framework.kind.singular}/{name_of(job)}",
        GANG_SIZE: str(framework.least(job)),
    }
    if is_leader(framework, job, replica):
        marks[GANG_LEADER] = "true"
    meta["annotations"] = {**part(meta, "annotations"), **marks}
    wanted = str(replica.spec.get("restartPolicy") or framework.restart)
    spec["restartPolicy"] = _NEVER_AGAIN.get(wanted, wanted)
    if policy.get("priorityClass"):
        spec.setdefault("priorityClassName", str(policy["priorityClass"]))
    framework.furnish(job, replica, spec)
    variables = framework.environment(job, replica)
    for container in items(spec, "containers"):
        container["env"] = [*items(container, "env"), *variables]
    return pod


def service_of(framework: Framework, job: JsonObject, replica: Replica) -> JsonObject:
    """A name under which the others find a replica."""
    labels = replica_labels(framework, job, replica)
    ports = [
        {"name": each.get("name"), "port": each.get("containerPort")}
        for own in items(replica.spec, "template", "spec", "containers")
        for each in items(own, "ports")
        if own.get("name") == (framework.container or own.get("name")) and each.get("name")
    ]
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {
            "name": replica.name_in(job),
            "namespace": namespace_of(job),
            "labels": labels,
            "ownerReferences": [owner_reference(job)],
        },
        "spec": {
            "clusterIP": "None",
            "selector": labels,
            "ports": ports or [{"name": framework.port_name, "port": _PORT}],
        },
    }
