"""Several processes and one PostgreSQL: everybody answers, one leads, and another takes over."""

import logging
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Thread

import pytest

from databases import Postgres
from live.house import GPUS, NODES, Process, ended, folder, running, shell, until
from muster.settings import Settings

pytestmark = pytest.mark.slow

log = logging.getLogger("tests")

JOBS_EACH = 25
TAKES_OVER_WITHIN_S = 5.0


class Household:
    """A leader, its standby, and two processes that only answer, with one store."""

    def __init__(self, place: Path, store: str) -> None:
        self.place = place
        first = Settings(store=store, nodes=NODES, gpus=GPUS)
        second = Settings(
            store=store, nodes=NODES, gpus=GPUS, standby_for=str(place / "first")
        )
        doors = Settings(store=store, doors_only=True)
        self.first = Process(place / "first", first)
        self.second = Process(place / "second", second)
        self.doors = (Process(place / "door1", doors), Process(place / "door2", doors))
        self.everybody = (self.first, self.second, *self.doors)

    def start(self) -> None:
        self.first.start()
        until(self.first.leads, bool)
        for each in (self.second, *self.doors):
            each.start()

    def close(self) -> None:
        self._end_jobs()
        for each in self.everybody:
            each.stop()

    def ran(self, name: str) -> Path:
        """The file in which a job says that it ran: a line for each time."""
        return self.place / f"{name}.ran"

    def _end_jobs(self) -> None:
        with self.doors[0].client() as client:
            live = [job.id for job in client.all_jobs()]
            if live:
                client.cancel(live)
                ended(client, live)


class Watch:
    """Asks all the time who leads, and remembers each answer that was different."""

    def __init__(self, household: Household) -> None:
        self._household = household
        self._over = Event()
        self._thread = Thread(target=self._look, daemon=True)
        self.seen: Counter[tuple[bool, bool]] = Counter()

    def __enter__(self) -> "Watch":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _look(self) -> None:
        while not self._over.wait(0.02):
            self.seen[self._household.first.leads(), self._household.second.leads()] += 1


@contextmanager
def household(postgres: Postgres) -> Iterator[Household]:
    with folder() as place:
        made = Household(place, postgres.new_address())
        try:
            made.start()
            yield made
        finally:
            made.close()


def submits(made: Household, door: Process, name: str) -> dict[str, int]:
    """Jobs one after the other through one door; each must be taken. What was answered."""
    answers: dict[str, int] = {}
    with door.client() as client:
        for number in range(JOBS_EACH):
            each = f"{name}-{number}"
            document = shell(f"echo ran >> {made.ran(each)}; sleep 0.2", name=each)
            answers[each] = client.submit(document).id
            # Reading works all the time as well.
            assert client.job(answers[each]).name == each
            time.sleep(0.05)
    return answers


def test_when_the_leader_is_killed_the_standby_leads_and_every_job_runs_once(
    postgres: Postgres,
) -> None:
    with household(postgres) as made, Watch(made) as watch, ThreadPoolExecutor(3) as pool:
        with made.doors[0].client() as client:
            long = client.submit(shell(f"echo ran >> {made.ran('long')}; sleep 4", name="long")).id
            running(client, long)
        doors = (made.second, *made.doors)
        submitting = [
            pool.submit(submits, made, door, f"door{number}") for number, door in enumerate(doors)
        ]
        until(lambda: sum(1 for _ in made.place.glob("*.ran")), lambda ran: ran > 10)

        made.first.kill()
        killed_at = time.monotonic()
        until(made.second.leads, bool)
        took_s = time.monotonic() - killed_at
        log.info("the standby led %.2f s after the leader was killed", took_s)
        made.first.start()

        answers = {name: job for each in submitting for name, job in each.result().items()}
        with made.doors[1].client() as client:
            over = {job.name: job for job in ended(client, [*answers.values(), long])}

        assert took_s < TAKES_OVER_WITHIN_S
        assert not made.first.leads()
        assert len(set(answers.values())) == 3 * JOBS_EACH
        assert {job.state for job in over.values()} == {"completed"}
        assert {name: len(job.attempts) for name, job in over.items() if len(job.attempts) != 1} == {}
        assert [made.ran(name).read_text() for name in over] == ["ran\n"] * len(over)
    assert watch.seen[True, True] == 0
    assert watch.seen[True, False]
    assert watch.seen[False, True]
