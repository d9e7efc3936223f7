"""The loop in threads of its own: what it may look at, and when."""

from collections.abc import Iterable, Iterator
from threading import Lock
from typing import Any

from controller.desk import Desk
from muster.controller.loop.controller import Controller
from muster.controller.world.journal import Writer
from muster.model.job import Job
from muster.model.value import JobId, replace


class Leader:
    def lead(self) -> bool:
        return True

    def step_down(self) -> None:
        pass


class GuardedJobs(dict[JobId, Job]):
    """Jobs that may be walked through only by who holds the lock: others could see them change."""

    def __init__(self, jobs: Iterable[tuple[JobId, Job]], lock: Lock) -> None:
        super().__init__(jobs)
        self._lock = lock

    def __getattribute__(self, name: str) -> Any:
        assert name != "values" or self._lock.locked()
        return super().__getattribute__(name)

    def __iter__(self) -> Iterator[JobId]:
        assert self._lock.locked()
        return super().__iter__()


def test_the_planning_thread_walks_through_the_jobs_only_under_their_lock() -> None:
    desk = Desk()
    desk.submits(gpus=4)
    desk.submits(gpus=4)
    record, writer = desk.record, Writer(desk.simulation.journal)
    record.jobs = GuardedJobs(record.jobs.items(), record.lock)
    parts = replace(desk.simulation.parts, write=writer.write)
    controller = Controller(parts, desk.simulation.journal, lambda: desk.simulation.now, Leader())
    controller.start()

    try:
        planned = controller.last_plan
        assert planned.wait_until(lambda: planned.planned_at is not None, 10)
    finally:
        controller.stop()
        writer.close()
