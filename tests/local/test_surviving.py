import asyncio
import contextlib
import os
import signal
from pathlib import Path

import pytest

from local.here import Here, Wanted, is_gone
from muster.backends.base import Forget
from muster.model.errors import UnknownError
from muster.model.event import JobStarted
from muster.model.job import Exited, NodeFailed
from muster.model.launch import Launch, Terminal
from muster.model.running import TerminalStream
from muster.model.value import JobId, NodeId

WAITS = "echo $$ > pid; while ! test -e go; do sleep 0.02; done; echo over >> over"


def test_a_run_that_is_sent_twice_runs_once(here: Here) -> None:
    run = here.shell("echo ran >> ran")

    here.backend.do(run)
    here.ends()
    here.backend.do(run)
    here.shell("true", Wanted(job=2))

    here.ends(2)
    assert here.text("ran") == "ran\n"


def test_a_killed_supervisor_is_a_lost_node_and_leaves_nothing(here: Here) -> None:
    here.shell("(setsid sh -c 'echo $$ > daemon; exec sleep 600' &); echo $$ > pid; sleep 600")
    here.sees(JobStarted)
    pids = [here.pid_in("pid"), here.pid_in("daemon"), here.supervisor()]

    here.kill_supervisor()

    assert here.ends().why == NodeFailed(node=NodeId("n1"))
    here.until(lambda: all(is_gone(pid) for pid in pids))
    here.until(lambda: here.remnants() == [])


def test_jobs_go_on_without_their_spawner_and_the_next_one_starts(here: Here) -> None:
    here.shell(WAITS)
    here.pid_in("pid")
    spawner = here.spawner()

    os.kill(spawner, signal.SIGKILL)
    here.until(lambda: is_gone(spawner))
    here.shell("true", Wanted(job=2))

    assert here.ends(2).why == Exited(code=0)
    assert here.spawner() != spawner
    (here.work / "go").touch()
    assert here.ends().why == Exited(code=0)


def test_a_supervisor_that_dies_without_a_spawner_is_noticed(here: Here) -> None:
    here.shell(WAITS)
    pid = here.pid_in("pid")
    spawner = here.spawner()
    os.kill(spawner, signal.SIGKILL)
    here.until(lambda: is_gone(spawner))

    here.kill_supervisor()

    assert here.ends().why == NodeFailed(node=NodeId("n1"))
    here.until(lambda: is_gone(pid))


def test_another_backend_adopts_what_runs_and_tells_it_again(home: Path) -> None:
    first = Here(home)
    first.adopts()
    run = first.shell(WAITS)
    first.sees(JobStarted)
    first.backend.close()

    second = Here(home)
    second.adopts(run)

    assert second.sees(JobStarted).at == first.sees(JobStarted).at
    (second.work / "go").touch()
    assert second.ends().why == Exited(code=0)
    assert second.text("over") == "over\n"
    second.leaves()


def test_an_end_that_was_not_seen_is_reported_by_the_next_backend(home: Path) -> None:
    first = Here(home)
    first.adopts()
    run = first.shell("exit 5")
    first.until((first.folder() / "end.json").exists)
    first.backend.close()

    second = Here(home)
    second.adopts(run)

    assert second.ends().why == Exited(code=5)
    second.leaves()


def test_what_nobody_allocated_is_ended_by_adopting(home: Path) -> None:
    first = Here(home)
    first.adopts()
    first.shell(WAITS)
    pid = first.pid_in("pid")
    first.backend.close()

    second = Here(home)
    second.adopts()

    assert not second.folder().exists()
    second.until(lambda: is_gone(pid))
    second.leaves()


def test_a_run_that_was_written_but_never_sent_begins_after_a_restart(home: Path) -> None:
    first = Here(home)
    first.adopts()
    run = first.shell("echo ran >> ran")
    first.ends()
    for name in ("begun.json", "started.json", "end.json"):
        (first.folder() / name).unlink()
    first.backend.close()

    second = Here(home)
    second.adopts(run)

    assert second.ends().why == Exited(code=0)
    assert second.text("muster-1.out") == ""
    assert second.text("ran") == "ran\nran\n"
    second.leaves()


def test_a_forgotten_attempt_leaves_no_files(here: Here) -> None:
    here.shell("true")
    here.ends()

    here.backend.do(Forget(job=JobId(1), attempt=1))

    assert not here.folder().exists()


def test_forgetting_an_attempt_that_runs_ends_it(here: Here) -> None:
    here.shell(WAITS)
    pid = here.pid_in("pid")

    here.backend.do(Forget(job=JobId(1), attempt=1))

    here.until(lambda: is_gone(pid))


def test_devices_are_released_when_the_attempt_is_over(here: Here) -> None:
    run = here.shell("true")

    here.ends()

    assert tuple(here.machine.released) == run.allocation.placements


def test_the_spawner_stays_while_it_is_needed(here: Here) -> None:
    here.shell(WAITS)
    here.sees(JobStarted)

    assert not here.backend.stop_spawner()
    (here.work / "go").touch()
    here.ends()
    here.until(here.backend.stop_spawner)


def test_the_spawner_ends_with_its_user_when_nothing_runs(home: Path) -> None:
    here = Here(home)
    here.adopts()
    here.shell("true")
    here.ends()
    spawner = here.spawner()

    here.backend.close()

    here.until_gone(lambda: is_gone(spawner))


def test_the_spawner_stays_when_its_user_leaves_jobs_behind(home: Path) -> None:
    first = Here(home)
    first.adopts()
    run = first.shell(WAITS)
    first.sees(JobStarted)
    spawner = first.spawner()
    first.backend.close()

    second = Here(home)
    second.adopts(run)
    second.shell("true", Wanted(job=2))

    assert second.ends(2).why == Exited(code=0)
    assert second.spawner() == spawner
    (second.work / "go").touch()
    assert second.ends().why == Exited(code=0)
    second.leaves()


def test_a_spawner_of_other_code_is_replaced_and_its_jobs_go_on(home: Path) -> None:
    first = Here(home)
    first.adopts()
    run = first.shell(WAITS)
    first.sees(JobStarted)
    spawner, supervisor = first.spawner(), first.supervisor()
    first.backend.close()
    (home / "spool" / "spawner.lock").write_text("of an older Muster")

    second = Here(home)
    second.adopts(run)
    second.shell("true", Wanted(job=2))

    assert second.ends(2).why == Exited(code=0)
    second.until(lambda: is_gone(spawner))
    assert not is_gone(supervisor)
    (second.work / "go").touch()
    assert second.ends().why == Exited(code=0)
    second.leaves()


class Viewer:
    """Somebody at a job's terminal."""

    def __init__(self, stream: TerminalStream) -> None:
        self._stream = stream
        self._loop = asyncio.new_event_loop()
        self.shown = b""

    @property
    def code(self) -> int | None:
        return self._stream.exit_code

    def types(self, text: bytes) -> None:
        self._loop.run_until_complete(self._stream.write(text))

    def resizes(self, rows: int, columns: int) -> None:
        self._loop.run_until_complete(self._stream.resize(rows, columns))

    def has_seen(self, text: bytes) -> bool:
        self._look()
        return text in self.shown

    def has_seen_the_end(self) -> bool:
        self._look()
        return self.code is not None

    def leaves(self) -> None:
        self._stream.close()
        self._loop.close()

    def _look(self) -> None:
        with contextlib.suppress(TimeoutError):
            reading = asyncio.wait_for(self._stream.read(), 0.05)
            self.shown += self._loop.run_until_complete(reading)


def test_a_terminal_can_be_used_left_and_attached_to_again(here: Here) -> None:
    here.run(Launch(argv=("/bin/sh",), terminal=Terminal(rows=30, columns=90)))
    here.sees(JobStarted)
    first = Viewer(here.backend.attach(JobId(1), 1))
    first.types(b"tty -s && stty size\n")
    here.until(lambda: first.has_seen(b"30 90"))
    first.resizes(40, 100)
    first.types(b"stty size\n")
    here.until(lambda: first.has_seen(b"40 100"))
    first.leaves()

    second = Viewer(here.backend.attach(JobId(1), 1))

    here.until(lambda: second.has_seen(b"40 100"))
    second.types(b"exit 3\n")
    here.until(second.has_seen_the_end)
    assert second.code == 3
    assert here.ends().why == Exited(code=3)
    second.leaves()


def test_a_job_without_a_terminal_cannot_be_attached_to(here: Here) -> None:
    here.shell("true")
    here.ends()

    with pytest.raises(UnknownError):
        here.backend.attach(JobId(1), 1)


def test_who_leaves_for_good_leaves_no_groups(home: Path) -> None:
    here = Here(home)
    here.adopts()
    here.shell("true", Wanted(memory_mib=64))
    here.ends()
    token = (home / "spool" / "token").read_text()

    here.until(here.backend.stop_spawner)
    here.backend.close()

    here.until_gone(lambda: not list(Path("/sys/fs/cgroup").glob(f"**/muster-{token[:12]}")))
