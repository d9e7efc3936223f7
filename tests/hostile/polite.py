"""Objects of the Kubernetes API as real clients send them: what senseless ones are made from."""

from typing import Any

from muster.doors.kubernetes.objects.value import JsonObject

_PROBE = {"httpGet": {"path": "/", "port": 80}, "periodSeconds": 5, "timeoutSeconds": 1}
_CONTAINER: JsonObject = {
    "name": "main",
    "image": "busybox:1.36",
    "command": ["sh", "-c", "true"],
    "args": ["a"],
    "workingDir": "/",
    "env": [
        {"name": "A", "value": "b"},
        {"name": "B", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
        {"name": "C", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}},
    ],
    "envFrom": [{"configMapRef": {"name": "m"}}],
    "ports": [{"containerPort": 80, "name": "http", "protocol": "TCP"}],
    "resources": {"requests": {"cpu": "100m", "memory": "1Gi"}, "limits": {"nvidia.com/gpu": 1}},
    "volumeMounts": [{"name": "v", "mountPath": "/v", "subPath": "a"}],
    "livenessProbe": _PROBE,
    "readinessProbe": {"exec": {"command": ["true"]}},
    "lifecycle": {"preStop": {"exec": {"command": ["true"]}}},
    "securityContext": {"runAsNonRoot": True, "capabilities": {"drop": ["ALL"]}},
}
POD_SPEC: JsonObject = {
    "containers": [_CONTAINER],
    "initContainers": [{"name": "first", "image": "busybox"}],
    "schedulingGates": [{"name": "wait"}],
    "restartPolicy": "Never",
    "terminationGracePeriodSeconds": 5,
    "nodeSelector": {"a": "b"},
    "tolerations": [{"key": "k", "operator": "Exists", "effect": "NoSchedule"}],
    "affinity": {
        "nodeAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": {
                "nodeSelectorTerms": [
                    {"matchExpressions": [{"key": "k", "operator": "In", "values": ["v"]}]}
                ]
            }
        },
        "podAntiAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": [
                {
                    "labelSelector": {"matchLabels": {"a": "b"}},
                    "topologyKey": "kubernetes.io/hostname",
                }
            ]
        },
    },
    "topologySpreadConstraints": [
        {"maxSkew": 1, "topologyKey": "rack", "whenUnsatisfiable": "DoNotSchedule"}
    ],
    "volumes": [
        {"name": "v", "emptyDir": {"medium": "Memory", "sizeLimit": "1Mi"}},
        {"name": "w", "hostPath": {"path": "/tmp", "type": "Directory"}},
        {"name": "x", "configMap": {"name": "m", "items": [{"key": "k", "path": "p"}]}},
        {"name": "y", "projected": {"sources": [{"secret": {"name": "s"}}]}},
    ],
    "hostAliases": [{"ip": "127.0.0.1", "hostnames": ["x"]}],
    "securityContext": {"fsGroup": 100, "supplementalGroups": [100], "sysctls": []},
    "priorityClassName": "normal",
}
_TRAINING = {"spec": {**POD_SPEC, "containers": [{**_CONTAINER, "name": "pytorch"}]}}
_LABELS = {"matchLabels": {"app": "x"}}
_TEMPLATE = {"metadata": {"labels": {"app": "x"}}, "spec": POD_SPEC}
_LASTING = {**_TEMPLATE, "spec": {**POD_SPEC, "restartPolicy": "Always"}}
_JOB = {
    "parallelism": 2,
    "completions": 2,
    "backoffLimit": 1,
    "completionMode": "Indexed",
    "template": _TEMPLATE,
    "podFailurePolicy": {
        "rules": [{"action": "Ignore", "onExitCodes": {"operator": "In", "values": [3]}}]
    },
}
_RULES = [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"], "resourceNames": ["x"]}]
_SUBJECTS = [{"kind": "User", "name": "games", "apiGroup": "rbac.authorization.k8s.io"}]
_ROLE = {"kind": "Role", "name": "x", "apiGroup": "rbac.authorization.k8s.io"}
_HOOKS = [
    {
        "name": "a.b.c",
        "rules": [
            {
                "operations": ["CREATE"],
                "apiGroups": ["none"],
                "apiVersions": ["v1"],
                "resources": ["none"],
            }
        ],
        "clientConfig": {"service": {"name": "x", "namespace": "team-a", "path": "/"}},
        "timeoutSeconds": 5,
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
    }
]
_SCHEMA: JsonObject = {
    "type": "object",
    "properties": {
        "spec": {
            "type": "object",
            "required": ["size"],
            "properties": {
                "size": {"type": "integer", "minimum": 1, "maximum": 5, "default": 1},
                "name": {"type": "string", "pattern": "^[a-z]+$", "maxLength": 5},
                "list": {"type": "array", "items": {"type": "string"}},
            },
        }
    },
}
DEFINITION: JsonObject = {
    "group": "stable.example.com",
    "scope": "Namespaced",
    "names": {"plural": "crontabs", "singular": "crontab", "kind": "CronTab", "shortNames": ["ct"]},
    "versions": [
        {
            "name": "v1",
            "served": True,
            "storage": True,
            "schema": {"openAPIV3Schema": _SCHEMA},
            "additionalPrinterColumns": [
                {"name": "Size", "type": "integer", "jsonPath": ".spec.size"}
            ],
            "subresources": {"status": {}, "scale": {"specReplicasPath": ".spec.size"}},
        }
    ],
}
_REVIEWED = {"verb": "get", "resource": "pods", "namespace": "team-a"}

_FIELDS: dict[str, JsonObject] = {
    "Pod": {"spec": POD_SPEC},
    "ConfigMap": {"data": {"a": "b"}, "binaryData": {"c": "AAA="}},
    "Secret": {"data": {"a": "AAA="}, "stringData": {"b": "c"}, "type": "Opaque"},
    "Service": {
        "spec": {
            "ports": [{"port": 80, "targetPort": "http", "protocol": "TCP"}],
            "selector": {"app": "x"},
            "type": "ClusterIP",
        }
    },
    "Event": {"involvedObject": {"kind": "Pod", "name": "x"}, "reason": "R", "count": 1},
    "ResourceQuota": {"spec": {"hard": {"pods": "10", "requests.nvidia.com/gpu": "2"}}},
    "LimitRange": {"spec": {"limits": [{"type": "Container", "default": {"cpu": "1"}}]}},
    "Namespace": {"spec": {"finalizers": ["kubernetes"]}},
    "Node": {"spec": {"unschedulable": True, "taints": [{"key": "k", "effect": "NoSchedule"}]}},
    "Deployment": {
        "spec": {
            "replicas": 2,
            "selector": _LABELS,
            "template": _LASTING,
            "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": "25%"}},
            "progressDeadlineSeconds": 60,
        }
    },
    "ReplicaSet": {"spec": {"replicas": 1, "selector": _LABELS, "template": _LASTING}},
    "StatefulSet": {
        "spec": {
            "replicas": 1,
            "serviceName": "x",
            "selector": _LABELS,
            "template": _LASTING,
            "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"partition": 1}},
        }
    },
    "DaemonSet": {"spec": {"selector": _LABELS, "template": _LASTING}},
    "ReplicationController": {
        "spec": {"replicas": 1, "selector": {"app": "x"}, "template": _LASTING}
    },
    "Job": {"spec": _JOB},
    "CronJob": {
        "spec": {
            "schedule": "*/5 * * * *",
            "timeZone": "Europe/Berlin",
            "concurrencyPolicy": "Forbid",
            "jobTemplate": {"spec": _JOB},
        }
    },
    "HorizontalPodAutoscaler": {
        "spec": {
            "scaleTargetRef": {"kind": "Deployment", "name": "x", "apiVersion": "apps/v1"},
            "minReplicas": 1,
            "maxReplicas": 3,
            "metrics": [
                {
                    "type": "Resource",
                    "resource": {
                        "name": "cpu",
                        "target": {"type": "Utilization", "averageUtilization": 50},
                    },
                }
            ],
        }
    },
    "PodDisruptionBudget": {"spec": {"minAvailable": "50%", "selector": _LABELS}},
    "PriorityClass": {"value": 100, "preemptionPolicy": "Never", "description": "x"},
    "Role": {"rules": _RULES},
    "ClusterRole": {"rules": _RULES},
    "RoleBinding": {"roleRef": _ROLE, "subjects": _SUBJECTS},
    "ClusterRoleBinding": {"roleRef": {**_ROLE, "kind": "ClusterRole"}, "subjects": _SUBJECTS},
    "ValidatingWebhookConfiguration": {"webhooks": _HOOKS},
    "MutatingWebhookConfiguration": {"webhooks": _HOOKS},
    "CustomResourceDefinition": {
        "metadata": {"name": "crontabs.stable.example.com"},
        "spec": DEFINITION,
    },
    "SubjectAccessReview": {"spec": {"user": "x", "resourceAttributes": _REVIEWED}},
    "SelfSubjectAccessReview": {"spec": {"resourceAttributes": _REVIEWED}},
    "SelfSubjectRulesReview": {"spec": {"namespace": "team-a"}},
    "LocalSubjectAccessReview": {
        "metadata": {"namespace": "team-a"},
        "spec": {"user": "x", "resourceAttributes": _REVIEWED},
    },
    "TokenReview": {"spec": {"token": "x", "audiences": ["y"]}},
    "Lease": {"spec": {"holderIdentity": "x", "leaseDurationSeconds": 15}},
    "EndpointSlice": {
        "addressType": "IPv4",
        "endpoints": [{"addresses": ["10.0.0.1"], "conditions": {"ready": True}}],
        "ports": [{"name": "http", "port": 80, "protocol": "TCP"}],
    },
    "PyTorchJob": {
        "spec": {
            "nprocPerNode": "1",
            "pytorchReplicaSpecs": {
                "Master": {"replicas": 1, "restartPolicy": "Never", "template": _TRAINING},
                "Worker": {"replicas": 2, "template": _TRAINING},
            },
            "runPolicy": {"cleanPodPolicy": "None", "backoffLimit": 1},
        }
    },
    "CronTab": {"spec": {"size": 2, "name": "abc", "list": ["x"]}},
}


def fields_of(kind: str) -> dict[str, Any]:
    """What an object of this kind says beside its name; nothing for kinds without a shape here."""
    return _FIELDS.get(kind, {"spec": {"a": [{"b": 1}]}})
