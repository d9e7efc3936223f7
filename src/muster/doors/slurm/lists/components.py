"""Heterogeneous jobs: one of our jobs with several groups is a row for each of its components."""

from collections.abc import Sequence

from muster.doors.slurm.lists.jobs import JobRow, asked_amount
from muster.doors.slurm.submit.labels import LABEL, OF_COMPONENT
from muster.model.job import Job
from muster.model.steps import Step, StepPart
from muster.model.value import replace

HET = "het"
"""The groups of a job's later components are named after it: `het1`, `het2`."""


def parts(row: JobRow) -> list[JobRow]:
    """The row itself, or one for each component where a job has several."""
    groups = row.job.spec.groups
    if len(groups) == 1 or not any(group.name.startswith(HET) for group in groups):
        return [row]
    names = list(dict.fromkeys(_name(group.name) for group in groups))
    return [_part(row, place, name) for place, name in enumerate(names)]


def all_parts(rows: list[JobRow]) -> list[JobRow]:
    """Every row in its components."""
    return [part for row in rows for part in parts(row)]


def steps_in(steps: Sequence[Step], component: int | None) -> list[Step]:
    """What steps are in one component of their job; None: it has but one, and they may have more.

    What is shown of a step that has parts is one of them.
    """
    found: list[Step] = []
    for step in steps:
        if step.parts:
            mine = [part for part in step.parts if component in {None, part.component}]
            found += [_as_part(step, part) for part in mine]
        elif not component:
            found.append(step)
    return found


def _as_part(step: Step, part: StepPart) -> Step:
    return replace(
        step,
        name=part.name,
        command=part.command,
        tasks=part.tasks,
        nodes=part.nodes,
        amount=part.amount,
        code=part.code,
        signal=part.signal,
        used=part.used,
        parts=(part,),
    )


def component_count(job: Job) -> int:
    """How many components a job has; most have one."""
    return len({_name(group.name) for group in job.spec.groups})


def is_of_component(group: str, number: int) -> bool:
    """Do the tasks of this group belong to that component?"""
    return _name(group) == (f"{HET}{number}" if number else "main")


def _name(group: str) -> str:
    """Tasks that do not divide evenly have a second group, `main-more`."""
    return group.removesuffix("-more") if group.startswith(HET) else "main"


def _part(row: JobRow, place: int, name: str) -> JobRow:
    job = row.job
    spec = replace(
        job.spec,
        groups=tuple(each for each in job.spec.groups if _name(each.name) == name),
        name=row.label(f"job-name-{place}") or job.spec.name,
        labels=_labels(row, place),
    )
    part = replace(job, spec=spec)
    view = replace(row.view, job=part)
    held = view.allocation
    if held is not None:
        placed = tuple(each for each in held.placements if _name(each.group) == name)
        view = replace(view, allocation=replace(held, placements=placed or held.placements))
    attempt = row.attempt
    if attempt is not None:
        where = {
            node
            for group, nodes in attempt.nodes_of.items()
            if _name(group) == name
            for node in nodes
        }
        nodes = tuple(sorted(where)) or attempt.nodes
        attempt = replace(attempt, nodes=nodes, amount=asked_amount(part))
    made = JobRow(view, row.listing, attempt)
    made.component, made.launch_of = place, row.launch_of
    return made


def _labels(row: JobRow, place: int) -> dict[str, str]:
    """What was asked for this component stands where that of the whole job stood."""
    own = {name: row.label(f"{name}-{place}") for name in OF_COMPONENT}
    kept = {
        name: value
        for name, value in row.job.spec.labels.items()
        if name.removeprefix(LABEL) not in own
    }
    return kept | {LABEL + name: value for name, value in own.items() if value is not None}
