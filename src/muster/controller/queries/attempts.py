"""What attempts write and use: asked of the backend that runs them, for those who may see it."""

from collections.abc import Mapping

from muster.backends.base import Backend, OutputQuery
from muster.controller.messages import Caller, JobDetail, LogQuery
from muster.controller.queries.jobs import JobQueries
from muster.controller.queries.running import RunningAttempts
from muster.model.errors import ForbiddenError, UnknownError
from muster.model.forbidden import NotYourJob
from muster.model.launch import Launch
from muster.model.placement import Allocation
from muster.model.running import Measured, Output, TerminalStream, Visit, VisitStream
from muster.model.value import ClusterName, JobId, NodeId


class AttemptQueries:
    """Output, terminals, steps, CPUs and usage."""

    def __init__(self, jobs: JobQueries, backends: Mapping[ClusterName, Backend]) -> None:
        self._jobs = jobs
        self._running = RunningAttempts(backends)

    def output(self, caller: Caller, asked: LogQuery) -> Output:
        """A part of what a job wrote."""
        detail = self._seen(caller, asked.job)
        attempt, nodes, cluster = _where(detail, asked.attempt)
        if cluster is None:
            label = detail.view.job.label
            raise UnknownError(f"job {label} has not run yet, so there is nothing to read")
        return self._running.output(
            cluster,
            OutputQuery(
                job=detail.view.job,
                launch=self._jobs.whole_launch(detail.view.job) or Launch(),
                attempt=attempt,
                nodes=nodes,
                stderr=asked.stderr,
                task=asked.task,
                offset=asked.offset,
                limit=asked.limit,
                container=asked.container,
                previous=asked.previous,
            ),
        )

    def attach(self, caller: Caller, job_id: JobId) -> TerminalStream:
        """A stream to the terminal of a running job."""
        self.demand_owner(caller, job_id, to="use its terminal")
        return self._running.attach(self._allocation(caller, job_id))

    def visit(self, caller: Caller, job_id: JobId, wanted: Visit, *, task: int = 0) -> VisitStream:
        """Into the containers of a running pod; task: which one of a gang."""
        self.demand_owner(caller, job_id, to="enter its containers")
        return self._running.visit(self._allocation(caller, job_id), task, wanted)

    def step_address(self, caller: Caller, job_id: JobId) -> str:
        """Where steps of a running job are asked for, as a URL."""
        self.demand_owner(caller, job_id, to="start steps in it")
        return self._running.step_address(self._allocation(caller, job_id))

    def pinned_cpus(self, caller: Caller, job_id: JobId) -> Mapping[NodeId, tuple[int, ...]]:
        """The CPUs that a running job has for itself on each node, where they are known."""
        return self._running.pinned_cpus(self._allocation(caller, job_id))

    def usage(self, caller: Caller, job_id: JobId) -> tuple[Measured, ...]:
        """What the processes of a running job use now."""
        return self._running.usage(self._allocation(caller, job_id))

    def demand_owner(self, caller: Caller, job_id: JobId, to: str) -> None:
        """Raise ForbiddenError unless the caller may act as this job's user."""
        self._jobs.demand_owner(caller, self._jobs.detail(caller, job_id).view.job, to)

    def _allocation(self, caller: Caller, job_id: JobId) -> Allocation:
        view = self._seen(caller, job_id).view
        if view.allocation is None:
            label = view.job.label
            raise UnknownError(f"job {label} does not run; see: muster show {label}")
        return view.allocation

    def _seen(self, caller: Caller, job_id: JobId) -> JobDetail:
        detail = self._jobs.detail(caller, job_id)
        if not self._jobs.may_see(caller, detail.view.job):
            rule = "only they and their administrators can see what it writes"
            job = detail.view.job
            raise ForbiddenError(NotYourJob(job=job.label, owner=job.spec.user, rule=rule))
        return detail


def _where(
    detail: JobDetail, attempt: int | None
) -> tuple[int, tuple[NodeId, ...], ClusterName | None]:
    """Which attempt is meant, and where it ran."""
    held = detail.view.allocation
    if held is not None and attempt in {None, held.attempt}:
        nodes = tuple(dict.fromkeys(placed.node for placed in held.placements))
        return held.attempt, nodes, held.cluster
    past = [each for each in detail.attempts if attempt in {None, each.number}]
    if not past:
        return 0, (), None
    return past[-1].number, past[-1].nodes, past[-1].cluster
