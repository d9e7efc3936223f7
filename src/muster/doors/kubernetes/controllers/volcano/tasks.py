"""The tasks of a Volcano Job: which pods they are, and how each is called."""

from collections.abc import Iterator

from muster.doors.kubernetes.objects.value import JsonObject, items, name_of, part
from muster.model.value import Value

SPEC_NAME = "volcano.sh/task-spec"
INDEX = "volcano.sh/task-index"
JOB_NAME = "volcano.sh/job-name"
JOB_RETRY = "volcano.sh/job-version"
MOST_RETRIES = 3


class Task(Value):
    """Pods of one template."""

    name: str
    replicas: int
    spec: JsonObject


class Member(Value):
    """One pod of a task."""

    task: Task
    index: int

    def name_in(self, job: JsonObject) -> str:
        return f"{name_of(job)}-{self.task.name}-{self.index}"


def tasks_of(job: JsonObject) -> list[Task]:
    """In the order in which they are written."""
    return [
        Task(name=str(each.get("name")), replicas=int(each.get("replicas") or 0), spec=each)
        for each in items(job, "spec", "tasks")
    ]


def members(job: JsonObject) -> Iterator[Member]:
    """Every pod that the job wants."""
    for task in tasks_of(job):
        for index in range(task.replicas):
            yield Member(task=task, index=index)


def total(job: JsonObject) -> int:
    return sum(each.replicas for each in tasks_of(job))


def least(job: JsonObject) -> int:
    """So many start together."""
    said = part(job, "spec").get("minAvailable")
    return total(job) if not said else min(int(said), total(job))


def group_name(job: JsonObject) -> str:
    """The name of its PodGroup."""
    return f"{name_of(job)}-{job['metadata']['uid']}"


def plugin(job: JsonObject, name: str) -> list[str] | None:
    """What a plugin is told; None for one that is not asked for."""
    plugins = part(job, "spec", "plugins")
    return list(plugins.get(name) or []) if name in plugins else None
