from typing import Any

import pytest
import yaml

from muster.doors.kubernetes.catalogue import rules_of
from muster.doors.kubernetes.objects.errors import Cause
from muster.doors.kubernetes.objects.kinds import kind_of
from muster.doors.kubernetes.objects.value import JsonObject, copied

NO_RESTART_POLICY = (
    'spec.template.spec.restartPolicy: Required value: valid values: "OnFailure", "Never"'
)
FAIL = """
apiVersion: batch/v1
kind: Job
metadata: {name: fail, uid: u1}
spec:
  backoffLimit: 1
  template:
    spec:
      restartPolicy: Never
      containers: [{name: main, image: "busybox:1.36", command: [sh, -c, "exit 3"]}]
"""
WEB = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, uid: u2, labels: {app: web}}
spec:
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: busybox, image: "busybox:1.36", command: [sleep, "3600"]}]}
"""
NIGHTLY = """
apiVersion: batch/v1
kind: CronJob
metadata: {name: nightly, uid: u3}
spec:
  schedule: 0 2 * * *
  jobTemplate:
    spec:
      template:
        spec: {restartPolicy: OnFailure, containers: [{name: n, image: "busybox:1.36"}]}
"""
DB = """
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: db, uid: u4}
spec:
  serviceName: db
  selector: {matchLabels: {app: db}}
  template:
    metadata: {labels: {app: db}}
    spec: {containers: [{name: main, image: "busybox:1.36"}]}
"""
AGENT = """
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: agent, uid: u5}
spec:
  selector: {matchLabels: {app: agent}}
  template:
    metadata: {labels: {app: agent}}
    spec: {containers: [{name: main, image: "busybox:1.36"}]}
"""
SCALER = """
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {name: web, uid: u6}
spec:
  maxReplicas: 4
  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}
"""
GUARD = """
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: guard, uid: u7}
spec: {selector: {matchLabels: {app: web}}, minAvailable: 1}
"""


def test_a_job_has_what_a_real_one_has() -> None:
    job = made(FAIL)

    labels = {
        "batch.kubernetes.io/controller-uid": "u1",
        "batch.kubernetes.io/job-name": "fail",
        "controller-uid": "u1",
        "job-name": "fail",
    }
    template = job["spec"].pop("template")
    assert job["spec"] == {
        "backoffLimit": 1,
        "completionMode": "NonIndexed",
        "completions": 1,
        "manualSelector": False,
        "parallelism": 1,
        "podReplacementPolicy": "TerminatingOrFailed",
        "selector": {"matchLabels": {"batch.kubernetes.io/controller-uid": "u1"}},
        "suspend": False,
    }
    assert job["metadata"]["labels"] == template["metadata"]["labels"] == labels
    assert template["spec"]["dnsPolicy"] == "ClusterFirst"


def test_a_deployment_has_what_a_real_one_has() -> None:
    spec = made(WEB)["spec"]

    template = spec.pop("template")
    assert spec == {
        "progressDeadlineSeconds": 600,
        "replicas": 1,
        "revisionHistoryLimit": 10,
        "selector": {"matchLabels": {"app": "web"}},
        "strategy": {
            "rollingUpdate": {"maxSurge": "25%", "maxUnavailable": "25%"},
            "type": "RollingUpdate",
        },
    }
    assert template["spec"]["containers"][0]["resources"] == {}
    assert template["spec"]["restartPolicy"] == "Always"


def test_limits_of_a_template_are_no_requests_yet() -> None:
    text = WEB.replace("command:", 'resources: {limits: {nvidia.com/gpu: "1"}}, command:')

    template = made(text)["spec"]["template"]

    asked = template["spec"]["containers"][0]["resources"]
    assert asked == {"limits": {"nvidia.com/gpu": "1"}}


def test_a_cron_job_has_what_a_real_one_has() -> None:
    spec = made(NIGHTLY)["spec"]

    inner = spec.pop("jobTemplate")["spec"]
    assert spec == {
        "concurrencyPolicy": "Allow",
        "failedJobsHistoryLimit": 1,
        "schedule": "0 2 * * *",
        "successfulJobsHistoryLimit": 3,
        "suspend": False,
    }
    assert list(inner) == ["template"]
    assert inner["template"]["metadata"] == {}


def test_a_daemon_set_counts_its_templates() -> None:
    first = made(AGENT)
    assert notes(first) == {"deprecated.daemonset.template.generation": "1"}

    changed = copied(first)
    changed["spec"]["template"]["spec"]["containers"][0]["image"] = "busybox:1.37"
    assert notes(made_of(changed, first)) == {"deprecated.daemonset.template.generation": "2"}
    assert notes(made_of(copied(first), first)) == notes(first)


def test_a_scaler_without_metrics_looks_at_cpu() -> None:
    spec = made(SCALER)["spec"]

    target = {"type": "Utilization", "averageUtilization": 80}
    assert spec["metrics"] == [{"type": "Resource", "resource": {"name": "cpu", "target": target}}]
    assert spec["minReplicas"] == 1


@pytest.mark.parametrize("text", [FAIL, WEB, NIGHTLY, DB, AGENT, SCALER, GUARD])
def test_what_is_right_is_left_alone(text: str) -> None:
    obj = made(text)

    assert causes(obj) == []
    assert causes(copied(obj), obj) == []


@pytest.mark.parametrize(
    ("text", "change", "expected"),
    [
        (
            FAIL,
            ("restartPolicy: Never", "restartPolicy: Always"),
            [NO_RESTART_POLICY],
        ),
        (
            FAIL,
            ("      restartPolicy: Never\n", ""),
            [NO_RESTART_POLICY],
        ),
        (
            FAIL,
            ("backoffLimit: 1", "backoffLimit: -1"),
            ["spec.backoffLimit: Invalid value: -1: must be greater than or equal to 0"],
        ),
        (FAIL, ("backoffLimit: 1", "completionMode: Indexed"), []),
        (
            FAIL,
            ("backoffLimit: 1", "backoffLimitPerIndex: 1"),
            ["spec.backoffLimitPerIndex: Invalid value: 1: requires indexed completion mode"],
        ),
        (
            WEB,
            ("spec: {containers", "spec: {restartPolicy: Never, containers"),
            [
                (
                    'spec.template.spec.restartPolicy: Unsupported value: "Never":'
                    ' supported values: "Always"'
                )
            ],
        ),
        (
            WEB,
            ("matchLabels: {app: web}", "matchLabels: {app: other}"),
            [
                (
                    'spec.template.metadata.labels: Invalid value: {"app":"web"}:'
                    " `selector` does not match template `labels`"
                )
            ],
        ),
        (
            WEB,
            ("selector: {matchLabels: {app: web}}", "replicas: -1"),
            [
                "spec.replicas: Invalid value: -1: must be greater than or equal to 0",
                "spec.selector: Required value",
            ],
        ),
        (
            NIGHTLY,
            ("schedule: 0 2 * * *", "schedule: every day"),
            [
                (
                    'spec.schedule: Invalid value: "every day": expected exactly 5 fields, found 2:'
                    " [every day]"
                )
            ],
        ),
        (
            NIGHTLY,
            ("schedule:", "timeZone: Mars/Base\n  schedule:"),
            ['spec.timeZone: Invalid value: "Mars/Base": unknown time zone Mars/Base'],
        ),
        (
            NIGHTLY,
            ("schedule:", "concurrencyPolicy: Maybe\n  schedule:"),
            [
                (
                    'spec.concurrencyPolicy: Unsupported value: "Maybe": supported values: "Allow",'
                    ' "Forbid", "Replace"'
                )
            ],
        ),
        (
            SCALER,
            ("maxReplicas: 4", "minReplicas: 4\n  maxReplicas: 1"),
            ["spec.maxReplicas: Invalid value: 1: must be greater than or equal to `minReplicas`"],
        ),
        (
            GUARD,
            ("minAvailable: 1", "minAvailable: 120%"),
            ['spec.minAvailable: Invalid value: "120%": must not be greater than 100%'],
        ),
        (
            DB,
            ("serviceName: db", "volumeClaimTemplates: [{metadata: {name: data}}]"),
            [
                (
                    "spec.volumeClaimTemplates: Forbidden: Muster keeps no"
                    " PersistentVolumeClaims: use emptyDir or hostPath volumes instead"
                )
            ],
        ),
    ],
)
def test_what_is_wrong_is_said_as_kubernetes_says_it(
    text: str, change: tuple[str, str], expected: list[str]
) -> None:
    assert change[0] in text

    found = causes(made(text.replace(*change)))

    assert found == expected


@pytest.mark.parametrize(
    ("text", "change", "expected"),
    [
        (FAIL, {"completions": 5}, ["spec.completions: Invalid value: 5: field is immutable"]),
        (FAIL, {"parallelism": 3, "suspend": True}, []),
        (
            WEB,
            {"selector": {"matchLabels": {"app": "other"}}},
            [
                (
                    'spec.template.metadata.labels: Invalid value: {"app":"web"}:'
                    " `selector` does not match template `labels`"
                ),
                'spec.selector: Invalid value: {"matchLabels":{"app":"other"}}: field is immutable',
            ],
        ),
        (
            DB,
            {"serviceName": "other"},
            [
                (
                    "spec: Forbidden: updates to statefulset spec for fields other than 'replicas',"
                    " 'ordinals', 'template', 'updateStrategy', 'revisionHistoryLimit',"
                    " 'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are forbidden"
                )
            ],
        ),
        (DB, {"replicas": 3, "minReadySeconds": 5}, []),
    ],
)
def test_what_may_not_change_is_said_as_kubernetes_says_it(
    text: str, change: dict[str, Any], expected: list[str]
) -> None:
    old = made(text)
    new = copied(old)
    new["spec"] |= change

    assert causes(new, old) == expected


def test_a_suspended_job_may_still_choose_where_it_runs() -> None:
    old = made(FAIL)
    old["spec"]["suspend"] = True
    new = copied(old)
    new["spec"]["template"]["spec"]["nodeSelector"] = {"zone": "a"}
    assert causes(new, old) == []

    old["spec"]["suspend"] = False
    found = causes(new, old)

    assert len(found) == 1
    assert found[0].startswith("spec.template: Invalid value: ")
    assert found[0].endswith(": field is immutable")


def made(text: str) -> JsonObject:
    return made_of(yaml.safe_load(text), None)


def made_of(obj: JsonObject, old: JsonObject | None) -> JsonObject:
    """As the server has it when it is about to look for faults."""
    kind = kind_of(obj)
    assert kind is not None
    rules = rules_of(kind)
    filled = rules.default(obj) if rules.default else obj
    return rules.prepare(filled, old) if rules.prepare else filled


def causes(obj: JsonObject, old: JsonObject | None = None) -> list[str]:
    kind = kind_of(obj)
    assert kind is not None
    validate = rules_of(kind).validate
    assert validate is not None
    return [line(each) for each in validate(obj, old)]


def line(cause: Cause) -> str:
    return f"{cause.field}: {cause.message}"


def notes(obj: JsonObject) -> dict[str, str]:
    return obj["metadata"]["annotations"]
