"""The roles that every installation begins with, and what the roles of Muster are worth here."""

from muster.doors.kubernetes.objects.kinds import (
    APIEXTENSIONS,
    AUTHENTICATION,
    AUTHORIZATION,
    RBAC,
)
from muster.doors.kubernetes.objects.value import JsonObject

READ = ["get", "list", "watch"]
WRITE = ["create", "delete", "deletecollection", "patch", "update"]
BOTH = [*WRITE, *READ]

AUTHENTICATED, UNAUTHENTICATED = "system:authenticated", "system:unauthenticated"
MASTERS = "system:masters"
ANONYMOUS = "system:anonymous"

CLUSTER_ADMIN, ADMIN, EDIT, VIEW = "cluster-admin", "admin", "edit", "view"

AUTO_UPDATED = {"rbac.authorization.kubernetes.io/autoupdate": "true"}
BOOTSTRAPPING = {"kubernetes.io/bootstrapping": "rbac-defaults"}


def _rule(group: str, resources: str, verbs: list[str]) -> JsonObject:
    return {"apiGroups": [group], "resources": resources.split(), "verbs": verbs}


_READ_BY_ALL: list[JsonObject] = [
    _rule(
        "",
        "configmaps endpoints persistentvolumeclaims persistentvolumeclaims/status pods "
        "replicationcontrollers replicationcontrollers/scale serviceaccounts services "
        "services/status",
        READ,
    ),
    _rule(
        "",
        "bindings events limitranges namespaces/status pods/log pods/status "
        "replicationcontrollers/status resourcequotas resourcequotas/status",
        READ,
    ),
    _rule("", "namespaces", READ),
    _rule("discovery.k8s.io", "endpointslices", READ),
    _rule("events.k8s.io", "events", READ),
    _rule(
        "apps",
        "controllerrevisions daemonsets daemonsets/status deployments deployments/scale "
        "deployments/status replicasets replicasets/scale replicasets/status statefulsets "
        "statefulsets/scale statefulsets/status",
        READ,
    ),
    _rule("autoscaling", "horizontalpodautoscalers horizontalpodautoscalers/status", READ),
    _rule("batch", "cronjobs cronjobs/status jobs jobs/status", READ),
    _rule("policy", "poddisruptionbudgets poddisruptionbudgets/status", READ),
    # As those who install a metrics server aggregate them.
    _rule("metrics.k8s.io", "pods nodes", READ),
    _rule("custom.metrics.k8s.io", "*", READ),
]

_WRITTEN_BY_EDITORS: list[JsonObject] = [
    _rule(
        "",
        "pods/attach pods/exec pods/portforward pods/proxy secrets services/proxy",
        READ,
    ),
    _rule("", "serviceaccounts", ["impersonate"]),
    _rule("", "pods pods/attach pods/exec pods/portforward pods/proxy", WRITE),
    _rule("", "pods/eviction", ["create"]),
    _rule(
        "",
        "configmaps events persistentvolumeclaims replicationcontrollers "
        "replicationcontrollers/scale secrets serviceaccounts services services/proxy",
        WRITE,
    ),
    _rule("", "serviceaccounts/token", ["create"]),
    _rule("events.k8s.io", "events", WRITE),
    _rule(
        "apps",
        "daemonsets deployments deployments/rollback deployments/scale replicasets "
        "replicasets/scale statefulsets statefulsets/scale",
        WRITE,
    ),
    _rule("autoscaling", "horizontalpodautoscalers", WRITE),
    _rule("batch", "cronjobs jobs", WRITE),
    _rule("policy", "poddisruptionbudgets", WRITE),
    _rule("coordination.k8s.io", "leases", BOTH),
]

_RULES: dict[str, list[JsonObject]] = {
    CLUSTER_ADMIN: [
        {"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]},
        {"nonResourceURLs": ["*"], "verbs": ["*"]},
    ],
    ADMIN: [
        *_READ_BY_ALL,
        *_WRITTEN_BY_EDITORS,
        _rule(AUTHORIZATION, "localsubjectaccessreviews", ["create"]),
        _rule(RBAC, "rolebindings roles", BOTH),
    ],
    EDIT: [*_READ_BY_ALL, *_WRITTEN_BY_EDITORS],
    VIEW: _READ_BY_ALL,
    "system:basic-user": [
        _rule(AUTHORIZATION, "selfsubjectaccessreviews selfsubjectrulesreviews", ["create"]),
        _rule(AUTHENTICATION, "selfsubjectreviews", ["create"]),
    ],
    "system:discovery": [
        {
            "nonResourceURLs": [
                "/api",
                "/api/*",
                "/apis",
                "/apis/*",
                "/healthz",
                "/livez",
                "/openapi",
                "/openapi/*",
                "/readyz",
                "/version",
                "/version/",
            ],
            "verbs": ["get"],
        }
    ],
    "system:public-info-viewer": [
        {
            "nonResourceURLs": ["/healthz", "/livez", "/readyz", "/version", "/version/"],
            "verbs": ["get"],
        }
    ],
    "system:auth-delegator": [
        _rule(AUTHENTICATION, "tokenreviews", ["create"]),
        _rule(AUTHORIZATION, "subjectaccessreviews", ["create"]),
    ],
    "system:aggregate-to-crds": [
        _rule(APIEXTENSIONS, "customresourcedefinitions", READ),
    ],
}

_BOUND: dict[str, tuple[str, ...]] = {
    CLUSTER_ADMIN: (MASTERS,),
    "system:basic-user": (AUTHENTICATED,),
    "system:discovery": (AUTHENTICATED,),
    "system:public-info-viewer": (AUTHENTICATED, UNAUTHENTICATED),
}


def first_cluster_roles() -> list[JsonObject]:
    """The ClusterRoles of a new installation."""
    return [
        {
            "apiVersion": f"{RBAC}/v1",
            "kind": "ClusterRole",
            "metadata": _metadata(name),
            "rules": rules,
        }
        for name, rules in _RULES.items()
    ]


def first_bindings() -> list[JsonObject]:
    """The ClusterRoleBindings of a new installation."""
    return [
        {
            "apiVersion": f"{RBAC}/v1",
            "kind": "ClusterRoleBinding",
            "metadata": _metadata(name),
            "roleRef": {"apiGroup": RBAC, "kind": "ClusterRole", "name": name},
            "subjects": [{"apiGroup": RBAC, "kind": "Group", "name": each} for each in groups],
        }
        for name, groups in _BOUND.items()
    ]


def _metadata(name: str) -> JsonObject:
    return {"name": name, "annotations": dict(AUTO_UPDATED), "labels": dict(BOOTSTRAPPING)}
