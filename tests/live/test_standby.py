"""Several processes and one PostgreSQL: everybody answers, one leads, and another takes over."""

import logging
import re
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from pathlib import Path
from threading import Event, Thread

import pytest

from databases import Postgres
from live.house import GPUS, NODES, Process, ended, folder, running, shell, until
from muster.api.site import EventDocument
from muster.app.parts import Muster
from muster.model.value import replace
from muster.settings import BadSettingsError, Settings, keep_settings, made_home, read_settings

pytestmark = pytest.mark.slow

log = logging.getLogger("tests")

JOBS_EACH = 25
TAKES_OVER_WITHIN_S = 5.0


class Household:
    """A leader, its standby, and two processes that only answer, with one store."""

    def __init__(self, place: Path, store: str, mail_program: str = "none") -> None:
        self.place = place
        first = Settings(store=store, nodes=NODES, gpus=GPUS, mail_program=mail_program)
        second = replace(first, standby_for=str(place / "first"))
        doors = Settings(store=store, doors_only=True)
        self.first = Process(place / "first", first)
        self.second = Process(place / "second", second)
        self.doors = (Process(place / "door1", doors), Process(place / "door2", doors))
        self.everybody = (self.first, self.second, *self.doors)

    def start(self) -> None:
        self.first.start()
        until(self.first.leads, bool)
        with ThreadPoolExecutor() as pool:
            list(pool.map(Process.start, (self.second, *self.doors)))

    def close(self) -> None:
        try:
            self._end_jobs()
        finally:
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
def household(postgres: Postgres) -> Generator[Household]:
    with folder() as place:
        made = Household(place, postgres.new_address())
        try:
            made.start()
            yield made
        finally:
            made.close()


@contextmanager
def away(postgres: Postgres) -> Generator[None]:
    postgres.stop()
    try:
        yield
    finally:
        postgres.start()


def test_mail_is_sent_once_by_the_leader_when_it_is_due(postgres: Postgres) -> None:
    with folder() as place:
        program, sent = place / "mail", place / "sent"
        program.write_text(f'#!/bin/sh\necho "$3: $2" >> {sent}\n', encoding="utf-8")
        program.chmod(0o755)
        made = Household(place, postgres.new_address(), mail_program=str(program))
        try:
            made.start()
            _mails_through_a_change_of_leader(made, sent)
        finally:
            made.close()


def _mails_through_a_change_of_leader(made: Household, sent: Path) -> None:
    gate = made.place / "gate"
    wait = f"until [ -e {gate} ]; do sleep 0.02; done"
    with made.doors[0].client() as client:
        jobs = [
            client.submit_document(shell(wait, name=name, mail_on=("all",), mail_to="ann")).id
            for name in ("first", "second")
        ]
        held = client.submit_document(shell("true", held=True, mail_on=("end",), mail_to="bob")).id
        until(lambda: _subjects(sent), lambda seen: len(seen) == len(jobs))
        made.first.kill()
        until(made.second.leads, bool)
        gate.touch()
        ended(client, jobs)
        client.cancel([held])
        expected = [f"{job} {word}" for job in jobs for word in ("Began", "Ended")]
        until(lambda: _subjects(sent), lambda seen: len(seen) > len(expected))

    assert sorted(_subjects(sent)) == sorted([*expected, f"{held} Ended"])


def _subjects(sent: Path) -> list[str]:
    """`12 Began` for each mail."""
    lines = sent.read_text(encoding="utf-8").splitlines() if sent.exists() else []
    found = (re.search(r"Job_id=(\d+) Name=\S+ (\w+)", line) for line in lines)
    return [f"{each[1]} {each[2]}" for each in found if each is not None]


def submits(made: Household, door: Process, name: str) -> dict[str, int]:
    """Jobs one after the other through one door; each must be taken. What was answered."""
    answers: dict[str, int] = {}
    with door.client() as client:
        for number in range(JOBS_EACH):
            each = f"{name}-{number}"
            document = shell(f"echo ran >> {made.ran(each)}; sleep 0.2", name=each)
            answers[each] = client.submit_document(document).id
            # Reading works all the time as well.
            assert client.job(answers[each]).name == each
            time.sleep(0.05)
    return answers


def test_when_the_leader_is_killed_the_standby_leads_and_every_job_runs_once(
    postgres: Postgres,
) -> None:
    with household(postgres) as made, Watch(made) as watch, ThreadPoolExecutor(3) as pool:
        with made.doors[0].client() as client:
            long = client.submit_document(
                shell(f"echo ran >> {made.ran('long')}; sleep 4", name="long")
            ).id
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
        assert {
            name: len(job.attempts) for name, job in over.items() if len(job.attempts) != 1
        } == {}
        assert [made.ran(name).read_text() for name in over] == ["ran\n"] * len(over)
    assert watch.seen[True, True] == 0
    assert watch.seen[True, False]
    assert watch.seen[False, True]


def test_a_leader_that_ends_hands_over_and_its_jobs_go_on(postgres: Postgres) -> None:
    with household(postgres) as made, made.doors[0].client() as client:
        job = client.submit_document(shell(f"echo ran >> {made.ran('job')}; sleep 3")).id
        running(client, job)

        made.first.stop()
        until(made.second.leads, bool, TAKES_OVER_WITHIN_S)

        over = ended(client, [job])[0]
        assert (over.state, over.attempt) == ("completed", 1)
        assert made.ran("job").read_text() == "ran\n"


def test_a_leader_that_loses_its_lock_gives_the_lead_back_and_nothing_runs_twice(
    postgres: Postgres,
) -> None:
    with household(postgres) as made, made.doors[0].client() as client:
        names = [f"job{number}" for number in range(24)]
        documents = [shell(f"echo ran >> {made.ran(name)}; sleep 1", gpus=2) for name in names]
        jobs = [client.submit_document(document).id for document in documents]
        until(lambda: sum(1 for _ in made.place.glob("*.ran")), lambda ran: ran > 0)

        postgres.say("SELECT pg_terminate_backend(pid) FROM pg_locks WHERE locktype = 'advisory'")
        over = ended(client, jobs)

        assert {(job.state, job.attempt) for job in over} == {("completed", 1)}
        assert [made.ran(name).read_text() for name in names] == ["ran\n"] * len(names)
        assert most_at_once(client.event_page(limit=1_000).events) <= 4


def most_at_once(events: tuple[EventDocument, ...]) -> int:
    """How many jobs held room at the same time: four of them have all GPUs."""
    now = most = 0
    for event in events:
        now += {"job_placed": 1, "job_ended": -1}.get(event.kind, 0)
        most = max(most, now)
    return most


def test_when_the_database_is_away_for_a_moment_jobs_go_on(postgres: Postgres) -> None:
    with household(postgres) as made, made.first.client() as client:
        job = client.submit_document(shell(f"echo ran >> {made.ran('job')}; sleep 5")).id
        running(client, job)

        with away(postgres):
            # Live jobs are known without it.
            assert [each.state for each in client.jobs().jobs] == ["running"]
        until(lambda: made.first.leads() + made.second.leads(), lambda leaders: leaders == 1)

        over = ended(client, [job])[0]
        assert (over.state, over.attempt) == ("completed", 1)
        assert made.ran("job").read_text() == "ran\n"
        assert client.submit_document(shell("true")).id == job + 1


def test_a_request_that_is_sent_again_through_another_door_is_the_same_job(
    postgres: Postgres,
) -> None:
    with (
        household(postgres) as made,
        made.doors[0].client() as one,
        made.doors[1].client() as other,
        made.first.client() as leader,
    ):
        document = shell(f"echo ran >> {made.ran('once')}", request_key="once")
        with ThreadPoolExecutor(2) as pool:
            both = [pool.submit(door.submit_document, document) for door in (one, other)]
        answers = [each.result() for each in both]
        again = leader.submit_document(document)

        job = answers[0].id
        ended(one, [job])
        assert {*answers[0].ids, *answers[1].ids, *again.ids} == {job}
        assert made.ran("once").read_text() == "ran\n"


def test_a_process_that_only_answers_says_why_a_job_waits(postgres: Postgres) -> None:
    with household(postgres) as made, made.doors[0].client() as client:
        first = client.submit_document(shell("sleep 600", gpus=4)).id
        second = client.submit_document(shell("sleep 600", gpus=4)).id
        third = client.submit_document(shell("sleep 600", gpus=4)).id
        for job in (first, second):
            running(client, job)

        why = client.explain(third)

        assert (why.state, why.kind) == ("pending", "no_room")


def test_another_muster_does_not_lead_over_jobs_that_it_cannot_reach(postgres: Postgres) -> None:
    """Its jobs would run twice: on from the first folder, and again from its own."""
    with household(postgres) as made, made.doors[0].client() as client:
        job = client.submit_document(shell(f"echo ran >> {made.ran('job')}; sleep 600")).id
        running(client, job)
        made.second.stop()
        made.first.kill()
        stranger = made_home(made.place / "stranger")
        settings = Settings(store=read_settings(made.first.home).store, nodes=NODES, gpus=GPUS)

        muster = Muster(stranger, settings)
        with closing(muster), pytest.raises(BadSettingsError, match="--standby-for") as refused:
            muster.start()

        assert str(made.first.home) in str(refused.value)
        made.first.start()
        until(made.first.leads, bool)
        assert client.job(job).attempt == 1


def muster(*words: str) -> str:
    """What the command says."""
    command = [sys.executable, "-m", "muster", *words]
    done = subprocess.run(command, check=False, capture_output=True, text=True)  # noqa: S603 our own program
    return done.stdout + done.stderr


def test_an_administrator_starts_a_standby_by_naming_the_home_of_the_leader(
    postgres: Postgres,
) -> None:
    with folder() as place:
        first, second = str(place / "first"), str(place / "second")
        store = postgres.new_address()
        try:
            said = muster("up", "--home", first, "--store", store, "--nodes", "1", "--gpus", GPUS)
            also = muster("up", "--home", second, "--standby-for", first)
        finally:
            muster("down", "--home", second)
            muster("down", "--home", first)

        assert "Muster is up: 1 node, 4 GPUs (pretend)" in said
        assert "Muster stands by: another one leads" in also


def test_a_standby_needs_a_store_that_can_be_shared() -> None:
    with folder() as place:
        first, second = place / "first", place / "second"
        keep_settings(made_home(first), Settings(nodes=1))

        said = muster("up", "--home", str(second), "--standby-for", str(first))

        assert "start that one with --store postgresql://" in said
