"""Jobs that do not use their GPUs are warned, and then what their class says is done."""

from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

import pytest

from controller.observed import Observed
from muster.controller.messages import Caller
from muster.controller.watching.idling import LOWERED, Idling
from muster.model.errors import StoreError
from muster.model.idle import IdleAction, IdleRule
from muster.model.job import Job, JobSpec
from muster.model.launch import Launch, Terminal
from muster.model.value import MINUTE, SECOND, ClassName, Duration, JobId, replace
from muster.telemetry.look import Look

NORMAL = ClassName("normal")


class Watched(Observed):
    """What is asked for and told is written down."""

    def __init__(self, rule: IdleRule, launch: Launch | None = None) -> None:
        super().__init__()
        site = self.desk.record.site
        named = {name: replace(each, on_idle=rule) for name, each in site.classes.items()}
        self.desk.changes_site(classes=named)
        self.did: list[tuple[str, int]] = []
        self.told: list[str] = []
        self.refuses = False
        record = self.desk.record
        self.idling = Idling(record, self.diagnosing.idle, self, self._tell, lambda _: launch)

    def waits(self, minutes: int, busy: int = 0) -> None:
        for _ in range(minutes):
            self.passes(1, busy=busy)
            now = self.desk.simulation.now
            self.idling.look(Look(at=now, interval=Duration(15 * SECOND)))

    def cancel(self, caller: Caller, jobs: tuple[JobId, ...]) -> Future[Any]:
        return self._done("cancel", caller, jobs)

    def requeue(self, caller: Caller, jobs: tuple[JobId, ...]) -> Future[Any]:
        return self._done("requeue", caller, jobs)

    def update(
        self, caller: Caller, job: JobId, change: Callable[[JobSpec], JobSpec]
    ) -> Future[Any]:
        lowered = change(self.desk.record.jobs[job].spec).priority
        return self._done(f"priority {lowered}", caller, (job,))

    def _done(self, what: str, caller: Caller, jobs: tuple[JobId, ...]) -> Future[Any]:
        assert caller.root
        self.did.append((what, jobs[0]))
        found: Future[Any] = Future()
        if self.refuses:
            found.set_exception(StoreError("the store is full"))
        else:
            found.set_result(None)
        return found

    def _tell(self, job: Job, text: str) -> None:
        self.told.append(f"{job.spec.user}: {text.splitlines()[0]}")


def rule(do: IdleAction) -> IdleRule:
    return IdleRule(after=Duration(30 * MINUTE), warn_before=Duration(10 * MINUTE), do=do)


@pytest.mark.parametrize(
    ("do", "done"),
    [
        (IdleAction.WARN, []),
        (IdleAction.LOWER, [f"priority {LOWERED}"]),
        (IdleAction.REQUEUE, ["requeue"]),
        (IdleAction.CANCEL, ["cancel"]),
    ],
)
def test_a_warning_comes_first_and_each_of_them_once(do: IdleAction, done: list[str]) -> None:
    watched = Watched(rule(do))
    job = watched.desk.submits("ada", gpus=2, lasts=20_000)
    watched.waits(3, busy=900)

    watched.waits(24)
    assert (len(watched.told), watched.did) == (1, [])
    watched.waits(30)

    assert watched.did == [(what, job) for what in done]
    assert len(watched.told) == 1
    assert watched.told[0].startswith("ada: Job 1 has not used its GPUs for 2")


def test_a_job_that_works_again_is_left_alone() -> None:
    watched = Watched(rule(IdleAction.CANCEL))
    watched.desk.submits("ada", gpus=1, lasts=20_000)
    watched.waits(3, busy=900)
    watched.waits(25)

    watched.waits(15, busy=900)
    watched.waits(15)

    assert (len(watched.told), watched.did) == (1, [])


def test_nothing_is_done_where_no_class_says_so() -> None:
    watched = Watched(IdleRule())
    watched.desk.submits("ada", gpus=1, lasts=20_000)

    watched.waits(90)

    assert (watched.told, watched.did) == ([], [])


def test_an_interactive_job_of_one_gpu_may_think_for_hours() -> None:
    watched = Watched(rule(IdleAction.CANCEL), Launch(terminal=Terminal()))
    watched.desk.submits("ada", gpus=1, lasts=20_000)

    watched.waits(90)

    assert (watched.told, watched.did) == ([], [])


def test_what_cannot_be_done_is_tried_once_and_the_job_stays() -> None:
    watched = Watched(rule(IdleAction.REQUEUE))
    watched.refuses = True
    job = watched.desk.submits("ada", gpus=1, lasts=20_000)
    watched.waits(3, busy=900)

    watched.waits(60)

    assert watched.did == [("requeue", job)]
    assert job in watched.desk.record.jobs
