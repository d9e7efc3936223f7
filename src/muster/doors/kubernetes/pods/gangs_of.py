"""The pods of a gang as the one job that they are: each is a task of it. Pure.

So the planner starts them whole or not at all: see docs/decisions/0062-gangs-are-one-job.md.
"""

import re
from collections.abc import Iterable, Sequence

from muster.doors.kubernetes.objects.value import (
    JsonObject,
    annotations_of,
    labels_of,
    name_of,
)
from muster.doors.kubernetes.pods.gang_marks import GANG_LEADER
from muster.doors.kubernetes.pods.pod_of import slug
from muster.doors.request.parse import Wanted
from muster.model.job import NODE_LEVEL, JobSpec, TaskGroup, Together, Where
from muster.model.launch import Launch
from muster.model.pod import PodGang
from muster.model.value import Value, replace


class Member(Value):
    """A pod of a gang that is to start, and the job that it would be alone."""

    pod: JsonObject
    wanted: Wanted


class DifferError(Exception):
    """The pods of a gang cannot be one job; the text says why."""


def is_leader(pod: JsonObject) -> bool:
    """Does the gang end as this pod does?"""
    return annotations_of(pod).get(GANG_LEADER) == "true"


def in_order(pods: Iterable[JsonObject]) -> list[JsonObject]:
    """As people count them: leaders first, and `worker-2` before `worker-10`."""
    return sorted(pods, key=lambda pod: (not is_leader(pod), _counting(name_of(pod))))


def _counting(name: str) -> list[tuple[int, str]]:
    return [
        (int(each), "") if each.isdecimal() else (-1, each)
        for each in re.split(r"(\d+)", name)
        if each
    ]


def gang_job(name: str, members: Sequence[Member]) -> Wanted:
    """The one job that they are; DifferError when they cannot be."""
    specs = [each.wanted.spec for each in members]
    first = specs[0]
    for what in ("user", "queue", "job_class", "pools"):
        values = {str(getattr(each, what)) for each in specs}
        if len(values) > 1:
            raise DifferError(f"its pods differ in their {what}: {', '.join(sorted(values))}")
    groups, ranked = _groups(members)
    leader = next((rank for rank, each in enumerate(ranked) if is_leader(each.pod)), None)
    limits = [each.time_limit for each in specs if each.time_limit is not None]
    job = replace(
        first,
        name=slug(name.rpartition("/")[2]),
        groups=groups,
        time_limit=min(limits, default=None),
        labels=_shared(specs),
        launch=_launch([each.wanted.spec.launch for each in ranked], leader),
    )
    return Wanted(
        spec=job,
        held=False,
        warnings=tuple(dict.fromkeys(text for each in members for text in each.wanted.warnings)),
    )


def _launch(ranked: Sequence[Launch], leader: int | None) -> Launch:
    """Each pod knows the others by name: on one machine, they are all at its own address."""
    first = ranked[0]
    if first.adopts:
        return replace(first, adopts=tuple(pod for each in ranked for pod in each.adopts))
    pods = tuple(pod for each in ranked for pod in each.pods)
    names = tuple(dict.fromkeys((each.hostname, HERE) for each in pods))
    known = tuple(
        replace(each, aliases=tuple(dict.fromkeys((*each.aliases, *names)))) for each in pods
    )
    return replace(first, pod=known[0], gang=PodGang(pods=known, leader=leader))


HERE = "127.0.0.1"


def _groups(members: Sequence[Member]) -> tuple[tuple[TaskGroup, ...], list[Member]]:
    """Pods that ask for the same are one group; with the pods in the order of ranks."""
    alike: dict[TaskGroup, list[Member]] = {}
    for each in members:
        alike.setdefault(each.wanted.spec.groups[0], []).append(each)
    groups = tuple(
        _kept_together(
            replace(group, name=_role(found[0].pod, number), count=len(found)),
            found[0].wanted.spec,
        )
        for number, (group, found) in enumerate(alike.items())
    )
    return groups, [each for found in alike.values() for each in found]


ROLES = (
    "training.kubeflow.org/replica-type",
    "volcano.sh/task-spec",
    "batch.kubernetes.io/job-name",
)


def _role(pod: JsonObject, number: int) -> str:
    labels = {**annotations_of(pod), **labels_of(pod)}
    said = next((labels[each] for each in ROLES if labels.get(each)), "pods")
    return f"{slug(said)}{number or ''}"


def _kept_together(group: TaskGroup, spec: JobSpec) -> TaskGroup:
    """Rules about pods with labels that the gang itself has are rules within the job."""

    def is_own(key: str, value: str) -> bool:
        return spec.labels.get(key) == value

    where = group.where
    near = [rule for rule in where.near if is_own(rule.key, rule.value)]
    apart = [rule for rule in where.apart if is_own(rule.key, rule.value)]
    if not near and not apart:
        return group
    is_spread = any(rule.level == NODE_LEVEL for rule in apart)
    kept: Where = replace(
        where,
        near=tuple(rule for rule in where.near if rule not in near),
        apart=tuple(rule for rule in where.apart if rule not in apart),
        max_per_node=1 if is_spread else where.max_per_node,
    )
    if any(rule.level == NODE_LEVEL for rule in near):
        raise DifferError("its pods must be on one node: ask for more GPUs in one pod instead")
    together = Together(level=near[0].level) if near else group.together
    return replace(group, where=kept, together=together)


def _shared(specs: Sequence[JobSpec]) -> dict[str, str]:
    """Labels that all of them have."""
    first, *others = (each.labels for each in specs)
    return {
        key: value for key, value in first.items() if all(each.get(key) == value for each in others)
    }
