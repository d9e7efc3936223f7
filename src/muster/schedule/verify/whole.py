"""A job gets all the tasks it must have, each of them once."""

from collections.abc import Iterator

from muster.model.job import Job, TaskGroup
from muster.model.placement import Placement
from muster.schedule.verify.additions import Addition, Kind, group_of
from muster.schedule.verify.case import Case
from muster.schedule.verify.violation import Violation


def groups_are_whole(case: Case) -> Iterator[Violation]:
    """A Start or Clear places between `fewest` and `count` tasks of each group, indices 0..n-1."""
    for addition in case.fresh:
        job, placements, known = addition.job, addition.placements, 0
        for group in job.spec.groups:
            indices = [each.index for each in placements if each.group == group.name]
            known += len(indices)
            text = _unwhole(group, indices)
            if text is not None:
                yield Violation(rule="whole", subject=f"job {job.id}", text=text)
        if known != len(placements):
            yield from _strays(job, placements)


def resizes_go_on(case: Case) -> Iterator[Violation]:
    """A Resize is allowed by policy and cluster, comes once, and goes on where the job stopped.

    The job is not preempted in the same plan, and no group exceeds its `count`.
    """
    seen = {preempt.job for preempt in case.preempts}
    for addition in case.additions:
        if addition.kind is not Kind.RESIZE:
            continue
        if addition.job.id in seen:
            text = "It is resized twice, or resized and preempted."
            yield Violation(rule="resize", subject=f"job {addition.job.id}", text=text)
        seen.add(addition.job.id)
        yield from _strays(addition.job, addition.placements)
        for text in _resize_faults(case, addition):
            yield Violation(rule="resize", subject=f"job {addition.job.id}", text=text)
    for resize in case.resizes:
        if resize.job not in case.snapshot.jobs:
            text = "It is resized, and does not exist."
            yield Violation(rule="resize", subject=f"job {resize.job}", text=text)


def _strays(job: Job, placements: tuple[Placement, ...]) -> Iterator[Violation]:
    for placement in placements:
        if group_of(job, placement.group) is None:
            text = f"It has no group {placement.group}."
            yield Violation(rule="whole", subject=f"job {job.id}", text=text)


def _unwhole(group: TaskGroup, indices: list[int]) -> str | None:
    placed = len(indices)
    if not group.fewest <= placed <= group.count:
        return (
            f"Group {group.name} gets {placed} tasks, "
            f"and wants from {group.fewest} to {group.count}."
        )
    if indices != [0] and sorted(indices) != list(range(placed)):
        return f"The {placed} tasks of group {group.name} are not numbered from 0 without gaps."
    return None


def _resize_faults(case: Case, addition: Addition) -> Iterator[str]:
    cluster = case.snapshot.clusters.get(addition.cluster)
    if not case.plan.policy.grow:
        yield "Policy lets no job grow."
    if cluster is not None and not cluster.abilities.resize:
        yield f"Cluster {cluster.name} cannot resize."
    allocation = case.snapshot.allocations.get(addition.job.id)
    if allocation is None:
        yield "It holds nothing to which something could be added."
        return
    for group in addition.job.spec.groups:
        had = [each.index for each in allocation.placements if each.group == group.name]
        more = [each.index for each in addition.placements if each.group == group.name]
        if more and len(had) + len(more) > group.count:
            yield f"Group {group.name} gets {len(had) + len(more)} tasks, and wants {group.count}."
        if sorted(more) != list(range(len(had), len(had) + len(more))):
            yield f"The new tasks of group {group.name} are not numbered on from {len(had)}."
