"""How many jobs a queue runs, and how much a class lets one user or one queue hold."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence

from muster.model.job import JobSpec
from muster.model.placement import Placement
from muster.model.queue import Ceiling, JobClass, Side, lineage
from muster.model.value import ClassName, QueuePath, UserName
from muster.schedule.verify.additions import Addition, Kind
from muster.schedule.verify.case import Case
from muster.schedule.verify.census import NO_BOUND, Holder, ceilings_of
from muster.schedule.verify.moments import Moment
from muster.schedule.verify.usage import rolled_up
from muster.schedule.verify.violation import Violation

Whose = tuple[ClassName, Side, str]
"""A class, and the user or queue that holds something in it."""

Classes = Mapping[ClassName, JobClass]

Sums = dict[Whose, list[int]]
"""How much of each of the measures is held."""

MEASURES = ("GPU milli", "CPU milli", "MiB", "jobs")


def queues_hold_few_enough_jobs(case: Case) -> Iterator[Violation]:
    """Jobs that hold, claim or are new: at most `max_jobs` of each queue in the lineage."""
    bounded = {
        path: most
        for queue in case.glance.queues
        for path in lineage(queue)
        if path in case.snapshot.queues
        and (most := case.snapshot.queues[path].max_jobs) is not None
    }
    queues = {path for path in case.glance.queues if not bounded.keys().isdisjoint(lineage(path))}
    for moment in case.moments if bounded else ():
        there = [each for each in moment.added if each.queue in queues]
        new = [each for each in there if each.kind is not Kind.RESIZE]
        extra = Counter({each.job.id: each.queue for each in new}.values())
        total, more = rolled_up(_held_by_others(case, moment, new) + extra), rolled_up(extra)
        for path, most in sorted(bounded.items()):
            if more.get(path, 0) and total[path] > most:
                text = f"It would run {total[path]} jobs of at most {most}{moment.words}."
                yield Violation(rule="max jobs", subject=f"queue {path}", text=text)


def class_ceilings_hold(case: Case) -> Iterator[Violation]:
    """Per class: at most `per_user` for one user and at most `per_queue` for one queue itself."""
    ceilings = ceilings_of(case.snapshot.classes)
    classes = {name: each for name, each in ceilings.items() if name in case.glance.classes}
    if not classes:
        return
    new_by_moment = [_new(moment, classes) for moment in case.moments]
    staying = _held(_beside(new_by_moment[-1], case), classes, new_by_moment[-1])
    for moment, new in zip(case.moments, new_by_moment, strict=True):
        passing = _held(moment.passing(), classes, new)
        asleep = _held(moment.memory_only, classes, new, jobs=0)
        for whose, added in sorted(new.items()):
            held = [
                sum(each)
                for each in zip(staying[whose], passing[whose], asleep[whose], strict=True)
            ]
            for text in _above(_ceiling(whose, classes), whose, added, held):
                subject = f"{whose[1]} {whose[2]}"
                yield Violation(rule="class limit", subject=subject, text=f"{text}{moment.words}.")


def _beside(asked: Iterable[Whose], case: Case) -> Iterator[Holder]:
    """Those who stay of the users and queues that are asked for."""
    names = list(asked)
    users = [UserName(name) for _, side, name in names if side is Side.USER]
    queues = [QueuePath(name) for _, side, name in names if side is Side.QUEUE]
    return case.staying.of(queues, users)


def _held_by_others(case: Case, moment: Moment, new: list[Addition]) -> Counter[QueuePath]:
    """How many jobs each queue itself has, without the new ones."""
    ids = {each.job.id for each in new}
    held = case.staying.count_by_queue.copy()
    held.update([job.spec.queue for job, _ in moment.passing() if job.id not in ids])
    # It takes a wrong plan to start what runs; yet that would not be two jobs.
    held.subtract({each.job.id: each.queue for each in new if case.stays(each.job)}.values())
    return held


def _new(moment: Moment, classes: Classes) -> Sums:
    """What is new, for each user and each queue that a ceiling of their class bounds."""
    new: Sums = defaultdict(lambda: [0, 0, 0, 0])
    for each in moment.added:
        for whose in _bounded(each.job.spec, classes):
            _count(new[whose], each.placements, jobs=each.kind is not Kind.RESIZE)
    return new


def _held(
    holders: Iterable[Holder], classes: Classes, asked: Iterable[Whose], *, jobs: int = 1
) -> Sums:
    """What is held by those that are asked for; each holder counts as so many jobs."""
    held: Sums = {whose: [0, 0, 0, 0] for whose in asked}
    for job, placements in holders:
        for whose in _bounded(job.spec, classes):
            if whose in held:
                _count(held[whose], placements, jobs=jobs)
    return held


def _bounded(spec: JobSpec, classes: Classes) -> Sequence[Whose]:
    """Whose ceilings of the class the job counts towards."""
    job_class = classes.get(spec.job_class)
    if job_class is None:
        return ()
    user = (spec.job_class, Side.USER, spec.user)
    queue = (spec.job_class, Side.QUEUE, spec.queue)
    if job_class.per_queue == NO_BOUND:
        return (user,)
    return (queue,) if job_class.per_user == NO_BOUND else (user, queue)


def _count(sums: list[int], placements: Iterable[Placement], *, jobs: int) -> None:
    sums[3] += jobs
    for placement in placements:
        amount = placement.amount
        sums[0] += amount.gpu_milli
        sums[1] += amount.cpu_milli
        sums[2] += amount.memory_mib


def _ceiling(whose: Whose, classes: Classes) -> Ceiling:
    return classes[whose[0]].ceiling(whose[1])


def _above(ceiling: Ceiling, whose: Whose, new: list[int], held: list[int]) -> Iterator[str]:
    bounds = (ceiling.gpu_milli, ceiling.cpu_milli, ceiling.memory_mib, ceiling.jobs)
    for measure, bound, more, had in zip(MEASURES, bounds, new, held, strict=True):
        if bound is not None and more > 0 and had + more > bound:
            yield f"It would hold {had + more} {measure} in class {whose[0]}, of at most {bound}"
