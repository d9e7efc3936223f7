"""Defaults and checks of training jobs."""

from muster.doors.kubernetes.controllers.kubeflow.framework import Framework
from muster.doors.kubernetes.controllers.specs.fields import PodSpecs
from muster.doors.kubernetes.objects.errors import Cause, invalid, required
from muster.doors.kubernetes.objects.rules import Rules
from muster.doors.kubernetes.objects.value import JsonObject, copied, items, part


def training_rules(framework: Framework, pods: PodSpecs) -> Rules:
    """What one kind of training job adds. pods: what is known of the specs of pods."""

    def default(job: JsonObject) -> JsonObject:
        return _defaulted(framework, job)

    def validate(job: JsonObject, _: JsonObject | None) -> list[Cause]:
        return _causes(framework, job, pods)

    return Rules(default=default, validate=validate)


def _defaulted(framework: Framework, job: JsonObject) -> JsonObject:
    spec = job.setdefault("spec", {})
    if not isinstance(spec, dict):
        return job
    part(job, "spec").setdefault("runPolicy", {})
    part(job, "spec", "runPolicy").setdefault("cleanPodPolicy", "None")
    for name, value in framework.defaults.items():
        part(job, "spec").setdefault(name, value)
    specs = part(job, "spec", framework.field)
    known = {role.lower(): role for role in framework.roles}
    for name in tuple(specs):
        role = known.get(name.lower(), name)
        specs[role] = specs.pop(name)
        if isinstance(specs[role], dict):
            own = part(specs, role)
            own.setdefault("replicas", 1)
            own.setdefault("restartPolicy", framework.restart)
    return job


def _causes(framework: Framework, job: JsonObject, pods: PodSpecs) -> list[Cause]:
    at = f"spec.{framework.field}"
    specs = part(job, "spec", framework.field)
    if not specs:
        return [required(at, "must be specified")]
    causes: list[Cause] = []
    for role in specs:
        here = f"{at}[{role}]"
        if role not in framework.roles:
            text = f"must be one of {', '.join(framework.roles)}"
            causes.append(invalid(here, role, text))
            continue
        causes += _replica_causes(framework, part(specs, role), here)
        # What the replicas say of restarting is put in the place of what their template says.
        spec = {**copied(part(specs, role, "template", "spec")), "restartPolicy": "Never"}
        if items(spec, "containers"):
            pods.fill(job, spec)
            causes += pods.causes(spec, f"{here}.template.spec")
    first = framework.leader(job)
    if first and int(part(specs, first).get("replicas") or 0) != 1:
        count = part(specs, first).get("replicas")
        causes.append(invalid(f"{at}[{first}].replicas", count, "must be 1"))
    return causes


def _replica_causes(framework: Framework, spec: JsonObject, here: str) -> list[Cause]:
    containers = items(spec, "template", "spec", "containers")
    if not containers:
        return [required(f"{here}.template.spec.containers", "must be specified")]
    causes: list[Cause] = []
    if not any(each.get("name") == framework.container for each in containers):
        text = f"must have at least one container with name {framework.container}"
        causes.append(required(f"{here}.template.spec.containers", text))
    if int(spec.get("replicas") or 0) < 0:
        text = "must be greater than or equal to 0"
        causes.append(invalid(f"{here}.replicas", spec.get("replicas"), text))
    return causes
