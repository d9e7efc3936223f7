"""What a simulation came to, as one value; text, JSON and plots are made of it elsewhere."""

from collections.abc import Iterable, Sequence

from muster.lifecycle.predict import Accuracy
from muster.model.job import JobState
from muster.model.queue import Queue, is_within
from muster.model.value import QueuePath, Value
from muster.simulator.curve import Curve, Series
from muster.simulator.fairness import FairPace, entitled, jain
from muster.simulator.measuring import FinishedJob, Measures

MS_PER_HOUR = 3_600_000
LEAST_WORK_MS = 1_000
"""Jobs of less than a second count as one: a delay of nothing would be a slowdown without end."""


class Spread(Value):
    """Many numbers in a few; a percentile is the element at that part of the sorted list."""

    count: int = 0
    mean: float = 0
    p50: float = 0
    p95: float = 0
    p99: float = 0
    most: float = 0


class QueueReport(Value):
    """One queue, with all below it.

    entitled_gpu_hours: what its weight and guarantee give it of what there was, as far as it had
    work; what others did not want is shared. served: used by entitled; below 1 it had too little
    at its time.
    """

    path: QueuePath
    weight: int
    gpu_hours: float
    wanted_gpu_hours: float
    entitled_gpu_hours: float
    served: float
    wait_s: Spread
    jct_s: Spread
    used: Series
    entitled: Series


class Fairness(Value):
    """Between queues: served, the least by the most, and Jain's index of it.

    rho: how many times longer jobs took than if all who wanted GPUs had shared them equally, at
    the same speed each (finish-time fairness; below 1 is better than that).
    """

    least_served: float = 1
    most_served: float = 1
    min_by_max: float = 1
    jain: float = 1
    rho: Spread = Spread()


class Report(Value, kw_only=True):
    """Seconds, GPU-hours and parts of one; over time, means over equal spans.

    wait_s counts up to the first start. slowdown: JCT by the time that the job needs.
    fragmented: the part of all GPU that is free and that no usual task could take where it lies.
    lost_gpu_hours: work that was done again, because a job was stopped or its node was lost.
    """

    name: str = ""
    jobs: int = 0
    completed: int = 0
    failed: int = 0
    cancelled: int = 0
    refused: int = 0
    unfinished: int = 0
    makespan_s: float = 0
    jct_s: Spread = Spread()
    wait_s: Spread = Spread()
    slowdown: Spread = Spread()
    gpus: float = 0
    gpu_utilisation: float = 0
    cpu_utilisation: float = 0
    fragmented: float = 0
    gpu_hours: float = 0
    lost_gpu_hours: float = 0
    attempts: int = 0
    restarts: int = 0
    preemptions: int = 0
    node_failures: int = 0
    cost: float = 0
    fairness: Fairness = Fairness()
    prediction: Accuracy | None = None
    queues: tuple[QueueReport, ...] = ()
    jct_quantiles_s: tuple[float, ...] = ()
    wait_quantiles_s: tuple[float, ...] = ()
    gpu_used: Series
    gpu_there: Series
    cpu_used: Series
    fragments: Series
    running: Series
    waiting: Series


def report_of(measures: Measures, *, name: str = "", refused: int = 0) -> Report:
    """The report on everything that was heard."""
    courses = measures.courses
    ran = [each for each in courses if each.started_at is not None]
    queues = tuple(_queue_reports(measures, ran))
    by_state = [each.state for each in courses]
    used = measures.gpu_used.integral()
    return Report(
        name=name,
        jobs=measures.submitted,
        completed=by_state.count(JobState.COMPLETED),
        failed=by_state.count(JobState.FAILED),
        cancelled=by_state.count(JobState.CANCELLED),
        refused=refused,
        unfinished=measures.submitted - len(courses),
        makespan_s=_makespan_ms(courses) / 1_000,
        jct_s=spread([each.ended_at - each.submitted_at for each in ran], scale=1_000),
        wait_s=spread([_wait_ms(each) for each in ran], scale=1_000),
        slowdown=spread([_slowdown(each) for each in ran]),
        gpus=measures.gpu_milli / 1_000,
        gpu_utilisation=_part(used, measures.gpu_there.integral()),
        cpu_utilisation=_part(measures.cpu_used.integral(), measures.cpu_there.integral()),
        fragmented=_part(measures.fragment.integral(), measures.gpu_there.integral()),
        gpu_hours=used / 1_000 / MS_PER_HOUR,
        lost_gpu_hours=measures.lost_gpu_ms / MS_PER_HOUR,
        attempts=measures.attempts,
        restarts=measures.restarts,
        preemptions=measures.preemptions,
        node_failures=measures.ends["node_failed"],
        cost=measures.micros / 1_000_000,
        fairness=_fairness(measures, ran, queues),
        queues=queues,
        jct_quantiles_s=quantiles([each.ended_at - each.submitted_at for each in ran]),
        wait_quantiles_s=quantiles([_wait_ms(each) for each in ran]),
        gpu_used=_gpus(measures.gpu_used),
        gpu_there=_gpus(measures.gpu_there),
        cpu_used=_gpus(measures.cpu_used),
        fragments=_gpus(measures.fragment),
        running=measures.running.series(),
        waiting=measures.waiting.series(),
    )


def spread(numbers: Iterable[float], *, scale: float = 1) -> Spread:
    """The mean, the percentiles and the most of these, each divided by `scale`."""
    found = sorted(numbers)
    if not found:
        return Spread()
    count = len(found)
    return Spread(
        count=count,
        mean=sum(found) / count / scale,
        p50=found[count // 2] / scale,
        p95=found[min(count - 1, int(0.95 * count))] / scale,
        p99=found[min(count - 1, int(0.99 * count))] / scale,
        most=found[-1] / scale,
    )


def quantiles(milliseconds: Iterable[int], steps: int = 100) -> tuple[float, ...]:
    """The least, the most and what lies between at equal parts, in seconds."""
    found = sorted(milliseconds)
    if not found:
        return ()
    last = len(found) - 1
    return tuple(found[last * step // steps] / 1_000 for step in range(steps + 1))


def _queue_reports(measures: Measures, ran: Sequence[FinishedJob]) -> Iterable[QueueReport]:
    used = {path: _gpus(each.used) for path, each in measures.queues.items()}
    wanted = {path: _gpus(each.wanted) for path, each in measures.queues.items()}
    rights = _rights(measures, wanted)
    for path, queue in measures.site.queues.items():
        there = [each for each in ran if is_within(each.queue, path)]
        if not there and not any(wanted[path].means):
            continue
        own = measures.queues[path].used.integral() / 1_000 / MS_PER_HOUR
        right = sum(rights[path].means) * rights[path].every / MS_PER_HOUR
        yield QueueReport(
            path=path,
            weight=queue.weight,
            gpu_hours=own,
            wanted_gpu_hours=measures.queues[path].wanted.integral() / 1_000 / MS_PER_HOUR,
            entitled_gpu_hours=right,
            served=own / right if right else 1.0,
            wait_s=spread([_wait_ms(each) for each in there], scale=1_000),
            jct_s=spread([each.ended_at - each.submitted_at for each in there], scale=1_000),
            used=used[path],
            entitled=rights[path],
        )


def _rights(measures: Measures, wanted: dict[QueuePath, Series]) -> dict[QueuePath, Series]:
    """What each queue was entitled to in each span of time, in GPUs."""
    there = _gpus(measures.gpu_there)
    queues: dict[QueuePath, Queue] = dict(measures.site.queues)
    means: dict[QueuePath, list[float]] = {path: [] for path in queues}
    for place, capacity in enumerate(there.means):
        demand = {path: 1_000 * series.means[place] for path, series in wanted.items()}
        rights = entitled(queues, demand, 1_000 * capacity)
        for path in queues:
            means[path].append(rights.get(path, 0.0) / 1_000)
    return {
        path: Series(begins_at=there.begins_at, every=there.every, means=tuple(found))
        for path, found in means.items()
    }


def _fairness(
    measures: Measures, ran: Sequence[FinishedJob], queues: Sequence[QueueReport]
) -> Fairness:
    pace = FairPace(measures.gpu_wanted.series(), measures.gpu_there.series())
    rho = [
        (each.ended_at - each.submitted_at)
        / max(LEAST_WORK_MS, pace.ends_after(each.submitted_at, each.work_ms))
        for each in ran
    ]
    # A queue that stands above others only sums them up.
    leaves = [
        each
        for each in queues
        if not any(is_within(other.path, each.path) and other is not each for other in queues)
    ]
    served = [each.served for each in leaves if each.entitled_gpu_hours > 0]
    if not served:
        return Fairness(rho=spread(rho))
    return Fairness(
        least_served=min(served),
        most_served=max(served),
        min_by_max=_part(min(served), max(served)),
        jain=jain(served),
        rho=spread(rho),
    )


def _gpus(curve: Curve) -> Series:
    series = curve.series()
    means = tuple(round(mean / 1_000, 6) for mean in series.means)
    return Series(begins_at=series.begins_at, every=series.every, means=means)


def _makespan_ms(courses: Sequence[FinishedJob]) -> int:
    if not courses:
        return 0
    first = min(each.submitted_at for each in courses)
    return max(each.ended_at for each in courses) - first


def _wait_ms(course: FinishedJob) -> int:
    began = course.ended_at if course.started_at is None else course.started_at
    return began - course.submitted_at


def _slowdown(course: FinishedJob) -> float:
    work = max(LEAST_WORK_MS, course.work_ms)
    return max(1.0, (course.ended_at - course.submitted_at) / work)


def _part(some: float, all_of_it: float) -> float:
    return some / all_of_it if all_of_it else 0.0
