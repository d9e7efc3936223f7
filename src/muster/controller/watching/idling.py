"""Warns jobs that hold GPUs and do not use them, and does what their class says about it.

It hears of every look, in the watching thread: what takes long is done elsewhere.
"""

import logging
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from typing import Any, Protocol

from muster.controller.messages import Caller
from muster.controller.world.record import Record
from muster.model.errors import MusterError
from muster.model.idle import IdleAction, IdleRule
from muster.model.job import Job, JobSpec, JobState
from muster.model.launch import Launch
from muster.model.placement import Allocation
from muster.model.value import MINUTE, JobId, UserName, replace
from muster.telemetry.diagnosis.gathering import Attempt
from muster.telemetry.diagnosis.idling import Idler, Step, Told, is_over, step_of
from muster.telemetry.look import Look

log = logging.getLogger("muster.telemetry")

ITSELF = Caller(user=UserName("muster"), door="idle", root=True)

LOWERED = -1_000
"""The priority of a job whose place others may have."""

DEEDS = {
    IdleAction.WARN: "",
    IdleAction.LOWER: "others may have their place from then on",
    IdleAction.REQUEUE: "it is stopped then and waits for its turn again",
    IdleAction.CANCEL: "it is cancelled then",
}


class Deeds(Protocol):
    """What can be done to a job; as doors ask for it."""

    def cancel(self, caller: Caller, jobs: tuple[JobId, ...]) -> Future[Any]: ...
    def requeue(self, caller: Caller, jobs: tuple[JobId, ...]) -> Future[Any]: ...
    def update(
        self, caller: Caller, job: JobId, change: Callable[[JobSpec], JobSpec]
    ) -> Future[Any]: ...


class Idling:
    """What was told to whom, as long as it stays idle. One thread."""

    def __init__(
        self,
        record: Record,
        idle: Callable[[], Mapping[Attempt, int]],
        deeds: Deeds,
        tell: Callable[[Job, str], None],
        launch_of: Callable[[Job], Launch | None],
    ) -> None:
        self._record = record
        self._idle = idle
        self._deeds = deeds
        self._tell = tell
        self._launch_of = launch_of
        self._told: dict[Attempt, Told] = {}

    def look(self, look: Look) -> None:
        """One pass over those that have left their GPUs alone."""
        classes = self._record.site.classes
        if all(each.on_idle.after is None for each in classes.values()):
            self._told.clear()
            return
        known = self._idle()
        self._told = {key: told for key, told in self._told.items() if key in known}
        for (job_id, attempt), idle_ms in known.items():
            job = self._record.jobs.get(job_id)
            held = self._record.allocations.get(job_id)
            found = None if job is None else classes.get(job.spec.job_class)
            if job is None or held is None or found is None:
                continue
            if held.attempt == attempt and job.state is JobState.RUNNING:
                self._judge(job, found.on_idle, self._idler(job, held, idle_ms), look)

    def _idler(self, job: Job, held: Allocation, idle_ms: int) -> Idler:
        launch = self._launch_of(job)
        return Idler(
            idle_ms=idle_ms,
            since=held.started_at or held.placed_at,
            gpu_milli=sum(each.amount.gpu_milli for each in held.placements),
            is_interactive=launch is not None and launch.terminal is not None,
        )

    def _judge(self, job: Job, rule: IdleRule, idler: Idler, look: Look) -> None:
        key = (job.id, job.attempt)
        if is_over(rule, idler):
            self._told.pop(key, None)
            return
        told = self._told.get(key, Told())
        match step_of(rule, idler, told, look.at):
            case Step.WARN:
                self._told[key] = replace(told, warned_at=look.at)
                self._warn(job, rule, idler)
            case Step.ACT:
                self._told[key] = replace(told, has_acted=True)
                self._act(job, rule.do, idler)
            case None:
                return

    def _warn(self, job: Job, rule: IdleRule, idler: Idler) -> None:
        minutes = idler.idle_ms // MINUTE
        text = f"Job {job.label} has not used its GPUs for {minutes} minutes."
        if rule.do is not IdleAction.WARN:
            left = rule.warn_before // MINUTE
            text += f" If it does not within {left} minutes, {DEEDS[rule.do]}."
        log.info("job_idle", extra={"job": job.label, "minutes": minutes})
        self._tell(job, f"{text}\n\nWhy: muster diagnose {job.label}\n")

    def _act(self, job: Job, do: IdleAction, idler: Idler) -> None:
        minutes = idler.idle_ms // MINUTE
        log.info("job_idle", extra={"job": job.label, "minutes": minutes, "action": str(do)})
        try:
            self._done(job, do).add_done_callback(_complain)
        except MusterError as error:
            log.warning("job %s is idle, and stays as it is: %s", job.label, error)

    def _done(self, job: Job, do: IdleAction) -> Future[Any]:
        match do:
            case IdleAction.CANCEL:
                return self._deeds.cancel(ITSELF, (job.id,))
            case IdleAction.REQUEUE:
                return self._deeds.requeue(ITSELF, (job.id,))
            case IdleAction.LOWER | IdleAction.WARN:
                return self._deeds.update(
                    ITSELF, job.id, lambda spec: replace(spec, priority=LOWERED)
                )


def _complain(done: Future[Any]) -> None:
    error = done.exception()
    if error is not None:
        log.warning("an idle job stays as it is: %s", error)
