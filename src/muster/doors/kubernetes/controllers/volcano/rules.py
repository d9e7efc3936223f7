"""Defaults and checks of Volcano Jobs."""

from muster.doors.kubernetes.controllers.specs.fields import PodSpecs
from muster.doors.kubernetes.controllers.volcano.sync import AGAIN, ENDS
from muster.doors.kubernetes.controllers.volcano.tasks import MOST_RETRIES
from muster.doors.kubernetes.objects.errors import Cause, duplicate, invalid, required
from muster.doors.kubernetes.objects.rules import Rules
from muster.doors.kubernetes.objects.value import JsonObject, copied, is_map, items, part

MOST_REPLICAS = 5_000
"""Of one task: as many as a large cluster has nodes, so that a slip of the pen is refused."""

ACTIONS = frozenset({*AGAIN, *ENDS})


def volcano_rules(pods: PodSpecs) -> Rules:
    """What a Volcano Job adds. pods: what is known of the specs of pods."""

    def validate(job: JsonObject, _: JsonObject | None) -> list[Cause]:
        return _causes(job, pods)

    return Rules(default=_defaulted, validate=validate)


def _defaulted(job: JsonObject) -> JsonObject:
    spec = job.setdefault("spec", {})
    if not isinstance(spec, dict):
        return job
    own = part(job, "spec")
    own.setdefault("maxRetry", MOST_RETRIES)
    own.setdefault("queue", "default")
    for place, task in enumerate(items(job, "spec", "tasks")):
        if is_map(task):
            task.setdefault("name", f"default{place}")
            task.setdefault("replicas", 1)
    return job


def _causes(job: JsonObject, pods: PodSpecs) -> list[Cause]:
    tasks = items(job, "spec", "tasks")
    if not tasks:
        return [required("spec.tasks", "must be specified")]
    causes: list[Cause] = []
    names: set[str] = set()
    for place, task in enumerate(tasks):
        here = f"spec.tasks[{place}]"
        name = str(task.get("name"))
        if name in names:
            causes.append(duplicate(f"{here}.name", name))
        names.add(name)
        causes += _task_causes(job, task, here, pods)
    wanted, there = int(part(job, "spec").get("minAvailable") or 0), 0
    there = sum(int(each.get("replicas") or 0) for each in tasks)
    if wanted < 0 or wanted > there:
        text = f"must be between 0 and the number of replicas, {there}"
        causes.append(invalid("spec.minAvailable", wanted, text))
    return causes + _policy_causes(items(job, "spec", "policies"), "spec.policies")


def _task_causes(job: JsonObject, task: JsonObject, here: str, pods: PodSpecs) -> list[Cause]:
    causes = _policy_causes(items(task, "policies"), f"{here}.policies")
    count = int(task.get("replicas") or 0)
    if not 0 <= count <= MOST_REPLICAS:
        text = f"must be between 0 and {MOST_REPLICAS}"
        causes.append(invalid(f"{here}.replicas", count, text))
    spec = {"restartPolicy": "OnFailure", **copied(part(task, "template", "spec"))}
    if not items(spec, "containers"):
        return [*causes, required(f"{here}.template.spec.containers", "must be specified")]
    pods.fill(job, spec)
    return [*causes, *pods.causes(spec, f"{here}.template.spec")]


def _policy_causes(policies: list[JsonObject], here: str) -> list[Cause]:
    causes: list[Cause] = []
    for place, each in enumerate(policies):
        if each.get("action") not in ACTIONS:
            text = f"must be one of {', '.join(sorted(ACTIONS))}"
            causes.append(invalid(f"{here}[{place}].action", str(each.get("action")), text))
        if not (each.get("event") or each.get("events") or each.get("exitCode")):
            causes.append(required(f"{here}[{place}].event", "say an event or an exitCode"))
    return causes
