"""The real command against a real daemon: `muster up`, real jobs, `muster down`."""

import json
import os
import pty
import select
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import pytest

PATIENCE_S = 40
EXAMPLES = Path(__file__).parents[3] / "examples" / "batch"
CTRL_C, CTRL_P_CTRL_Q = b"\x03", b"\x10\x11"


@dataclass(frozen=True, kw_only=True)
class Ran:
    """What a command came to."""

    code: int
    out: str
    err: str


@dataclass(frozen=True, kw_only=True)
class Machine:
    """A machine with Muster on it, and a folder to work in."""

    home: Path
    folder: Path

    def muster(self, *argv: str) -> Ran:
        run = subprocess.run(  # noqa: S603  our own program
            [sys.executable, "-m", "muster", *argv],
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
            check=False,
            env=self.environ,
            cwd=self.folder,
        )
        return Ran(code=run.returncode, out=run.stdout, err=run.stderr)

    def submits(self, *argv: str) -> str:
        made = self.muster("submit", "--quiet", *argv)
        assert made.code == 0, made.err
        return made.out.strip()

    def job(self, job: str) -> dict[str, object]:
        return json.loads(self.muster("show", job, "-o", "json").out)

    def waits_until(self, job: str, state: str) -> None:
        deadline = time.monotonic() + PATIENCE_S
        while (found := self.job(job)["state"]) != state:
            assert time.monotonic() < deadline, f"job {job} is still {found}"

    @property
    def environ(self) -> dict[str, str]:
        kept = {name: value for name, value in os.environ.items() if "MUSTER" not in name}
        return kept | {"MUSTER_HOME": str(self.home), "TERM": "xterm", "PS1": "$ "}


@pytest.fixture(scope="module")
def machine() -> Iterator[Machine]:
    # Short, because the path of a socket may not be long.
    root = Path(tempfile.mkdtemp(prefix="muster-"))
    machine = Machine(home=root / "home", folder=root / "work")
    machine.folder.mkdir()
    up = machine.muster("up", "--nodes", "2", "--gpus", "4xA100-40GB")
    assert up.code == 0, up.err
    try:
        yield machine
    finally:
        machine.muster("cancel", *_live(machine))
        deadline = time.monotonic() + PATIENCE_S
        while _live(machine) and time.monotonic() < deadline:
            time.sleep(0.05)
        down = machine.muster("down")
        shutil.rmtree(root)
        assert down.code == 0, down.err


def _live(machine: Machine) -> list[str]:
    return machine.muster("ps", "-o", "name").out.split()


def test_the_machine_is_presented_as_it_was_asked_for(machine: Machine) -> None:
    nodes = json.loads(machine.muster("nodes", "-o", "json").out)

    assert [node["id"] for node in nodes] == ["pretend1", "pretend2"]
    assert [node["gpus"] for node in nodes] == [4, 4]
    assert "(pretend)" in machine.muster("nodes").out
    assert "(pretend)" in machine.muster("status").out


def test_a_job_runs_and_its_log_and_history_can_be_read(machine: Machine) -> None:
    job = machine.submits("--gpus", "2", "--", "sh", "-c", "echo $CUDA_VISIBLE_DEVICES; pwd")

    waited = machine.muster("wait", job)

    assert (waited.code, waited.err) == (0, f"job {job} completed\n")
    devices, folder = machine.muster("logs", job).out.split()
    assert len(devices.split(",")) == 2
    assert folder == str(machine.folder)
    history = json.loads(machine.muster("history", "-o", "json").out)
    assert [each["state"] for each in history if each["id"] == int(job)] == ["completed"]


def test_a_script_with_directives_runs_with_its_arguments(machine: Machine) -> None:
    script = machine.folder / "hello.sh"
    script.write_text('#!/bin/sh\n#MUSTER --gpus 1 --name greeting\necho "hello $1"\nexit 5\n')

    ran = machine.muster("submit", "--wait", str(script), "world")

    assert ran.code == 5
    job = ran.out.split()[1]
    assert machine.muster("logs", job).out == "hello world\n"
    assert machine.job(job)["name"] == "greeting"


def test_who_cancels_can_wait_until_the_jobs_are_over(machine: Machine) -> None:
    job = machine.submits("--", "sh", "-c", "trap 'sleep 1; exit' TERM; sleep 600 & wait")
    machine.waits_until(job, "running")

    cancelled = machine.muster("cancel", "--wait", job)

    assert cancelled.code == 0
    assert job not in _live(machine)


def test_an_array_is_many_jobs_that_can_be_named_together(machine: Machine) -> None:
    made = machine.muster("submit", "--array", "0-2", "--", "sh", "-c", "echo array")
    array = made.out.split()[1]

    assert made.out == f"array {array} of 3 jobs submitted to default\n"
    assert machine.muster("wait", f"{array}_*").code == 0
    assert machine.muster("logs", f"{array}_1").out == "array\n"


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        (("quota", "default", "--weight", "2"), "Nothing would start, wait or make room at once."),
        (("submit", "--hold", "--gpus", "1"), "Held; once it is released: "),
        (("submit", "--array", "1-4", "--gpus", "1"), "The first of 4 jobs: "),
    ],
)
def test_what_if_always_has_an_answer(
    machine: Machine, asked: tuple[str, ...], message: str
) -> None:
    ran = machine.muster("whatif", *asked)

    assert ran.code == 0, ran.err
    assert ran.out.startswith(message)
    assert len(ran.out.strip()) >= len(message)


def test_what_waits_is_explained_and_can_be_cancelled(machine: Machine) -> None:
    holders = [machine.submits("--gpus", "4", "--", "sleep", "600") for _ in range(2)]
    for holder in holders:
        machine.waits_until(holder, "running")
    waiting = machine.submits("--gpus", "4", "--", "true")

    explained = machine.muster("explain", waiting)
    why = machine.muster("why", waiting)
    rehearsed = machine.muster("whatif", "submit", "--gpus", "4")
    cancelled = machine.muster("cancel", *holders)

    assert f"job {waiting} is pending: " in explained.out
    assert "In its way: job" in explained.out
    assert why.out.count("\n") == 1
    for text in (explained.out, why.out, rehearsed.out):
        assert ".:" not in text
        assert ".;" not in text
    # Another test may have set a quota meanwhile: either way it would wait, and says for what.
    assert "4 GPUs" in rehearsed.out
    assert cancelled.code == 0
    assert machine.muster("wait", waiting).code == 0


def test_jobs_are_held_released_and_updated(machine: Machine) -> None:
    job = machine.submits("--hold", "--", "true")

    updated = machine.muster("update", job, "--name", "other", "--time", "1h")
    released = machine.muster("release", job)

    assert updated.out == f"job {job} updated\n"
    assert released.out == f"job {job} released\n"
    assert machine.muster("wait", job).code == 0
    assert machine.job(job)["name"] == "other"


def test_a_running_job_is_suspended_and_resumed(machine: Machine) -> None:
    job = machine.submits("--", "sleep", "600")
    machine.waits_until(job, "running")

    machine.muster("suspend", job)
    machine.waits_until(job, "suspended")
    machine.muster("resume", job)
    machine.waits_until(job, "running")

    assert machine.muster("cancel", "--signal", "KILL", job).code == 0
    assert machine.muster("wait", job).code == 137


def test_a_node_is_drained_and_takes_work_again(machine: Machine) -> None:
    drained = machine.muster("drain", "pretend2", "--reason", "new power supply")
    shown = machine.muster("nodes").out
    resumed = machine.muster("resume", "pretend2")

    assert drained.out == "node pretend2 drains\n"
    assert "draining" in shown
    assert "new power supply" in shown
    assert resumed.out == "node pretend2 takes work again\n"


def test_the_log_is_followed_while_it_grows(machine: Machine) -> None:
    job = machine.submits("--", "sh", "-c", "for i in 1 2 3; do echo $i; sleep 0.2; done")

    assert machine.muster("logs", "-f", job).out == "1\n2\n3\n"


def test_what_does_not_exist_exits_with_four(machine: Machine) -> None:
    assert machine.muster("show", "999999").code == 4


def test_the_configuration_is_printed_applied_and_rehearsed(machine: Machine) -> None:
    path = machine.folder / "cluster.yaml"
    path.write_text(machine.muster("site").out)

    same = machine.muster("apply", "-f", str(path))
    quota = machine.muster("quota", "set", "default", "--guaranteed", "2", "--limit", "8")

    assert (same.code, same.err) == (0, "Nothing changes.\n")
    assert quota.code == 0
    assert "guaranteed" in quota.out
    assert "apply" in machine.muster("audit").out


def test_run_without_a_terminal_streams_and_returns_the_code(machine: Machine) -> None:
    ran = machine.muster("run", "--gpus", "1", "sh", "-c", "echo out; exit 4")

    assert (ran.code, ran.out) == (4, "out\n")


@dataclass
class Seat:
    """Somebody at a terminal, with a command in it."""

    pid: int
    descriptor: int
    seen: bytes = b""

    @classmethod
    def at(cls, machine: Machine, *argv: str) -> "Seat":
        pid, descriptor = pty.fork()
        if pid == 0:
            os.chdir(machine.folder)
            program = [sys.executable, "-m", "muster", *argv]
            os.execve(sys.executable, program, machine.environ)  # noqa: S606  our own program
        return cls(pid, descriptor)

    def types(self, keys: bytes) -> None:
        os.write(self.descriptor, keys)

    def sees(self, text: bytes) -> None:
        """Waits until it is on the screen, and looks on from there."""
        deadline = time.monotonic() + PATIENCE_S
        while text not in self.seen:
            ready, _, _ = select.select([self.descriptor], [], [], deadline - time.monotonic())
            assert ready, f"{text!r} is not in {self.seen!r}"
            self.seen += os.read(self.descriptor, 65_536)
        self.seen = self.seen.partition(text)[2]

    def ends(self) -> int:
        """Reads what is left, and gives the exit code."""
        deadline = time.monotonic() + PATIENCE_S
        with suppress(OSError):  # how Linux says that the other end is closed
            while True:
                ready, _, _ = select.select([self.descriptor], [], [], deadline - time.monotonic())
                assert ready, f"it goes on after {self.seen!r}"
                self.seen += os.read(self.descriptor, 65_536)
        os.close(self.descriptor)
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])


def test_run_at_a_terminal_gives_the_job_a_terminal(machine: Machine) -> None:
    seat = Seat.at(machine, "run", "--gpus", "1", "sh")

    seat.sees(b"$ ")
    seat.types(b"stty size; echo $((40 + 2))\r")
    seat.sees(b"24 80")
    seat.sees(b"42")
    seat.types(b"exit 7\r")

    assert seat.ends() == 7


def test_what_is_over_at_once_at_a_terminal_shows_what_it_wrote(machine: Machine) -> None:
    for code in range(4):
        seat = Seat.at(machine, "run", "sh", "-c", f"echo over; exit {code}")

        assert seat.ends() == code
        assert seat.seen.startswith(b"over\r"), seat.seen
        assert b"Traceback" not in seat.seen, seat.seen


def test_ctrl_c_at_a_terminal_interrupts_what_runs_there(machine: Machine) -> None:
    seat = Seat.at(machine, "run", "sh")

    seat.sees(b"$ ")
    seat.types(b"trap 'echo caught' INT\r")
    seat.sees(b"$ ")
    # Said by the one that is to be interrupted: the shell itself would only note it for later.
    seat.types(b"sh -c \"echo rea''dy; exec sleep 600\"; echo aft''er\r")
    seat.sees(b"ready")
    seat.types(CTRL_C)
    seat.sees(b"$ ")
    seat.types(b"exit 3\r")

    assert seat.ends() == 3


def test_ctrl_c_at_a_terminal_ends_a_job_that_does_not_mind_it(machine: Machine) -> None:
    seat = Seat.at(machine, "run", "sh", "-c", "echo ready; exec sleep 600")

    seat.sees(b"ready")
    seat.types(CTRL_C)

    assert seat.ends() == 130


def test_a_cancelled_job_that_does_not_mind_ends_at_once(machine: Machine) -> None:
    job = machine.submits("--", "sleep", "600")
    machine.waits_until(job, "running")
    began = time.monotonic()

    machine.muster("cancel", job)
    machine.muster("wait", job)

    # Its grace is half a minute, which only a job that will not end gets to see.
    assert time.monotonic() - began < 15


def test_a_job_is_left_and_sat_down_at_again(machine: Machine) -> None:
    first = Seat.at(machine, "run", "--name", "desk", "sh")
    first.sees(b"$ ")
    first.types(b"X=kept\r")
    first.sees(b"$ ")
    first.types(CTRL_P_CTRL_Q)
    assert first.ends() == 0
    job = machine.muster("ps", "--name", "desk", "-o", "name").out.strip()

    second = Seat.at(machine, "attach", job)
    second.sees(b"$ ")
    second.types(b"echo it is $X; exit 2\r")
    second.sees(b"it is kept")

    assert second.ends() == 2


def test_top_draws_and_quits(machine: Machine) -> None:
    seat = Seat.at(machine, "top")

    seat.sees(b"GPUs [")
    seat.types(b"n")
    seat.sees(b"pretend1")
    seat.types(b"u")
    seat.sees(b"GUARANTEED")
    seat.types(b"q")

    assert seat.ends() == 0


def test_in_top_a_job_is_found_explained_read_and_cancelled(machine: Machine) -> None:
    text = "echo hello from here; sleep 600"
    job = machine.submits("--name", "needle", "--", "sh", "-c", text)
    other = machine.submits("--name", "hay", "--", "sleep", "600")
    machine.waits_until(job, "running")
    seat = Seat.at(machine, "top")

    seat.sees(b"e explain")
    seat.types(b"/")
    seat.sees(b"show jobs with:")
    seat.types(b"need\r")
    seat.sees(b"[need]")
    seat.types(b"l")
    seat.sees(b"hello from here")
    seat.types(b" ")
    seat.sees(b"e explain")
    seat.types(b"e")
    seat.sees(b"Runs on")
    seat.types(b" ")
    seat.sees(b"e explain")
    seat.types(b"c")
    seat.sees(f"cancel job {job} (needle)?".encode())
    seat.types(b"y")
    machine.waits_until(job, "cancelled")
    seat.types(b"q")

    assert seat.ends() == 0
    assert machine.job(other)["state"] == "running"
    machine.muster("cancel", other)


def test_a_waiting_job_is_changed_as_its_explanation_suggests(machine: Machine) -> None:
    holders = [machine.submits("--gpus", "3", "--", "sleep", "600") for _ in range(2)]
    for holder in holders:
        machine.waits_until(holder, "running")
    waiting = machine.submits("--gpus", "2", "--", "sleep", "600")

    explained = machine.muster("explain", waiting)
    applied = machine.muster("explain", waiting, "--apply", "1")

    assert f"muster explain {waiting} --apply 1" in explained.out
    assert applied.code == 0, applied.err
    machine.waits_until(waiting, "running")
    assert machine.job(waiting)["gpus"] == 1
    machine.muster("cancel", waiting, *holders)


def test_how_many_gpus_a_waiting_job_has_can_be_changed(machine: Machine) -> None:
    job = machine.submits("--hold", "--gpus", "4", "--", "true")

    changed = machine.muster("update", job, "--gpus", "1", "--memory", "2G")

    assert changed.out == f"job {job} updated\n", changed.err
    shown = machine.job(job)
    assert (shown["gpus"], shown["memory_mib"]) == (1, 2_048)
    machine.muster("cancel", job)


def test_a_bare_number_is_no_time_limit(machine: Machine) -> None:
    refused = machine.muster("submit", "--time", "60", "--", "true")

    assert refused.code != 0
    assert "write `60m` for minutes or `60s` for seconds" in refused.err
    assert "digits alone" not in machine.muster("submit", "--time", "1x", "--", "true").err


def test_the_last_lines_of_a_log_are_counted_in_lines(machine: Machine) -> None:
    job = machine.submits("--", "sh", "-c", "seq 1 2000")
    machine.muster("wait", job)

    assert machine.muster("logs", "--tail", "3", job).out == "1998\n1999\n2000\n"
    assert machine.muster("logs", "-f", "-n", "1", job).out == "2000\n"
    assert machine.muster("logs", "-n", "5000", job).out.count("\n") == 2_000


def test_a_job_of_an_array_has_one_name(machine: Machine) -> None:
    made = machine.muster("submit", "--hold", "--array", "1-2", "--", "true")
    name = f"{made.out.split()[1]}_2"

    for argv in (
        ("explain", name),
        ("why", name),
        ("update", name, "--time", "5m"),
        ("show", name),
    ):
        assert name in machine.muster(*argv).out.splitlines()[0]
    assert machine.muster("cancel", name).out == f"job {name} cancelled\n"
    machine.muster("cancel", f"{name[:-2]}_*")


def test_the_doctor_finds_nothing_that_fails(machine: Machine) -> None:
    found = machine.muster("doctor")

    assert found.code == 0, found.out
    assert "both are" in found.out


def test_jobs_outlive_the_daemon(machine: Machine) -> None:
    job = machine.submits("--", "sh", "-c", "while [ ! -e go ]; do sleep 0.05; done; echo done")
    machine.waits_until(job, "running")

    assert machine.muster("down").code == 0
    assert machine.muster("ps").code == 3
    assert machine.muster("up").code == 0
    (machine.folder / "go").touch()

    assert machine.muster("wait", job).code == 0
    assert machine.muster("logs", job).out == "done\n"


def test_a_pbs_script_runs_as_it_is(machine: Machine) -> None:
    shutil.copy(EXAMPLES / "sweep.pbs", machine.folder)

    ran = machine.muster("submit", "--wait", "sweep.pbs")

    assert ran.code == 0, ran.err
    written = sorted(path.read_text() for path in machine.folder.glob("sweep.o*"))
    assert len(written) == 2
    assert all(text.startswith("part ") and "on 2 CPUs, GPU " in text for text in written)


def test_an_lsf_script_runs_as_it_is(machine: Machine) -> None:
    shutil.copy(EXAMPLES / "train.lsf", machine.folder)

    ran = machine.muster("submit", "--wait", "train.lsf")

    assert ran.code == 0, ran.err
    (written,) = machine.folder.glob("train.*.txt")
    assert written.read_text() == "job train has 4 slots: pretend1 pretend2\n"


def test_a_script_with_a_line_that_cannot_be_read_is_refused_with_its_place(
    machine: Machine,
) -> None:
    (machine.folder / "bad.pbs").write_text("#!/bin/sh\n#PBS -l floppies=2\n")

    ran = machine.muster("submit", "bad.pbs")

    assert ran.code == 2
    assert "bad.pbs:2: #PBS: -l floppies is not a resource" in ran.err
