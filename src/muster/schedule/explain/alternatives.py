"""What would become of a job if it asked for something else: found by planning again."""

from collections.abc import Callable
from typing import NamedTuple

from muster.model.explanation import (
    Alternative,
    AnyNode,
    AnyPool,
    AsSlice,
    Change,
    FewerGpus,
    FewerTasks,
    NoTopology,
    OffSpot,
    OnSpot,
    OtherModel,
    OtherQueue,
    Shorter,
)
from muster.model.job import Job, JobSpec, Spot, TaskGroup, Where
from muster.model.plan import NoEstimate, Wait
from muster.model.snapshot import Snapshot
from muster.model.value import Instant, replace
from muster.schedule.explain.changes import Ladder, ladders
from muster.schedule.explain.words import outlook, suggestion
from muster.schedule.plan import Planner
from muster.schedule.policy.variants import Variant

MOST_TRIED = 12
"""How many changes one explanation looks at."""

Expected = Instant | NoEstimate


class Alternatives(NamedTuple):
    """The changes that let the job start now, and then those that let it start sooner.

    is_complete: was every change tried that was to be?
    """

    found: tuple[Alternative, ...]
    is_complete: bool = True


def always() -> bool:
    """There is time."""
    return True


def alternatives(
    snapshot: Snapshot,
    wait: Wait,
    expected: Expected,
    planner: Planner,
    has_time: Callable[[], bool] = always,
) -> Alternatives:
    """What would help the job, found by planning again as long as there is time for it.

    expected: when it is to start as it is.
    """
    job = snapshot.jobs[wait.job]
    climbs = [_Climb(ladder, expected) for ladder in ladders(snapshot, job, wait.why)]
    trials = _Trials(snapshot, job, planner)
    found: list[Alternative] = []
    for _ in range(MOST_TRIED):
        # In turn, so that no ladder uses up the trials before the others had their first.
        climb = min((each for each in climbs if each.rungs), key=_next_in_turn, default=None)
        if climb is None:
            break
        change = climb.step()
        if not trials.knows(change):
            if trials.is_begun and not has_time():
                return Alternatives(_in_order(found), is_complete=False)
            trials.plan([change, *(rung for each in climbs for rung in each.rungs)])
        tried = trials.alternative(change)
        if climb.notes(tried):
            found.append(tried)
    return Alternatives(_in_order(found))


class _Trials:
    """What would become of the job after each change. One plan answers for all of one queue."""

    def __init__(self, snapshot: Snapshot, job: Job, planner: Planner) -> None:
        self._snapshot = snapshot
        self._job = job
        self._planner = planner
        self._known: dict[Change, Variant] = {}

    @property
    def is_begun(self) -> bool:
        """Has anything been tried?"""
        return bool(self._known)

    def knows(self, change: Change) -> bool:
        return change in self._known

    def plan(self, changes: list[Change]) -> None:
        """Try the first of these, and all others that are in the same queue."""
        specs = {each: changed(each, self._job.spec) for each in changes}
        # Who waits in another queue has another share, and so have those who are there.
        together = [each for each in specs if specs[each].queue == specs[changes[0]].queue]
        # A claim is room for the old request; the new one has to find its own.
        jobs = [replace(self._job, spec=specs[each], claim=None) for each in together]
        found = self._planner.variants(self._snapshot, jobs)
        self._known.update(zip(together, found, strict=True))

    def alternative(self, change: Change) -> Alternative:
        """What becomes of it after this change."""
        starts_now, expected = self._known[change]
        then = "would start now" if starts_now else outlook(expected, self._snapshot.now)
        return Alternative(
            change=change,
            starts_now=starts_now,
            expected=expected,
            text=suggestion(change, self._job.spec, then),
        )


def changed(change: Change, spec: JobSpec) -> JobSpec:
    """The request with that one change."""
    match change:
        case FewerGpus() | FewerTasks() | OtherModel() | AsSlice() | NoTopology() | AnyNode():
            return replace(spec, groups=tuple(_regrouped(change, each) for each in spec.groups))
        case OnSpot() | OffSpot():
            return replace(spec, spot=Spot.ALLOWED)
        case AnyPool():
            return replace(spec, pools=(), clusters=())
        case Shorter(time_limit=limit):
            return replace(spec, time_limit=limit)
        case OtherQueue(queue=queue):
            return replace(spec, queue=queue)


class _Climb:
    """The way down one ladder: each rung asks for less, so it must also bring more."""

    def __init__(self, ladder: Ladder, expected: Expected) -> None:
        self.rungs = list(ladder)
        self.steps = 0
        self._best = expected

    def step(self) -> Change:
        self.steps += 1
        return self.rungs.pop(0)

    def notes(self, tried: Alternative) -> bool:
        """Is this better than anything on this ladder before, and than the job as it is?"""
        if tried.starts_now:
            self.rungs = []
            return True
        if not _is_sooner(tried.expected, self._best):
            return False
        self._best = tried.expected
        return True


def _next_in_turn(climb: _Climb) -> int:
    # `min` takes the first of equals, and so the ladders keep their order.
    return climb.steps


def _is_sooner(one: Expected, other: Expected) -> bool:
    if isinstance(one, NoEstimate):
        return False
    return isinstance(other, NoEstimate) or one < other


def _in_order(found: list[Alternative]) -> tuple[Alternative, ...]:
    return tuple(sorted(found, key=_soonest_first))


def _soonest_first(alternative: Alternative) -> tuple[bool, int]:
    expected = alternative.expected
    # Sorting is stable: what starts at the same time stays in the order it was tried.
    return (not alternative.starts_now, 0 if isinstance(expected, NoEstimate) else expected)


def _regrouped(
    change: FewerGpus | FewerTasks | OtherModel | AsSlice | NoTopology | AnyNode,
    group: TaskGroup,
) -> TaskGroup:
    match change:
        case FewerGpus() | OtherModel() | AsSlice():
            return _with_other_gpus(change, group)
        case FewerTasks(group=name, tasks=tasks):
            is_named = name == group.name
            return replace(group, count=tasks, min_count=None) if is_named else group
        case NoTopology():
            together = group.together
            rather = None if together is None else replace(together, required=False)
            return replace(group, together=rather)
        case AnyNode():
            where = group.where
            return replace(group, where=Where(prefer=where.prefer, tolerate=where.tolerate))


def _with_other_gpus(change: FewerGpus | OtherModel | AsSlice, group: TaskGroup) -> TaskGroup:
    gpus = group.each.gpus
    if gpus is None:
        return group
    match change:
        case FewerGpus(group=name, gpus=count):
            other = replace(gpus, count=count) if name == group.name else gpus
        case OtherModel(model=model):
            is_other = gpus.models and model not in gpus.models
            other = replace(gpus, models=(model,)) if is_other else gpus
        case AsSlice(slice=part):
            other = replace(gpus, slice=part)
    return replace(group, each=replace(group.each, gpus=other))
