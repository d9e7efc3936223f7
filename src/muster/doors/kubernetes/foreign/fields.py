"""What becomes of every field of the built-in kinds of other projects: one table.

Schemas, warnings and the page in the docs follow from it. A field is used, or has no effect, of
which the user is warned, or is refused. None is dropped silently.
"""

from collections.abc import Iterator
from functools import cache
from typing import Any, cast

from muster.doors.kubernetes.objects.errors import Cause, forbidden_field
from muster.doors.kubernetes.objects.schemas.types import PREFIX, Schema
from muster.doors.kubernetes.objects.value import JsonObject
from muster.doors.kubernetes.pods.support import Treatment
from muster.model.value import Value

_TYPES = """
PyTorchJob: elasticPolicy=ElasticPolicy nprocPerNode=string pytorchReplicaSpecs={ReplicaSpec}!
    runPolicy=RunPolicy
TFJob: enableDynamicWorker=boolean runPolicy=RunPolicy successPolicy=SuccessPolicy
    tfReplicaSpecs={ReplicaSpec}!
MPIJob: cleanPodPolicy=CleanPodPolicy launcherCreationPolicy=LauncherPolicy mainContainer=string
    mpiImplementation=MpiImplementation mpiReplicaSpecs={ReplicaSpec}! runLauncherAsWorker=boolean
    runPolicy=RunPolicy slotsPerWorker=integer sshAuthMountPath=string
ElasticPolicy: maxReplicas=integer maxRestarts=integer metrics=[any] minReplicas=integer
    nProcPerNode=integer rdzvBackend=string rdzvConf=[RdzvConf] rdzvHost=string rdzvId=string
    rdzvPort=integer standalone=boolean
RdzvConf: key=string value=string
ReplicaSpec: replicas=integer restartPolicy=RestartPolicy template=PodTemplate
RunPolicy: activeDeadlineSeconds=integer backoffLimit=integer cleanPodPolicy=CleanPodPolicy
    managedBy=string schedulingPolicy=SchedulingPolicy suspend=boolean
    ttlSecondsAfterFinished=integer
SchedulingPolicy: minAvailable=integer minResources=any priorityClass=string queue=string
    scheduleTimeoutSeconds=integer
ResourceFlavor: nodeLabels=strings nodeTaints=any tolerations=any topologyName=string
ClusterQueue: admissionChecks=any admissionChecksStrategy=any admissionScope=any cohort=string
    cohortName=string fairSharing=FairSharing flavorFungibility=any namespaceSelector=any
    preemption=any queueingStrategy=string resourceGroups=[ResourceGroup] stopPolicy=string
Cohort: fairSharing=FairSharing parent=string parentName=string resourceGroups=[ResourceGroup]
FairSharing: weight=any
ResourceGroup: coveredResources=[string] flavors=[FlavorQuotas]
FlavorQuotas: name=string! resources=[ResourceQuota]
ResourceQuota: borrowingLimit=any lendingLimit=any name=string! nominalQuota=any
LocalQueue: clusterQueue=string fairSharing=FairSharing stopPolicy=string
VolcanoJob: maxRetry=integer minAvailable=integer minSuccess=integer networkTopology=any
    plugins=any policies=[VolcanoPolicy] priorityClassName=string queue=string
    runningEstimate=string schedulerName=string tasks=[VolcanoTask]! ttlSecondsAfterFinished=integer
    volumes=[any]
VolcanoTask: dependsOn=any maxRetry=integer minAvailable=integer name=string
    partitionPolicy=any policies=[VolcanoPolicy] replicas=integer template=PodTemplate
    topologyPolicy=string
VolcanoPolicy: action=string! event=string events=[string] exitCode=integer timeout=string
VolcanoQueue: affinity=any capability=any dequeueStrategy=string deserved=any extendClusters=any
    guarantee=any parent=string priority=integer reclaimable=boolean type=string weight=integer
KaiQueue: displayName=string parentQueue=string preemptMinRuntime=string priority=integer
    reclaimMinRuntime=string resources=any
KueueWorkload: active=boolean maximumExecutionTimeSeconds=integer podSets=any priority=integer
    priorityClassName=string priorityClassRef=any priorityClassSource=string
    preemptionGates=any queueName=string
CoschedulingPodGroup: minMember=integer minResources=any scheduleTimeoutSeconds=integer
VolcanoPodGroup: minMember=integer minResources=any minTaskMember=any networkTopology=any
    priorityClassName=string queue=string subGroupPolicy=any
KaiPodGroup: backoffLimit=integer markUnschedulable=boolean minMember=integer parentReference=any
    preemptibility=string priorityClassName=string queue=string
    schedulingBackoff=integer subGroups=any topologyConstraint=any
NativePodGroup: disruptionMode=any podGroupTemplateRef=any priority=integer
    priorityClassName=string resourceClaims=any schedulingConstraints=any
    schedulingPolicy=NativePolicy!
NativePolicy: basic=any gang=NativeGang
NativeGang: minCount=integer!
NativeWorkload: controllerRef=any podGroupTemplates=[NativeTemplate]
NativeTemplate: disruptionMode=any name=string! priority=integer priorityClassName=string
    resourceClaims=any schedulingConstraints=any schedulingPolicy=NativePolicy
"""
"""`Type: field=type`; `[Type]` is a list, `{Type}` a map, and `!` marks what must be there."""

_PLAIN: dict[str, Schema] = {
    "string": {"type": "string"},
    "integer": {"type": "integer", "format": "int32"},
    "boolean": {"type": "boolean"},
    "any": {"x-kubernetes-preserve-unknown-fields": True},
    "strings": {"type": "object", "additionalProperties": {"type": "string"}},
    "PodTemplate": {"allOf": [{"$ref": f"{PREFIX}io.k8s.api.core.v1.PodTemplateSpec"}]},
    "RestartPolicy": {"type": "string", "enum": ["Always", "OnFailure", "Never", "ExitCode"]},
    "SuccessPolicy": {"type": "string", "enum": ["", "AllWorkers"]},
    "LauncherPolicy": {"type": "string", "enum": ["AtStartup", "WaitForWorkersReady"]},
    "MpiImplementation": {"type": "string", "enum": ["OpenMPI", "Intel", "MPICH"]},
    "CleanPodPolicy": {"type": "string", "enum": ["All", "Running", "None", ""]},
}

_PATIENT = "a gang waits until it can start"
_OWN_AMOUNTS = "what the pods ask for counts"

WARNED: dict[str, str] = {
    "ElasticPolicy.metrics": "the number of replicas is not changed by metrics",
    "TFJob.enableDynamicWorker": "a gang has as many workers as it began with",
    "MPIJob.cleanPodPolicy": "say it in runPolicy",
    "MPIJob.launcherCreationPolicy": "a gang starts whole",
    "MPIJob.mainContainer": "every container of the launcher finds the workers",
    "MPIJob.sshAuthMountPath": "processes are started with kubectl exec, without keys",
    "SchedulingPolicy.minResources": _OWN_AMOUNTS,
    "SchedulingPolicy.scheduleTimeoutSeconds": _PATIENT,
    "ResourceFlavor.nodeTaints": "taints are said for nodes",
    "ResourceFlavor.tolerations": "tolerations are said for pods",
    "ResourceFlavor.topologyName": "name a topology level with pod affinity",
    "ClusterQueue.admissionChecks": "there are no admission checks",
    "ClusterQueue.admissionChecksStrategy": "there are no admission checks",
    "ClusterQueue.admissionScope": "fair share is Muster's own",
    "ClusterQueue.flavorFungibility": "jobs name pools in the order that they prefer",
    "ClusterQueue.namespaceSelector": "write who may submit with may_submit",
    "ClusterQueue.preemption": "what is lent comes back by itself; classes say who preempts whom",
    "ClusterQueue.queueingStrategy": "later jobs start where they do not delay earlier ones",
    "ClusterQueue.stopPolicy": "hold its jobs, or close its pools",
    "LocalQueue.fairSharing": "the ClusterQueue's weight counts",
    "LocalQueue.stopPolicy": "hold its jobs, or close its pools",
    "CoschedulingPodGroup.minResources": _OWN_AMOUNTS,
    "CoschedulingPodGroup.scheduleTimeoutSeconds": _PATIENT,
    "VolcanoJob.networkTopology": "name a topology level with pod affinity",
    "VolcanoJob.runningEstimate": "Muster learns how long jobs take; say activeDeadlineSeconds",
    "VolcanoJob.schedulerName": "Muster schedules it",
    "VolcanoTask.dependsOn": "all tasks of a gang start together",
    "VolcanoTask.maxRetry": "what is restarted is the whole job: see spec.maxRetry",
    "VolcanoTask.minAvailable": "that of the job counts",
    "VolcanoTask.partitionPolicy": "a gang has no gangs within it",
    "VolcanoTask.topologyPolicy": "pods are placed on NUMA nodes by Muster",
    "VolcanoPolicy.timeout": "what is to be done is done at once",
    "VolcanoQueue.affinity": "jobs name pools",
    "VolcanoQueue.dequeueStrategy": "later jobs start where they do not delay earlier ones",
    "VolcanoQueue.extendClusters": "jobs name clusters",
    "VolcanoQueue.type": "there is one kind of queue",
    "KaiQueue.preemptMinRuntime": "job classes say who is preempted, and when",
    "KaiQueue.reclaimMinRuntime": "job classes say who is preempted, and when",
    "VolcanoPodGroup.minResources": _OWN_AMOUNTS,
    "VolcanoPodGroup.minTaskMember": "minMember counts",
    "VolcanoPodGroup.networkTopology": "name a topology level with pod affinity",
    "VolcanoPodGroup.priorityClassName": "the pods' own class counts",
    "VolcanoPodGroup.subGroupPolicy": "a gang has no gangs within it",
    "KaiPodGroup.backoffLimit": _PATIENT,
    "KaiPodGroup.markUnschedulable": _PATIENT,
    "KaiPodGroup.parentReference": "a gang has no gangs within it",
    "KaiPodGroup.preemptibility": "the job class says who is preempted",
    "KaiPodGroup.priorityClassName": "the pods' own class counts",
    "KaiPodGroup.schedulingBackoff": _PATIENT,
    "KaiPodGroup.subGroups": "a gang has no gangs within it",
    "KaiPodGroup.topologyConstraint": "name a topology level with pod affinity",
    "NativePodGroup.disruptionMode": "a gang is preempted whole",
    "NativePodGroup.priority": "the pods' own class counts",
    "NativePodGroup.priorityClassName": "the pods' own class counts",
    "NativePodGroup.schedulingConstraints": "name a topology level with pod affinity",
    "NativeWorkload.podGroupTemplates": "groups are made by whoever makes PodGroups of them",
}
REFUSED: dict[str, str] = {
    "RunPolicy.managedBy": "Muster runs it itself; leave it out",
    "VolcanoJob.volumes": "name volumes in the templates of the tasks",
    "NativePodGroup.resourceClaims": "ask for nvidia.com/gpu",
    "NativeTemplate.resourceClaims": "ask for nvidia.com/gpu",
}
_HARMLESS: dict[str, tuple[Any, ...]] = {
    "MPIJob.launcherCreationPolicy": ("AtStartup",),
    "RunPolicy.managedBy": ("kubeflow.org/training-operator", "kubeflow.org/mpi-operator"),
    "VolcanoJob.schedulerName": ("volcano",),
    "VolcanoQueue.dequeueStrategy": ("traverse",),
    "ClusterQueue.queueingStrategy": ("BestEffortFIFO",),
    "ClusterQueue.stopPolicy": ("None",),
    "LocalQueue.stopPolicy": ("None",),
}


class Known(Value):
    """One field. of: its type's name. is_list, is_map: there are many of them."""

    name: str
    of: str
    is_list: bool = False
    is_map: bool = False
    is_needed: bool = False
    treatment: Treatment = Treatment.USED
    note: str = ""


@cache
def table() -> dict[str, dict[str, Known]]:
    """By type, then by field."""
    found: dict[str, dict[str, Known]] = {}
    for line in _TYPES.replace("\n    ", " ").strip().splitlines():
        name, _, fields = line.partition(":")
        found[name] = {each.name: each for each in map(_field, [name] * 99, fields.split())}
    return found


def _field(type_: str, written: str) -> Known:
    name, _, kind = written.partition("=")
    at = f"{type_}.{name}"
    treatment = Treatment.USED
    if at in WARNED:
        treatment = Treatment.WARNED
    elif at in REFUSED:
        treatment = Treatment.REFUSED
    return Known(
        name=name,
        of=kind.rstrip("!").strip("[]{}"),
        is_list=kind.startswith("["),
        is_map=kind.startswith("{"),
        is_needed=kind.endswith("!"),
        treatment=treatment,
        note=WARNED.get(at) or REFUSED.get(at, ""),
    )


@cache
def schema_of_type(name: str) -> Schema:
    """The schema of a type; of one that is not in the table, what is known of plain ones."""
    if name in _PLAIN:
        return _PLAIN[name]
    fields = table()[name]
    found: Schema = {
        "type": "object",
        "properties": {each.name: _schema_of(each) for each in fields.values()},
    }
    needed = [each.name for each in fields.values() if each.is_needed]
    return {**found, "required": needed} if needed else found


def _schema_of(field: Known) -> Schema:
    inner = schema_of_type(field.of)
    if field.is_list:
        return {"type": "array", "items": inner}
    if field.is_map:
        return {"type": "object", "additionalProperties": inner}
    return inner


class Met(Value):
    """A field that an object has, and where."""

    path: str
    at: str
    field: Known
    value: Any


def met(spec: JsonObject, type_: str, path: str = "spec") -> Iterator[Met]:
    """Every field that is in the table, in the object's order."""
    for name, value in spec.items():
        field = table()[type_].get(name)
        if field is None or value is None:
            continue
        yield Met(path=f"{path}.{name}", at=f"{type_}.{name}", field=field, value=value)
        if field.of in table():
            yield from _inside(value, field, f"{path}.{name}")


def _inside(value: Any, field: Known, path: str) -> Iterator[Met]:
    if field.is_list and isinstance(value, list):
        for place, each in enumerate(cast("list[Any]", value)):
            if isinstance(each, dict):
                yield from met(cast("JsonObject", each), field.of, f"{path}[{place}]")
    elif field.is_map and isinstance(value, dict):
        for key, each in cast("JsonObject", value).items():
            if isinstance(each, dict):
                yield from met(cast("JsonObject", each), field.of, f"{path}[{key}]")
    elif isinstance(value, dict):
        yield from met(cast("JsonObject", value), field.of, path)


def warnings(spec: JsonObject, type_: str) -> tuple[str, ...]:
    """What is asked for and has no effect."""
    return tuple(
        f"{each.path} has no effect: {each.field.note}"
        for each in met(spec, type_)
        if each.field.treatment is Treatment.WARNED and not _is_harmless(each)
    )


def refusals(spec: JsonObject, type_: str) -> list[Cause]:
    """What is asked for and cannot be had here."""
    return [
        forbidden_field(each.path, f"Muster does not support it: {each.field.note}")
        for each in met(spec, type_)
        if each.field.treatment is Treatment.REFUSED and not _is_harmless(each)
    ]


def _is_harmless(each: Met) -> bool:
    return each.value in ("", [], {}, False) or each.value in _HARMLESS.get(each.at, ())
