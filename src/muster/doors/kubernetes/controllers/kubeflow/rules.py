"""Defaults and checks of training jobs."""

from muster.doors.kubernetes.controllers.kubeflow.framework import Framework
from muster.doors.kubernetes.controllers.specs.fields import PodSpecs
from muster.doors.kubernetes.objects.errors import Cause, invalid, required
from muster.doors.kubernetes.objects.rules import Rules
from muster.doors.kubernetes.objects.value import JsonObject, copied, items, part

MOST_REPLICAS = 5_000
"""Of one role: as many as a large cluster has nodes, so that a slip of the pen is refused."""


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
    leader = framework.leader(job)
    if leader and leader not in specs:
        causes.append(required(f"{at}[{leader}]", "must be specified"))
    for role in sorted(framework.once & specs.keys()):
        count = part(specs, role).get("replicas")
        if count != 1:
            causes.append(invalid(f"{at}[{role}].replicas", count, "must be 1"))
    return causes


def _replica_causes(framework: Framework, spec: JsonObject, here: str) -> list[Cause]:
    containers = items(spec, "template", "spec", "containers")
    if not containers:
        return [required(f"{here}.template.spec.containers", "must be specified")]
    causes: list[Cause] = []
    named = [each.get("name") for each in containers]
    if framework.container and framework.container not in named:
        text = f"must have at least one container with name {framework.container}"
        causes.append(required(f"{here}.template.spec.containers", text))
    count = int(spec.get("replicas") or 0)
    if count < 0:
        causes.append(invalid(f"{here}.replicas", count, "must be greater than or equal to 0"))
    if count > MOST_REPLICAS:
        text = f"must be less than or equal to {MOST_REPLICAS}"
        causes.append(invalid(f"{here}.replicas", count, text))
    return causes
