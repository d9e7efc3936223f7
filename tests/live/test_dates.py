"""Dates of a real Muster: from a process of its own, through a restart, and judged."""

import os
import signal
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

from live.house import GPUS, Process, ended, folder, running, shell, until
from muster import Client
from muster.api.pages import RehearsalAsked
from muster.settings import Settings

pytestmark = pytest.mark.slow


@contextmanager
def daemon() -> Generator[tuple[Process, Client]]:
    with folder() as place:
        process = Process(place / "home", Settings(nodes=1, gpus=GPUS))
        try:
            process.start()
            until(process.leads, bool)
            with process.client() as client:
                until(lambda: len(list(client.nodes())), bool)
                yield process, client
                live = [job.id for job in client.all_jobs()]
                client.cancel(live)
                ended(client, live)
        finally:
            process.stop()


def forecasters(process: Process) -> list[int]:
    """The processes that the daemon started to make dates."""
    daemon_pid = int((process.home / "daemon.lock").read_text(encoding="utf-8"))
    children = Path(f"/proc/{daemon_pid}/task").glob("*/children")
    pids = {int(pid) for each in children for pid in each.read_text(encoding="utf-8").split()}
    return [
        pid
        for pid in sorted(pids)
        if b"muster.app.forecaster" in Path(f"/proc/{pid}/cmdline").read_bytes()
    ]


def test_a_waiting_job_is_told_a_range_everywhere_and_it_is_judged() -> None:
    with daemon() as (process, client):
        first = client.submit_document(shell("sleep 600", gpus=4, time="10m")).id
        running(client, first)
        waiting = client.submit_document(shell("true", gpus=4, time="10m")).id

        told = until(lambda: client.job(waiting), lambda seen: seen.start is not None)
        explained = client.explain(waiting)
        (listed,) = [job for job in client.all_jobs() if job.id == waiting]

        assert told.start is not None
        assert told.start.early <= told.start.middle <= told.start.late
        assert told.expected_start == told.start.middle
        assert explained.start is not None
        assert explained.start.after == (first,)
        assert listed.start is not None
        client.cancel([first])
        ended(client, [first, waiting])
        judged = until(client.status, lambda seen: seen.dates_told > 0)
        assert judged.dates_told == 1
        process.stop()
        process.start()
        assert until(client.status, lambda seen: seen.dates_told > 0).dates_told == 1


def test_dates_come_again_after_the_forecaster_was_killed() -> None:
    with daemon() as (process, client):
        client.submit_document(shell("sleep 600", gpus=4))
        one = client.submit_document(shell("true", gpus=4)).id
        until(lambda: client.job(one), lambda seen: seen.start is not None)

        for pid in forecasters(process):
            os.kill(pid, signal.SIGKILL)
        another = client.submit_document(shell("true", gpus=4)).id

        until(lambda: client.job(another), lambda seen: seen.start is not None)


def test_a_job_that_will_miss_its_deadline_says_so_when_it_is_submitted() -> None:
    with daemon() as (_, client):
        running(client, client.submit_document(shell("sleep 600", gpus=4, time="4h")).id)

        late = shell("true", gpus=4, time="10m", deadline="now+11m")

        # On a busy machine the answer may not wait until there is a date.
        said = until(lambda: client.submit_document(late), lambda found: bool(found.cautions))
        explained = client.explain(said.id)

        assert "too late for its deadline" in said.cautions[0]
        assert "too late for its deadline" in explained.text
        happened = until(
            lambda: [each.kind for each in client.event_page().events if each.job == said.id],
            lambda kinds: "deadline_miss_foreseen" in kinds,
        )
        assert happened.count("deadline_miss_foreseen") == 1


def test_what_if_tells_the_range_of_a_job_that_would_wait() -> None:
    with daemon() as (_, client):
        held = client.submit_document(shell("sleep 600", gpus=4, time="1h")).id
        running(client, held)

        found = client.rehearse(RehearsalAsked(submit=shell("true", gpus=4, time="10m")))

        assert found.start is not None
        assert found.start.after == (held,)
        assert found.expected_start == found.start.middle
        assert [job.id for job in client.all_jobs()] == [held]
