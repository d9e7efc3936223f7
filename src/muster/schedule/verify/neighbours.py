"""Jobs that must not, or must, be near others."""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from itertools import chain

from muster.model.job import NODE_LEVEL, Job, JobRule
from muster.model.placement import Placement
from muster.model.value import JobId
from muster.schedule.verify.additions import Addition, Kind, Task
from muster.schedule.verify.case import Case
from muster.schedule.verify.census import Holder
from muster.schedule.verify.moments import Moment
from muster.schedule.verify.violation import Violation
from muster.schedule.verify.where import Domain, domain_of

Label = tuple[str, str]


class Whereabouts:
    """For rules about labels: which jobs are where, at the level of the rule."""

    def __init__(self, case: Case) -> None:
        self._snapshot = case.snapshot
        self._there: dict[tuple[JobRule, Domain], list[JobId]] = {}
        self.rules: dict[Label, dict[JobRule, None]] = defaultdict(dict)

    def add(self, rule: JobRule, job: Job, placements: Iterable[Placement]) -> None:
        """The job counts for the rule wherever it has these placements."""
        self.rules[rule.key, rule.value][rule] = None
        for placement in placements:
            node = self._snapshot.nodes.get(placement.node)
            domain = None if node is None else domain_of(self._snapshot, node, rule.level)
            if domain is not None:
                self._there.setdefault((rule, domain), []).append(job.id)

    def other(self, rule: JobRule, task: Task) -> JobId | None:
        """Another job that counts for the rule in the domain of the task."""
        domain = domain_of(self._snapshot, task.node, rule.level)
        there = self._there.get((rule, domain), ()) if domain is not None else ()
        return next((job for job in there if job != task.job.id), None)


def keeps_apart(case: Case) -> Iterator[Violation]:
    """`apart`: no task in the domain of another job, held or new, that carries the label.

    It goes both ways: nor next to a job whose own rule forbids this one.
    """
    choosy, labelled = case.glance.choosy, case.glance.labelled
    for moment in case.moments:
        shy = [task for task in choosy if task.group.where.apart and moment.includes(task.kind)]
        marked = [each for each in labelled if moment.includes(each.kind)]
        if shy:
            rules = {rule for task in shy for rule in task.group.where.apart}
            new = [(each.job, each.placements) for each in marked]
            everyone = chain(_who_may_carry(moment, rules), moment.passing(), new)
            yield from _shunned(shy, _carriers(case, everyone, rules), moment)
        if marked:
            labels = {label for each in marked for label in each.job.spec.labels.items()}
            new = [(task.job, (task.placement,)) for task in shy]
            everyone = chain(moment.staying.shy, moment.passing(), new)
            yield from _unwelcome(marked, _forbidders(case, everyone, labels), moment)


def has_its_company(case: Case) -> Iterator[Violation]:
    """`near`: every task in the domain of some other job, held or new, that carries the label.

    The first of its kind may go anywhere: it carries the label, and no other job that holds,
    or comes before it in the plan, does. A resumed job goes on where it was.
    """
    fond = [task for task in case.glance.choosy if task.kind is not Kind.RESUME]
    wanted = {rule for task in fond for rule in task.group.where.near}
    if not wanted:
        return
    passing = [holder for moment in case.moments for holder in moment.passing()]
    holders = [*case.staying.labelled, *passing]
    new = [(each.job, each.placements) for each in case.glance.labelled]
    carriers = _carriers(case, [*holders, *new], wanted)
    before: dict[Label, set[JobId]] = defaultdict(set)
    _note(before, (job for job, _ in holders))
    for addition in case.additions:
        for task in addition.tasks if addition.kind is not Kind.RESUME else ():
            yield from _lonely(task, carriers, before)
        _note(before, [addition.job])


def _who_may_carry(moment: Moment, rules: set[JobRule]) -> Iterable[Holder]:
    """Of those that stay, all who could come too near: where nodes count, those on the same."""
    if any(rule.level != NODE_LEVEL for rule in rules):
        return moment.staying.labelled
    standing = moment.staying.standing.values()
    return [(job, (placement,)) for sitting in standing for job, placement in sitting]


def _carriers(case: Case, everyone: Iterable[Holder], rules: set[JobRule]) -> Whereabouts:
    """Where the jobs are that carry the labels of these rules."""
    by_label: dict[Label, list[JobRule]] = {}
    for rule in rules:
        by_label.setdefault((rule.key, rule.value), []).append(rule)
    found = Whereabouts(case)
    for job, placements in everyone:
        for label in job.spec.labels.items():
            for rule in by_label.get(label, ()):
                found.add(rule, job, placements)
    return found


def _forbidders(case: Case, everyone: Iterable[Holder], labels: set[Label]) -> Whereabouts:
    """Where the groups are whose own rules keep jobs with these labels off."""
    found = Whereabouts(case)
    for job, placements in everyone:
        for group in job.spec.groups:
            for rule in group.where.apart:
                if (rule.key, rule.value) in labels:
                    theirs = [each for each in placements if each.group == group.name]
                    found.add(rule, job, theirs)
    return found


def _shunned(tasks: list[Task], carriers: Whereabouts, moment: Moment) -> Iterator[Violation]:
    for task in tasks:
        for rule in task.group.where.apart:
            other = carriers.other(rule, task)
            if other is None:
                continue
            text = (
                f"It must not share a {rule.level} with {rule.key}={rule.value}, "
                f"which job {other} is{moment.words}."
            )
            yield Violation(rule="apart", subject=f"job {task.job.id}", text=text)


def _unwelcome(
    marked: list[Addition], forbidders: Whereabouts, moment: Moment
) -> Iterator[Violation]:
    for task in [task for each in marked for task in each.tasks] if forbidders.rules else ():
        for key, value in task.job.spec.labels.items():
            for rule in forbidders.rules.get((key, value), ()):
                other = forbidders.other(rule, task)
                if other is None:
                    continue
                text = (
                    f"It is {key}={value}, with which job {other} "
                    f"must not share a {rule.level}{moment.words}."
                )
                yield Violation(rule="apart", subject=f"job {task.job.id}", text=text)


def _lonely(
    task: Task, carriers: Whereabouts, before: dict[Label, set[JobId]]
) -> Iterator[Violation]:
    job = task.job
    for rule in task.group.where.near:
        others = before[rule.key, rule.value]
        is_first = job.spec.labels.get(rule.key) == rule.value and others <= {job.id}
        if is_first or carriers.other(rule, task) is not None:
            continue
        text = f"No job that is {rule.key}={rule.value} shares its {rule.level} on {task.node.id}."
        yield Violation(rule="near", subject=f"job {job.id}", text=text)


def _note(before: dict[Label, set[JobId]], jobs: Iterable[Job]) -> None:
    for job in jobs:
        for label in job.spec.labels.items():
            before[label].add(job.id)
