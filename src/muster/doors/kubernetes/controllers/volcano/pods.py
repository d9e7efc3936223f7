"""What a Volcano Job has made for it: its PodGroup, its pods, and how they find each other."""

from muster.doors.kubernetes.controllers.owning import owner_reference, pod_from
from muster.doors.kubernetes.controllers.volcano.tasks import (
    INDEX,
    JOB_NAME,
    JOB_RETRY,
    SPEC_NAME,
    Member,
    group_name,
    least,
    members,
    plugin,
    tasks_of,
    total,
)
from muster.doors.kubernetes.objects.value import (
    JsonObject,
    items,
    labels_of,
    metadata,
    name_of,
    namespace_of,
    part,
)
from muster.doors.kubernetes.pods.gang_marks import VOLCANO, VOLCANO_GROUP
from muster.doors.kubernetes.pods.queue_marks import KUEUE_LABEL, VOLCANO_LABEL

FOLDER = "/etc/volcano"
_PORT = 23_456


def group_of(job: JsonObject) -> JsonObject:
    """The PodGroup: how many start together, and where they wait."""
    spec: JsonObject = {"minMember": least(job)}
    if part(job, "spec").get("queue"):
        spec["queue"] = part(job, "spec")["queue"]
    return {
        "apiVersion": f"{VOLCANO}/v1beta1",
        "kind": "PodGroup",
        "metadata": _about(job, group_name(job)),
        "spec": spec,
    }


def pod_of(job: JsonObject, member: Member) -> JsonObject:
    """One pod, with its place in the job."""
    pod = pod_from(part(member.task.spec, "template"), job)
    meta, spec = metadata(pod), part(pod, "spec")
    del meta["generateName"]
    meta["name"] = member.name_in(job)
    marks = {
        JOB_NAME: name_of(job),
        SPEC_NAME: member.task.name,
        INDEX: str(member.index),
        JOB_RETRY: str(part(job, "status").get("retryCount") or 0),
    }
    queued = {key: text for key, text in labels_of(job).items() if key == KUEUE_LABEL}
    if part(job, "spec").get("queue"):
        queued[VOLCANO_LABEL] = str(part(job, "spec")["queue"])
    meta["labels"] = {**labels_of(pod), **queued, **marks}
    meta["annotations"] = {**part(meta, "annotations"), **marks, VOLCANO_GROUP: group_name(job)}
    spec.setdefault("restartPolicy", "OnFailure")
    if part(job, "spec").get("priorityClassName"):
        spec.setdefault("priorityClassName", part(job, "spec")["priorityClassName"])
    _furnish(job, member, spec)
    return pod


def beside(job: JsonObject) -> list[tuple[str, JsonObject]]:
    """What it has beside its pods: kinds and objects. The plugin `svc` asks for them."""
    if plugin(job, "svc") is None:
        return []
    service: JsonObject = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": _about(job, name_of(job)),
        "spec": {"clusterIP": "None", "selector": {JOB_NAME: name_of(job)}},
    }
    config: JsonObject = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": _about(job, f"{name_of(job)}-svc"),
        "data": {f"{task}.host": "\n".join(names) for task, names in _hosts(job).items()},
    }
    return [("Service", service), ("ConfigMap", config)]


def _furnish(job: JsonObject, member: Member, spec: JsonObject) -> None:
    variables: dict[str, str] = {}
    if plugin(job, "env") is not None:
        variables |= {"VK_TASK_INDEX": str(member.index), "VC_TASK_INDEX": str(member.index)}
    if plugin(job, "svc") is not None:
        spec["hostname"], spec["subdomain"] = member.name_in(job), name_of(job)
        for task, names in _hosts(job).items():
            word = task.upper().replace("-", "_")
            variables |= {f"VC_{word}_HOSTS": ",".join(names), f"VC_{word}_NUM": str(len(names))}
        volume = {"name": f"{name_of(job)}-svc", "configMap": {"name": f"{name_of(job)}-svc"}}
        spec["volumes"] = [*items(spec, "volumes"), volume]
    variables |= _of_pytorch(job, member)
    told = [{"name": name, "value": text} for name, text in variables.items()]
    for container in (*items(spec, "containers"), *items(spec, "initContainers")):
        container["env"] = [*items(container, "env"), *told]
        if plugin(job, "svc") is not None:
            mount = {"name": f"{name_of(job)}-svc", "mountPath": FOLDER}
            container["volumeMounts"] = [*items(container, "volumeMounts"), mount]


def _of_pytorch(job: JsonObject, member: Member) -> dict[str, str]:
    """What torch reads: the plugin `pytorch` names the tasks that are master and workers."""
    given = plugin(job, "pytorch")
    if given is None:
        return {}
    parts = (each.lstrip("-").partition("=") for each in given)
    said = {name: value for name, _, value in parts}
    master, worker = said.get("master", "master"), said.get("worker", "worker")
    if member.task.name not in {master, worker}:
        return {}
    ahead = [each for each in members(job) if each.task.name == master]
    behind = len(ahead) if member.task.name == worker else 0
    return {
        "MASTER_ADDR": ahead[0].name_in(job) if ahead else "",
        "MASTER_PORT": said.get("port", str(_PORT)),
        "WORLD_SIZE": str(total(job)),
        "RANK": str(behind + member.index),
    }


def _hosts(job: JsonObject) -> dict[str, list[str]]:
    """By task, the names under which its pods are found."""
    found: dict[str, list[str]] = {each.name: [] for each in tasks_of(job)}
    for member in members(job):
        found[member.task.name].append(member.name_in(job))
    return found


def _about(job: JsonObject, name: str) -> JsonObject:
    return {
        "name": name,
        "namespace": namespace_of(job),
        "ownerReferences": [owner_reference(job)],
    }
