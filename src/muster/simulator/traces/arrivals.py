"""From a trace to the simulator: requests that come, and how they will go."""

from collections.abc import Callable, Iterable, Mapping

from muster.backends.simulated.attempt import Behaviour, BehaviourOf
from muster.model.gpu import WHOLE_GPU_MILLI, GpuAsk, MpsShare
from muster.model.job import Ask, Cancelled, EndReason, Exited, Job, JobSpec, TaskGroup
from muster.model.placement import Allocation
from muster.model.value import Duration, QueuePath, UserName, replace
from muster.simulator.run import Arrival
from muster.simulator.traces.traced import Outcome, TracedJob

TRACED = "traced"
"""The label by which a job of the simulation knows the job of the trace."""

NOBODY = "trace"


def one_queue(job: TracedJob) -> QueuePath:
    """A queue for all."""
    del job
    return QueuePath(NOBODY)


def arrivals(
    jobs: Iterable[TracedJob], queue_of: Callable[[TracedJob], QueuePath] = one_queue
) -> list[Arrival]:
    """The jobs that ran, in the order of their coming."""
    ran = [job for job in jobs if job.duration is not None]
    ran.sort(key=lambda job: (job.submitted_at, job.name))
    return [Arrival(at=job.submitted_at, spec=_spec(job, queue_of(job))) for job in ran]


def lasting(jobs: Iterable[TracedJob]) -> BehaviourOf:
    """What a simulated backend asks: how an attempt will go."""
    fates = {job.name: behaviour(job) for job in jobs}

    def lasts(job: Job, allocation: Allocation) -> Behaviour:
        del allocation
        return fates[job.spec.labels[TRACED]]

    return lasts


def behaviour(job: TracedJob) -> Behaviour:
    """As long as in the trace, to the same end."""
    return Behaviour(work=job.duration or Duration(0), end=_end(job))


def spread(job: TracedJob, gpus_per_node: int) -> TracedJob:
    """A job with more GPUs than a node has, as equal tasks that fit."""
    if job.gpus <= gpus_per_node:
        return job
    tasks = -(-job.gpus // gpus_per_node)
    while job.gpus % tasks:
        tasks += 1
    return replace(
        job,
        tasks=job.tasks * tasks,
        gpus=job.gpus // tasks,
        cpu_milli=job.cpu_milli // tasks,
        memory_mib=job.memory_mib // tasks,
    )


def _spec(job: TracedJob, queue: QueuePath) -> JobSpec:
    labels: Mapping[str, str] = {TRACED: job.name}
    return JobSpec(
        name=job.name,
        user=UserName(job.user or NOBODY),
        queue=queue,
        groups=(TaskGroup(count=job.tasks, each=_ask(job)),),
        time_limit=job.limit,
        labels=labels,
    )


def _ask(job: TracedJob) -> Ask:
    if not job.gpus:
        return Ask(cpu_milli=job.cpu_milli, memory_mib=job.memory_mib)
    is_share = job.gpu_milli < WHOLE_GPU_MILLI
    gpus = GpuAsk(
        count=job.gpus,
        slice=MpsShare(milli=job.gpu_milli) if is_share else None,
        models=tuple(dict.fromkeys(job.models)),
    )
    return Ask(cpu_milli=job.cpu_milli, memory_mib=job.memory_mib, gpus=gpus)


def _end(job: TracedJob) -> EndReason:
    match job.outcome:
        case Outcome.COMPLETED:
            return Exited(code=0)
        case Outcome.FAILED:
            return Exited(code=1)
        case Outcome.CANCELLED:
            return Cancelled(by=UserName(job.user or NOBODY))
