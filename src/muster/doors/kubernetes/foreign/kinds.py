"""The built-in kinds of other projects: served as if their definitions were installed."""

from functools import cache

from muster.doors.kubernetes.foreign.fields import refusals, schema_of_type, warnings
from muster.doors.kubernetes.objects.custom import CustomKind, custom_rules
from muster.doors.kubernetes.objects.errors import Cause
from muster.doors.kubernetes.objects.kinds import ALL_VERBS, READ_WRITE
from muster.doors.kubernetes.objects.rules import Column, Default, Rules
from muster.doors.kubernetes.objects.schemas.types import OBJECT_META, PREFIX, Schema
from muster.doors.kubernetes.objects.value import JsonObject, Kind, Subresource, part
from muster.doors.kubernetes.pods.gang_marks import COSCHEDULING, KAI, NATIVE, VOLCANO
from muster.model.value import Value, replace

KUBEFLOW = "kubeflow.org"
KUEUE = "kueue.x-k8s.io"
VOLCANO_BATCH = "batch.volcano.sh"
_BETAS = ("v1beta1", "v1beta2")
_PENDING = ("Pending Workloads", "integer", ".status.pendingWorkloads")
_ADMITTED = ("Admitted Workloads", "integer", ".status.admittedWorkloads")
_AGE = ("Age", "date", ".metadata.creationTimestamp")
_STATE = ("State", "string", ".status.conditions[-1:].type")


class Definition(Value):
    """One kind. type: of its spec, in the table of fields; columns: name, type and path each.

    wide: how many of the last columns are shown with `-o wide` only.
    """

    group: str
    kind: str
    plural: str
    type: str
    versions: tuple[str, ...] = ("v1",)
    short_names: tuple[str, ...] = ()
    namespaced: bool = True
    columns: tuple[tuple[str, str, str], ...] = (_AGE,)
    wide: int = 0
    has_status: bool = True


DEFINITIONS: tuple[Definition, ...] = (
    Definition(
        group=KUBEFLOW,
        kind="PyTorchJob",
        plural="pytorchjobs",
        type="PyTorchJob",
        columns=(_STATE, _AGE),
    ),
    Definition(
        group=KUBEFLOW,
        kind="TFJob",
        plural="tfjobs",
        type="TFJob",
        columns=(_STATE, _AGE),
    ),
    Definition(
        group=KUBEFLOW,
        kind="MPIJob",
        plural="mpijobs",
        type="MPIJob",
        versions=("v2beta1", "v1"),
        columns=(_STATE, _AGE),
    ),
    Definition(
        group=KUEUE,
        kind="ResourceFlavor",
        plural="resourceflavors",
        type="ResourceFlavor",
        versions=_BETAS,
        short_names=("flavor", "flavors", "rf"),
        namespaced=False,
        has_status=False,
    ),
    Definition(
        group=KUEUE,
        kind="ClusterQueue",
        plural="clusterqueues",
        type="ClusterQueue",
        versions=_BETAS,
        short_names=("cq",),
        namespaced=False,
        columns=(("Cohort", "string", ".spec.cohort"), _PENDING, _ADMITTED),
        wide=1,
    ),
    Definition(
        group=KUEUE,
        kind="Cohort",
        plural="cohorts",
        type="Cohort",
        versions=_BETAS,
        short_names=("co",),
        namespaced=False,
    ),
    Definition(
        group=KUEUE,
        kind="LocalQueue",
        plural="localqueues",
        type="LocalQueue",
        versions=_BETAS,
        short_names=("queue", "queues", "lq"),
        columns=(("ClusterQueue", "string", ".spec.clusterQueue"), _PENDING, _ADMITTED),
    ),
    Definition(
        group=KUEUE,
        kind="Workload",
        plural="workloads",
        type="KueueWorkload",
        versions=_BETAS,
        short_names=("wl",),
        columns=(
            ("Queue", "string", ".spec.queueName"),
            ("Reserved in", "string", ".status.admission.clusterQueue"),
            ("Admitted", "string", ".status.conditions[?(@.type=='Admitted')].status"),
            ("Finished", "string", ".status.conditions[?(@.type=='Finished')].status"),
            _AGE,
        ),
    ),
    Definition(
        group=VOLCANO_BATCH,
        kind="Job",
        plural="jobs",
        type="VolcanoJob",
        versions=("v1alpha1",),
        short_names=("vcjob", "vj"),
        columns=(
            ("STATUS", "string", ".status.state.phase"),
            ("minAvailable", "integer", ".status.minAvailable"),
            ("RUNNINGS", "integer", ".status.running"),
            ("AGE", "date", ".metadata.creationTimestamp"),
            ("QUEUE", "string", ".spec.queue"),
        ),
        wide=1,
    ),
    Definition(
        group=VOLCANO,
        kind="Queue",
        plural="queues",
        type="VolcanoQueue",
        versions=("v1beta1",),
        short_names=("q", "queue-v1beta1"),
        namespaced=False,
        columns=(
            ("PARENT", "string", ".spec.parent"),
            ("WEIGHT", "integer", ".spec.weight"),
            ("STATE", "string", ".status.state"),
        ),
    ),
    Definition(
        group=KAI,
        kind="Queue",
        plural="queues",
        type="KaiQueue",
        versions=("v2",),
        namespaced=False,
        columns=(
            ("Priority", "integer", ".spec.priority"),
            ("Parent", "string", ".spec.parentQueue"),
            ("DisplayName", "string", ".spec.displayName"),
            _AGE,
        ),
    ),
    Definition(
        group=COSCHEDULING,
        kind="PodGroup",
        plural="podgroups",
        type="CoschedulingPodGroup",
        versions=("v1alpha1",),
        short_names=("pg", "pgs"),
        columns=(
            ("Phase", "string", ".status.phase"),
            ("MinMember", "integer", ".spec.minMember"),
            ("Running", "integer", ".status.running"),
            ("Succeeded", "integer", ".status.succeeded"),
            ("Failed", "integer", ".status.failed"),
            _AGE,
        ),
    ),
    Definition(
        group=VOLCANO,
        kind="PodGroup",
        plural="podgroups",
        type="VolcanoPodGroup",
        versions=("v1beta1",),
        short_names=("pg", "podgroup-v1beta1"),
        columns=(
            ("STATUS", "string", ".status.phase"),
            ("minMember", "integer", ".spec.minMember"),
            ("RUNNINGS", "integer", ".status.running"),
            ("AGE", "date", ".metadata.creationTimestamp"),
            ("QUEUE", "string", ".spec.queue"),
        ),
        wide=1,
    ),
    Definition(
        group=KAI,
        kind="PodGroup",
        plural="podgroups",
        type="KaiPodGroup",
        versions=("v2alpha2",),
    ),
    Definition(
        group=NATIVE,
        kind="PodGroup",
        plural="podgroups",
        type="NativePodGroup",
        versions=("v1alpha2",),
    ),
    Definition(
        group=NATIVE,
        kind="Workload",
        plural="workloads",
        type="NativeWorkload",
        versions=("v1alpha2",),
        has_status=False,
    ),
)


@cache
def foreign_kinds() -> dict[tuple[str, str, str], CustomKind]:
    """All of them, by group, version and plural."""
    return {
        (each.group, version, each.plural): _custom_kind(each, version)
        for each in DEFINITIONS
        for version in each.versions
    }


def in_every_version(kind: Kind) -> tuple[Kind, ...]:
    """A built-in kind in each of its versions."""
    every = (each.kind for each in foreign_kinds().values())
    return tuple(each for each in every if each.qualified_kind == kind.qualified_kind)


def foreign_kind(api_version: str, kind: str) -> Kind | None:
    """The built-in kind that a reference or an object names."""
    return _by_name().get((api_version, kind))


@cache
def _by_name() -> dict[tuple[str, str], Kind]:
    every = (each.kind for each in foreign_kinds().values())
    return {(each.api_version, each.kind): each for each in every}


def _the(kind: str, group: str) -> Kind:
    """A kind, of its newest version."""
    found = [
        each.kind
        for each in foreign_kinds().values()
        if (each.kind.kind, each.kind.group) == (kind, group)
    ]
    return found[-1]


def _custom_kind(definition: Definition, version: str) -> CustomKind:
    status = Subresource(name="status", verbs=READ_WRITE, kind=definition.kind)
    kind = Kind(
        group=definition.group,
        version=version,
        kind=definition.kind,
        plural=definition.plural,
        singular=definition.kind.lower(),
        verbs=ALL_VERBS,
        namespaced=definition.namespaced,
        short_names=definition.short_names,
        subresources=(status,) if definition.has_status else (),
        is_custom=True,
    )
    return CustomKind(kind=kind, schema=_schema(definition, kind), columns=_columns(definition))


def _columns(definition: Definition) -> tuple[tuple[Column, str], ...]:
    narrow = len(definition.columns) - definition.wide
    return tuple(
        (Column(name=name, type=type_, priority=0 if place < narrow else 1), path)
        for place, (name, type_, path) in enumerate(definition.columns)
    )


def _schema(definition: Definition, kind: Kind) -> Schema:
    named = {"group": kind.group, "version": kind.version, "kind": kind.kind}
    backwards = ".".join(reversed(kind.group.split(".")))
    properties: Schema = {
        "apiVersion": {"type": "string"},
        "kind": {"type": "string"},
        "metadata": {"allOf": [{"$ref": f"{PREFIX}{OBJECT_META}"}]},
        "spec": schema_of_type(definition.type),
    }
    if definition.has_status:
        properties["status"] = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    return {
        "type": "object",
        "properties": properties,
        "name": f"{backwards}.{kind.version}.{kind.kind}",
        "x-custom": True,
        "x-kubernetes-group-version-kind": [named],
    }


def foreign_rules(custom: CustomKind, added: Rules) -> Rules:
    """Defaults and checks of one of them: those of its schema and table, and those added."""
    type_ = definition_of(custom.kind).type
    plain = custom_rules(custom)
    default: Default | None = added.default or plain.default

    def validate(obj: JsonObject, old: JsonObject | None) -> list[Cause]:
        causes = plain.validate(obj, old) if plain.validate is not None else []
        causes += refusals(part(obj, "spec"), type_)
        return causes or (added.validate(obj, old) if added.validate is not None else [])

    return replace(added, default=default, validate=validate)


def queue_family(kind: Kind) -> tuple[Kind, ...] | None:
    """The kinds that are queues of ours together with this one, of whatever version it is."""
    for family in QUEUE_FAMILIES:
        if any((each.group, each.kind) == (kind.group, kind.kind) for each in family):
            return family
    return None


def foreign_warnings(kind: Kind, obj: JsonObject) -> tuple[str, ...]:
    """What an object asks for and has no effect."""
    return warnings(part(obj, "spec"), definition_of(kind).type)


def definition_of(kind: Kind) -> Definition:
    return next(each for each in DEFINITIONS if (each.group, each.kind) == (kind.group, kind.kind))


RESOURCE_FLAVOR = _the("ResourceFlavor", KUEUE)
CLUSTER_QUEUE = _the("ClusterQueue", KUEUE)
COHORT = _the("Cohort", KUEUE)
LOCAL_QUEUE = _the("LocalQueue", KUEUE)
KUEUE_WORKLOAD = _the("Workload", KUEUE)
OF_KUEUE = (RESOURCE_FLAVOR, COHORT, CLUSTER_QUEUE, LOCAL_QUEUE)
"""Kinds that are queues and pools of ours."""

VOLCANO_QUEUE = _the("Queue", VOLCANO)
KAI_QUEUE = _the("Queue", KAI)
VOLCANO_JOB = _the("Job", VOLCANO_BATCH)
QUEUE_FAMILIES = (OF_KUEUE, (VOLCANO_QUEUE,), (KAI_QUEUE,))
"""Kinds that are queues of ours; those of a family are looked at together."""

PYTORCH_JOB = _the("PyTorchJob", KUBEFLOW)
TF_JOB = _the("TFJob", KUBEFLOW)
MPI_JOB = _the("MPIJob", KUBEFLOW)
POD_GROUPS = {group: _the("PodGroup", group) for group in (COSCHEDULING, VOLCANO, KAI, NATIVE)}
