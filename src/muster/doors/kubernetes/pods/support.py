"""What becomes of every field of a pod's spec: one table, which code, tests and docs read.

A field is used, refused, or has no effect, of which the user is warned. None is dropped silently.
"""

from collections.abc import Iterator
from enum import StrEnum
from typing import Any, cast

from muster.doors.kubernetes.objects.errors import Cause, forbidden_field
from muster.doors.kubernetes.objects.value import JsonObject
from muster.model.value import Value


class Treatment(StrEnum):
    """What Muster does with a field."""

    USED = "used"
    WARNED = "no effect, with a warning"
    REFUSED = "refused"


class Field(Value):
    """One field of one part of the schema.

    of: the part that its value is, or each of its items. note: for people.
    harmless: values that mean what Muster does anyway.
    """

    name: str
    of: str = ""
    treatment: Treatment = Treatment.USED
    note: str = ""
    harmless: tuple[Any, ...] = ()


_USED = """
PodSpec: activeDeadlineSeconds affinity:Affinity automountServiceAccountToken containers:Container
    enableServiceLinks hostAliases:HostAlias hostname hostnameOverride initContainers:Container
    nodeName nodeSelector
    os:PodOS overhead priority priorityClassName readinessGates:PodReadinessGate
    resources:ResourceRequirements restartPolicy schedulingGates:PodSchedulingGate
    schedulingGroup:PodSchedulingGroup
    securityContext:PodSecurityContext serviceAccount serviceAccountName
    terminationGracePeriodSeconds tolerations:Toleration
    topologySpreadConstraints:TopologySpreadConstraint volumes:Volume
Affinity: nodeAffinity:NodeAffinity podAffinity:PodAffinity podAntiAffinity:PodAffinity
NodeAffinity: preferredDuringSchedulingIgnoredDuringExecution:PreferredSchedulingTerm
    requiredDuringSchedulingIgnoredDuringExecution:NodeSelector
PreferredSchedulingTerm: preference:NodeSelectorTerm weight
NodeSelector: nodeSelectorTerms:NodeSelectorTerm
NodeSelectorTerm: matchExpressions:NodeSelectorRequirement matchFields:NodeSelectorRequirement
NodeSelectorRequirement: key operator values
PodAffinity: requiredDuringSchedulingIgnoredDuringExecution:PodAffinityTerm
PodAffinityTerm: labelSelector:LabelSelector topologyKey
LabelSelector: matchExpressions:LabelSelectorRequirement matchLabels
LabelSelectorRequirement: key operator values
Container: args command env:EnvVar envFrom:EnvFromSource image imagePullPolicy lifecycle:Lifecycle
    livenessProbe:Probe name ports:ContainerPort readinessProbe:Probe
    resources:ResourceRequirements restartPolicy securityContext:SecurityContext
    startupProbe:Probe stdin stdinOnce terminationMessagePath terminationMessagePolicy tty
    volumeMounts:VolumeMount workingDir
EnvVar: name value valueFrom:EnvVarSource
EnvVarSource: configMapKeyRef:KeySelector fieldRef:ObjectFieldSelector
    resourceFieldRef:ResourceFieldSelector secretKeyRef:KeySelector
KeySelector: key name optional
ObjectFieldSelector: apiVersion fieldPath
ResourceFieldSelector: containerName divisor resource
EnvFromSource: configMapRef:EnvSource prefix secretRef:EnvSource
EnvSource: name optional
Lifecycle: postStart:LifecycleHandler preStop:LifecycleHandler stopSignal
LifecycleHandler: exec:ExecAction httpGet:HTTPGetAction sleep:SleepAction tcpSocket:TCPSocketAction
ExecAction: command
HTTPGetAction: host httpHeaders:HTTPHeader path port scheme
HTTPHeader: name value
SleepAction: seconds
TCPSocketAction: host port
Probe: exec:ExecAction failureThreshold grpc:GRPCAction httpGet:HTTPGetAction initialDelaySeconds
    periodSeconds successThreshold tcpSocket:TCPSocketAction terminationGracePeriodSeconds
    timeoutSeconds
GRPCAction: port service
ContainerPort: containerPort name protocol
ResourceRequirements: limits requests
SecurityContext: allowPrivilegeEscalation capabilities:Capabilities privileged
    readOnlyRootFilesystem runAsGroup runAsNonRoot runAsUser
Capabilities: add drop
VolumeMount: mountPath name readOnly subPath subPathExpr
HostAlias: hostnames ip
PodOS: name
PodReadinessGate: conditionType
PodSchedulingGate: name
PodSchedulingGroup: podGroupName
PodSecurityContext: runAsGroup runAsNonRoot runAsUser supplementalGroups
Toleration: effect key operator value
TopologySpreadConstraint: labelSelector:LabelSelector maxSkew topologyKey whenUnsatisfiable
Volume: configMap:ConfigMapVolumeSource downwardAPI:DownwardAPIVolumeSource
    emptyDir:EmptyDirVolumeSource hostPath:HostPathVolumeSource name
    projected:ProjectedVolumeSource secret:SecretVolumeSource
ConfigMapVolumeSource: defaultMode items:KeyToPath name optional
SecretVolumeSource: defaultMode items:KeyToPath optional secretName
KeyToPath: key mode path
DownwardAPIVolumeSource: defaultMode items:DownwardAPIVolumeFile
DownwardAPIVolumeFile: fieldRef:ObjectFieldSelector mode path
    resourceFieldRef:ResourceFieldSelector
EmptyDirVolumeSource: medium
HostPathVolumeSource: path type
ProjectedVolumeSource: defaultMode sources:VolumeProjection
VolumeProjection: configMap:ObjectProjection downwardAPI:DownwardAPIVolumeSource
    secret:ObjectProjection serviceAccountToken:ServiceAccountTokenProjection
ObjectProjection: items:KeyToPath name optional
ServiceAccountTokenProjection: audience expirationSeconds path
"""

_OWN_NETWORK = "processes have the machine's own network and names"
_NOT_ONE_MACHINE = "is not a volume of this machine; use hostPath, emptyDir, configMap or secret"

_WARNED: dict[str, tuple[str, tuple[Any, ...]]] = {
    "PodSpec.dnsConfig": (_OWN_NETWORK, ()),
    "PodSpec.dnsPolicy": (_OWN_NETWORK, ("ClusterFirst", "Default")),
    "PodSpec.hostUsers": ("processes have the uid of the person who created the pod", (True,)),
    "PodSpec.imagePullSecrets": ("images are fetched with the machine's own credentials", ()),
    "PodSpec.preemptionPolicy": (
        "the job class says whom it preempts",
        ("PreemptLowerPriority",),
    ),
    "PodSpec.runtimeClassName": (
        "its class counts, and Muster's container tool runs every pod",
        ("nvidia",),
    ),
    "PodSpec.schedulerName": ("Muster schedules every pod", ("default-scheduler", "muster")),
    "PodSpec.setHostnameAsFQDN": (_OWN_NETWORK, (False,)),
    "PodSpec.shareProcessNamespace": ("each container sees its own processes", (False,)),
    "PodSpec.subdomain": (_OWN_NETWORK, ()),
    "PodAffinity.preferredDuringSchedulingIgnoredDuringExecution": (
        "only required rules about other pods are kept",
        (),
    ),
    "Container.resizePolicy": ("resources do not change while a pod runs", ()),
    "ContainerPort.hostIP": (_OWN_NETWORK, ()),
    "ContainerPort.hostPort": (_OWN_NETWORK, ()),
    "EmptyDirVolumeSource.sizeLimit": ("the size of an emptyDir is not limited", ()),
    "SecurityContext.appArmorProfile": ("the machine's own profile is kept", ()),
    "SecurityContext.procMount": ("the default is kept", ("Default",)),
    "SecurityContext.seLinuxOptions": ("the machine's own labels are kept", ()),
    "SecurityContext.seccompProfile": (
        "the container tool's own profile is kept",
        ({"type": "RuntimeDefault"},),
    ),
    "PodSecurityContext.appArmorProfile": ("the machine's own profile is kept", ()),
    "PodSecurityContext.fsGroup": ("files of volumes are the person's; root may choose", ()),
    "PodSecurityContext.fsGroupChangePolicy": ("files of volumes belong to the person", ()),
    "PodSecurityContext.seLinuxChangePolicy": ("the machine's own labels are kept", ()),
    "PodSecurityContext.seLinuxOptions": ("the machine's own labels are kept", ()),
    "PodSecurityContext.seccompProfile": (
        "the container tool's own profile is kept",
        ({"type": "RuntimeDefault"},),
    ),
    "PodSecurityContext.supplementalGroupsPolicy": (
        "groups are those of the person",
        ("Merge",),
    ),
    "Toleration.tolerationSeconds": ("no taint of Muster ends a pod that runs", (300,)),
    "TopologySpreadConstraint.matchLabelKeys": ("pods are not spread by it", ()),
    "TopologySpreadConstraint.minDomains": ("pods are not spread by it", ()),
    "TopologySpreadConstraint.nodeAffinityPolicy": ("pods are not spread by it", ()),
    "TopologySpreadConstraint.nodeTaintsPolicy": ("pods are not spread by it", ()),
    "VolumeMount.mountPropagation": ("mounts do not propagate", ("None",)),
    "VolumeMount.recursiveReadOnly": ("what is mounted below is as it is", ("Disabled",)),
}

_OF_POD_SECURITY = "by Pod Security"
_SECURED = ("hostIPC", "hostNetwork", "hostPID")

_REFUSED: dict[str, str] = {
    **{f"PodSpec.{name}": _OF_POD_SECURITY for name in _SECURED},
    "PodSpec.ephemeralContainers": "are added to a pod that runs; use exec",
    "PodSpec.resourceClaims": "ask for nvidia.com/gpu",
    "PodAffinityTerm.matchLabelKeys": "name the label in the selector",
    "PodAffinityTerm.mismatchLabelKeys": "name the label in the selector",
    "PodAffinityTerm.namespaceSelector": "the pods of all namespaces count",
    "PodAffinityTerm.namespaces": "the pods of all namespaces count",
    "Container.restartPolicyRules": "use restartPolicy",
    "Container.volumeDevices": "there are no block devices",
    "EnvVarSource.fileKeyRef": "read the file in the container",
    "ResourceRequirements.claims": "ask for nvidia.com/gpu",
    "SecurityContext.windowsOptions": "this is Linux",
    "PodSecurityContext.sysctls": _OF_POD_SECURITY,
    "PodSecurityContext.windowsOptions": "this is Linux",
    "VolumeProjection.clusterTrustBundle": "there are no trust bundles",
    "VolumeProjection.podCertificate": "there are no certificates of pods",
    **{
        f"Volume.{name}": _NOT_ONE_MACHINE
        for name in (
            "awsElasticBlockStore azureDisk azureFile cephfs cinder csi ephemeral fc flexVolume "
            "flocker gcePersistentDisk gitRepo glusterfs image iscsi nfs persistentVolumeClaim "
            "photonPersistentDisk portworxVolume quobyte rbd scaleIO storageos vsphereVolume"
        ).split()
    },
}
_HARMLESS_REFUSED: dict[str, tuple[Any, ...]] = {
    **{f"PodSpec.{name}": (False,) for name in _SECURED},
    "PodAffinityTerm.namespaceSelector": ({},),
}


def _table() -> dict[str, dict[str, Field]]:
    found: dict[str, dict[str, Field]] = {}
    for line in _USED.replace("\n    ", " ").strip().splitlines():
        name, _, fields = line.partition(":")
        parts = found.setdefault(name, {})
        for each in fields.split():
            field, _, of = each.partition(":")
            parts[field] = Field(name=field, of=of)
    for where, (note, harmless) in _WARNED.items():
        name, _, field = where.partition(".")
        found[name][field] = Field(
            name=field, treatment=Treatment.WARNED, note=note, harmless=harmless
        )
    for where, note in _REFUSED.items():
        name, _, field = where.partition(".")
        harmless = _HARMLESS_REFUSED.get(where, ())
        found[name][field] = Field(
            name=field, treatment=Treatment.REFUSED, note=note, harmless=harmless
        )
    return found


TABLE = _table()
"""By part of the schema, then by field."""


class Met(Value):
    """A field that a spec has, and where."""

    path: str
    field: Field
    value: Any


def met(spec: JsonObject, path: str = "spec") -> Iterator[Met]:
    """Every field that the spec has, in its order."""
    yield from _met(spec, "PodSpec", path)


def _met(found: JsonObject, name: str, path: str) -> Iterator[Met]:
    for key, value in found.items():
        field, at = TABLE[name].get(key), f"{path}.{key}"
        if field is None or value is None:
            # The schema has no such field: strict decoding says so, before this.
            continue
        yield Met(path=at, field=field, value=value)
        if not field.of:
            continue
        if isinstance(value, dict):
            yield from _met(cast("JsonObject", value), field.of, at)
        elif isinstance(value, list):
            for place, item in enumerate(cast("list[Any]", value)):
                if isinstance(item, dict):
                    yield from _met(cast("JsonObject", item), field.of, f"{at}[{place}]")


def warnings(spec: JsonObject) -> tuple[str, ...]:
    """What the pod asks for and has no effect, in words for its user."""
    return tuple(
        f"{each.path} has no effect: {each.field.note}"
        for each in met(spec)
        if each.field.treatment is Treatment.WARNED and not _is_harmless(each)
    )


def refusals(spec: JsonObject, path: str = "spec") -> tuple[Cause, ...]:
    """What the pod asks for and cannot have here; what Pod Security refuses, it says itself."""
    return tuple(
        forbidden_field(each.path, f"Muster does not support it: {each.field.note}")
        for each in met(spec, path)
        if each.field.treatment is Treatment.REFUSED
        and each.field.note != _OF_POD_SECURITY
        and not _is_harmless(each)
    )


def _is_harmless(each: Met) -> bool:
    nothing: tuple[Any, ...] = (
        ("", [], {}) if each.field.treatment is Treatment.WARNED else ("", [])
    )
    return each.value in nothing or each.value in each.field.harmless


def page() -> str:
    """The table as the docs show it: one row for each field that is not simply used."""
    rows = [
        f"| {name} | `{field.name}` | {field.treatment} | {field.note} |"
        for name, fields in TABLE.items()
        for field in sorted(fields.values(), key=lambda each: each.name)
        if field.treatment is not Treatment.USED
    ]
    used = [
        f"- **{name}**: "
        + ", ".join(
            f"`{each}`" for each in sorted(fields) if fields[each].treatment is Treatment.USED
        )
        for name, fields in TABLE.items()
    ]
    head = ("| part | field | what becomes of it | |", "|---|---|---|---|")
    return "\n".join((*head, *rows, "", "Used:", "", *used)) + "\n"
