"""Heterogeneous jobs: one of our jobs with several groups is a row for each of its components."""

from muster.doors.slurm.jobs import JobRow, asked_amount
from muster.doors.slurm.submit import LABEL, OF_COMPONENT
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
    made = JobRow(view, row.scene, attempt)
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
