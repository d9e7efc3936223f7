"""The kinds that this door serves: one row each. Discovery, paths and messages follow from it."""

from muster.doors.kubernetes.objects.value import Kind, Subresource
from muster.model.value import replace
from muster.telemetry.device_families import ROWS

ALL_VERBS = ("create", "delete", "deletecollection", "get", "list", "patch", "update", "watch")
ONE_BY_ONE = tuple(verb for verb in ALL_VERBS if verb != "deletecollection")
READ_WRITE = ("get", "patch", "update")
CREATE = ("create",)
CONNECT = ("create", "get")

RBAC = "rbac.authorization.k8s.io"
AUTHENTICATION = "authentication.k8s.io"
AUTHORIZATION = "authorization.k8s.io"
APIEXTENSIONS = "apiextensions.k8s.io"
APIREGISTRATION = "apiregistration.k8s.io"
ADMISSION = "admissionregistration.k8s.io"
CERTIFICATES = "certificates.k8s.io"
FLOW_CONTROL = "flowcontrol.apiserver.k8s.io"
NETWORKING = "networking.k8s.io"
STORAGE = "storage.k8s.io"
METRICS = "metrics.k8s.io"
CUSTOM_METRICS = "custom.metrics.k8s.io"

DEVICE_METRICS = tuple(sorted(metric.name for metric, _ in ROWS))
"""What is told of pods by their GPUs."""

SCALE = Subresource(name="scale", verbs=READ_WRITE, kind="Scale", group="autoscaling", version="v1")
TOKEN = Subresource(
    name="token", verbs=CREATE, kind="TokenRequest", group=AUTHENTICATION, version="v1"
)
FINALIZE = Subresource(name="finalize", verbs=("update",), kind="Namespace")
OF_PODS = (
    Subresource(name="attach", verbs=CONNECT, kind="PodAttachOptions"),
    Subresource(name="binding", verbs=CREATE, kind="Binding"),
    Subresource(name="ephemeralcontainers", verbs=READ_WRITE, kind="Pod"),
    Subresource(name="eviction", verbs=CREATE, kind="Eviction", group="policy", version="v1"),
    Subresource(name="exec", verbs=CONNECT, kind="PodExecOptions"),
    Subresource(name="log", verbs=("get",), kind="Pod"),
    Subresource(name="portforward", verbs=CONNECT, kind="PodPortForwardOptions"),
    Subresource(name="resize", verbs=READ_WRITE, kind="Pod"),
)


def _kind(group: str, kind: str, plural: str, *short: str) -> Kind:
    """A row as most are: in namespaces, with all verbs, and nothing below it."""
    return Kind(
        group=group,
        version="v1",
        kind=kind,
        plural=plural,
        singular=kind.lower(),
        verbs=ALL_VERBS,
        short_names=short,
    )


def _with(kind: Kind, *subresources: Subresource) -> Kind:
    """With these below it, and a status that controllers write."""
    status = Subresource(name="status", verbs=READ_WRITE, kind=kind.kind)
    named = sorted((*subresources, status), key=lambda each: each.name)
    return replace(kind, subresources=tuple(named))


def _in_all(kind: Kind) -> Kind:
    """`kubectl get all` shows it."""
    return replace(kind, categories=("all",))


def _cluster_wide(kind: Kind) -> Kind:
    return replace(kind, namespaced=False)


def _of_extensions(kind: Kind) -> Kind:
    """It changes the API itself, for everybody."""
    return replace(_cluster_wide(kind), categories=("api-extensions",))


def _shown_last(kind: Kind) -> Kind:
    """Its type is what the API promises to who deletes one; elsewhere it is a Status."""
    return replace(kind, is_shown_last=True)


def _review(kind: Kind) -> Kind:
    """A question: it is answered when it is created, and not kept."""
    return replace(kind, verbs=CREATE, is_stored=False)


BINDING = _review(_kind("", "Binding", "bindings"))
CONFIG_MAP = _kind("", "ConfigMap", "configmaps", "cm")
ENDPOINTS = _kind("", "Endpoints", "endpoints", "ep")
EVENT = _kind("", "Event", "events", "ev")
LIMIT_RANGE = _kind("", "LimitRange", "limitranges", "limits")
NAMESPACE = replace(
    _cluster_wide(_with(_kind("", "Namespace", "namespaces", "ns"), FINALIZE)), verbs=ONE_BY_ONE
)
NODE = _cluster_wide(_with(_kind("", "Node", "nodes", "no")))
PERSISTENT_VOLUME_CLAIM = _shown_last(
    _with(_kind("", "PersistentVolumeClaim", "persistentvolumeclaims", "pvc"))
)
PERSISTENT_VOLUME = _shown_last(
    _cluster_wide(_with(_kind("", "PersistentVolume", "persistentvolumes", "pv")))
)
POD = _shown_last(_in_all(_with(_kind("", "Pod", "pods", "po"), *OF_PODS)))
POD_TEMPLATE = _shown_last(_kind("", "PodTemplate", "podtemplates"))
REPLICATION_CONTROLLER = _in_all(
    _with(_kind("", "ReplicationController", "replicationcontrollers", "rc"), SCALE)
)
RESOURCE_QUOTA = _shown_last(_with(_kind("", "ResourceQuota", "resourcequotas", "quota")))
SECRET = _kind("", "Secret", "secrets")
SERVICE_ACCOUNT = replace(
    _shown_last(_kind("", "ServiceAccount", "serviceaccounts", "sa")), subresources=(TOKEN,)
)
SERVICE = _shown_last(_in_all(_with(_kind("", "Service", "services", "svc"))))

MUTATING_POLICY = _of_extensions(
    _kind(ADMISSION, "MutatingAdmissionPolicy", "mutatingadmissionpolicies")
)
MUTATING_POLICY_BINDING = _of_extensions(
    _kind(ADMISSION, "MutatingAdmissionPolicyBinding", "mutatingadmissionpolicybindings")
)
MUTATING_WEBHOOK = _of_extensions(
    _kind(ADMISSION, "MutatingWebhookConfiguration", "mutatingwebhookconfigurations")
)
VALIDATING_POLICY = _of_extensions(
    _with(_kind(ADMISSION, "ValidatingAdmissionPolicy", "validatingadmissionpolicies"))
)
VALIDATING_POLICY_BINDING = _of_extensions(
    _kind(ADMISSION, "ValidatingAdmissionPolicyBinding", "validatingadmissionpolicybindings")
)
VALIDATING_WEBHOOK = _of_extensions(
    _kind(ADMISSION, "ValidatingWebhookConfiguration", "validatingwebhookconfigurations")
)

CRD = _of_extensions(
    _with(
        _kind(APIEXTENSIONS, "CustomResourceDefinition", "customresourcedefinitions", "crd", "crds")
    )
)
API_SERVICE = _of_extensions(_with(_kind(APIREGISTRATION, "APIService", "apiservices")))

CONTROLLER_REVISION = _kind("apps", "ControllerRevision", "controllerrevisions")
DAEMON_SET = _in_all(_with(_kind("apps", "DaemonSet", "daemonsets", "ds")))
DEPLOYMENT = _in_all(_with(_kind("apps", "Deployment", "deployments", "deploy"), SCALE))
REPLICA_SET = _in_all(_with(_kind("apps", "ReplicaSet", "replicasets", "rs"), SCALE))
STATEFUL_SET = _in_all(_with(_kind("apps", "StatefulSet", "statefulsets", "sts"), SCALE))

SELF_SUBJECT_REVIEW = _cluster_wide(
    _review(_kind(AUTHENTICATION, "SelfSubjectReview", "selfsubjectreviews"))
)
TOKEN_REVIEW = _cluster_wide(_review(_kind(AUTHENTICATION, "TokenReview", "tokenreviews")))

LOCAL_SUBJECT_ACCESS_REVIEW = _review(
    _kind(AUTHORIZATION, "LocalSubjectAccessReview", "localsubjectaccessreviews")
)
SELF_SUBJECT_ACCESS_REVIEW = _cluster_wide(
    _review(_kind(AUTHORIZATION, "SelfSubjectAccessReview", "selfsubjectaccessreviews"))
)
SELF_SUBJECT_RULES_REVIEW = _cluster_wide(
    _review(_kind(AUTHORIZATION, "SelfSubjectRulesReview", "selfsubjectrulesreviews"))
)
SUBJECT_ACCESS_REVIEW = _cluster_wide(
    _review(_kind(AUTHORIZATION, "SubjectAccessReview", "subjectaccessreviews"))
)

HORIZONTAL_POD_AUTOSCALER = replace(
    _in_all(
        _with(_kind("autoscaling", "HorizontalPodAutoscaler", "horizontalpodautoscalers", "hpa"))
    ),
    version="v2",
)

CRON_JOB = _in_all(_with(_kind("batch", "CronJob", "cronjobs", "cj")))
JOB = _in_all(_with(_kind("batch", "Job", "jobs")))

CSR = _cluster_wide(
    _with(
        _kind(CERTIFICATES, "CertificateSigningRequest", "certificatesigningrequests", "csr"),
        Subresource(name="approval", verbs=READ_WRITE, kind="CertificateSigningRequest"),
    )
)

LEASE = _kind("coordination.k8s.io", "Lease", "leases")
ENDPOINT_SLICE = _kind("discovery.k8s.io", "EndpointSlice", "endpointslices")

FLOW_SCHEMA = _cluster_wide(_with(_kind(FLOW_CONTROL, "FlowSchema", "flowschemas")))
PRIORITY_LEVEL = _cluster_wide(
    _with(_kind(FLOW_CONTROL, "PriorityLevelConfiguration", "prioritylevelconfigurations"))
)

INGRESS_CLASS = _cluster_wide(_kind(NETWORKING, "IngressClass", "ingressclasses"))
INGRESS = _with(_kind(NETWORKING, "Ingress", "ingresses", "ing"))
IP_ADDRESS = _cluster_wide(_kind(NETWORKING, "IPAddress", "ipaddresses", "ip"))
NETWORK_POLICY = _kind(NETWORKING, "NetworkPolicy", "networkpolicies", "netpol")
SERVICE_CIDR = _cluster_wide(_with(_kind(NETWORKING, "ServiceCIDR", "servicecidrs")))

RUNTIME_CLASS = _cluster_wide(_kind("node.k8s.io", "RuntimeClass", "runtimeclasses"))
POD_DISRUPTION_BUDGET = _with(_kind("policy", "PodDisruptionBudget", "poddisruptionbudgets", "pdb"))

CLUSTER_ROLE_BINDING = _cluster_wide(_kind(RBAC, "ClusterRoleBinding", "clusterrolebindings"))
CLUSTER_ROLE = _cluster_wide(_kind(RBAC, "ClusterRole", "clusterroles"))
ROLE_BINDING = _kind(RBAC, "RoleBinding", "rolebindings")
ROLE = _kind(RBAC, "Role", "roles")

CSI_DRIVER = _shown_last(_cluster_wide(_kind(STORAGE, "CSIDriver", "csidrivers")))
CSI_NODE = _shown_last(_cluster_wide(_kind(STORAGE, "CSINode", "csinodes")))
CSI_CAPACITY = _kind(STORAGE, "CSIStorageCapacity", "csistoragecapacities")
STORAGE_CLASS = _shown_last(_cluster_wide(_kind(STORAGE, "StorageClass", "storageclasses", "sc")))
VOLUME_ATTACHMENT = _cluster_wide(_with(_kind(STORAGE, "VolumeAttachment", "volumeattachments")))
VOLUME_ATTRIBUTES_CLASS = _cluster_wide(
    _kind(STORAGE, "VolumeAttributesClass", "volumeattributesclasses", "vac")
)

PRIORITY_CLASS = _cluster_wide(_kind("scheduling.k8s.io", "PriorityClass", "priorityclasses", "pc"))

NODE_METRICS = Kind(
    group=METRICS,
    version="v1beta1",
    kind="NodeMetrics",
    plural="nodes",
    singular="",
    verbs=("get", "list"),
    namespaced=False,
    is_stored=False,
)
POD_METRICS = Kind(
    group=METRICS,
    version="v1beta1",
    kind="PodMetrics",
    plural="pods",
    singular="",
    verbs=("get", "list"),
    is_stored=False,
)
# Only parts of pods are served there: one for each metric.
POD_METRIC_VALUES = Kind(
    group=CUSTOM_METRICS,
    version="v1beta2",
    kind="MetricValueList",
    plural="pods",
    singular="",
    verbs=(),
    is_stored=False,
    subresources=tuple(
        Subresource(name=name, verbs=("get",), kind="MetricValueList") for name in DEVICE_METRICS
    ),
)
MEASURED = frozenset({NODE_METRICS, POD_METRICS, POD_METRIC_VALUES})
"""Answered from what is measured now."""

KINDS: tuple[Kind, ...] = (
    BINDING,
    CONFIG_MAP,
    ENDPOINTS,
    EVENT,
    LIMIT_RANGE,
    NAMESPACE,
    NODE,
    PERSISTENT_VOLUME_CLAIM,
    PERSISTENT_VOLUME,
    POD,
    POD_TEMPLATE,
    REPLICATION_CONTROLLER,
    RESOURCE_QUOTA,
    SECRET,
    SERVICE_ACCOUNT,
    SERVICE,
    API_SERVICE,
    CONTROLLER_REVISION,
    DAEMON_SET,
    DEPLOYMENT,
    REPLICA_SET,
    STATEFUL_SET,
    SELF_SUBJECT_REVIEW,
    TOKEN_REVIEW,
    LOCAL_SUBJECT_ACCESS_REVIEW,
    SELF_SUBJECT_ACCESS_REVIEW,
    SELF_SUBJECT_RULES_REVIEW,
    SUBJECT_ACCESS_REVIEW,
    HORIZONTAL_POD_AUTOSCALER,
    CRON_JOB,
    JOB,
    CSR,
    INGRESS_CLASS,
    INGRESS,
    IP_ADDRESS,
    NETWORK_POLICY,
    SERVICE_CIDR,
    POD_DISRUPTION_BUDGET,
    CLUSTER_ROLE_BINDING,
    CLUSTER_ROLE,
    ROLE_BINDING,
    ROLE,
    CSI_DRIVER,
    CSI_NODE,
    CSI_CAPACITY,
    STORAGE_CLASS,
    VOLUME_ATTACHMENT,
    VOLUME_ATTRIBUTES_CLASS,
    MUTATING_POLICY,
    MUTATING_POLICY_BINDING,
    MUTATING_WEBHOOK,
    VALIDATING_POLICY,
    VALIDATING_POLICY_BINDING,
    VALIDATING_WEBHOOK,
    CRD,
    PRIORITY_CLASS,
    LEASE,
    RUNTIME_CLASS,
    ENDPOINT_SLICE,
    FLOW_SCHEMA,
    PRIORITY_LEVEL,
    NODE_METRICS,
    POD_METRICS,
    POD_METRIC_VALUES,
)
"""In the order in which discovery lists groups; within a group by name of the resource."""

BY_KIND: dict[tuple[str, str], Kind] = {(each.api_version, each.kind): each for each in KINDS}
"""Found by what an object says of itself: apiVersion and kind."""


def kind_of(obj: dict[str, object]) -> Kind | None:
    """The kind that an object says it is of, if this door serves it."""
    return BY_KIND.get((str(obj.get("apiVersion")), str(obj.get("kind"))))
