"""Requests in our words over a job that was asked for in another system's. Pure."""

from collections.abc import Collection
from typing import Any, TypeGuard

from muster.api.requests import JobFile
from muster.doors.request.bad import BadRequestError
from muster.doors.request.parse import Wanted
from muster.doors.request.table import fields_of, is_pairs
from muster.model.job import JobSpec, LabelRule, TaskGroup
from muster.model.value import Value, replace

OF_GROUPS = "groups."
COUNTS = ("tasks", "min_tasks")
OF_GPUS = ("gpu_models", "gpu_memory")


def overlaid(job: Wanted, asked: Wanted, names: Collection[str]) -> Wanted:
    """The job, with the fields of these names as they are asked for in our words."""
    for name in names:
        if name in COUNTS and len(job.spec.groups) > 1:
            raise BadRequestError(
                name, "the job has several groups of tasks; say it for each of them"
            )
        has_gpus = "gpus" in names or all(group.each.gpus for group in job.spec.groups)
        if name in OF_GPUS and not has_gpus:
            raise BadRequestError("gpus", "say how many GPUs of that kind a task needs")
    spec = job.spec
    for name in names:
        for path in fields_of(JobFile)[name].row.into.split():
            spec = _with(spec, asked.spec, path)
    return replace(
        job,
        spec=spec,
        indices=asked.indices if "array" in names else job.indices,
        at_once=asked.at_once if "array" in names else job.at_once,
        held=asked.held if "held" in names else job.held,
    )


def _with(spec: JobSpec, asked: JobSpec, path: str) -> JobSpec:
    if not path.startswith(OF_GROUPS):
        return _copied(spec, asked, path.split("."))
    way = path.removeprefix(OF_GROUPS).split(".")
    groups: tuple[TaskGroup, ...] = tuple(
        _copied(group, asked.groups[0], way) for group in spec.groups
    )
    return replace(spec, groups=groups)


def _copied(value: Any, source: Value, way: list[str]) -> Any:
    """The value with what stands at the end of the way as it is in the source."""
    first, *rest = way
    before, after = getattr(value, first), getattr(source, first)
    if rest and before is not None and after is not None:
        after = _copied(before, after, rest)
    elif not rest:
        after = _joined(before, after)
    return replace(value, **{first: after})


def _joined(before: Any, after: Any) -> Any:
    """Variables, labels and rules about labels come together; of all else the new one counts."""
    if is_pairs(after):
        return {**before, **after}
    if _are_rules(after):
        keys = {rule.key for rule in after}
        return (*(rule for rule in before if rule.key not in keys), *after)
    return after


def _are_rules(value: Any) -> TypeGuard[tuple[LabelRule, ...]]:
    return isinstance(value, tuple) and isinstance((*value, None)[0], LabelRule)
