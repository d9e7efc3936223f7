"""srun and salloc as users type them: real daemons, supervisors, tasks and terminals."""

import contextlib
import fcntl
import json
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from pathlib import Path

import pytest

from doors.slurm.house import PATIENCE_S, House, house

CANCELLED = re.compile(
    r"slurmstepd-\w+: error: \*\*\* STEP [\d.]+ ON \w+ CANCELLED AT \S+ (DUE TO [A-Z ]+ )?\*\*\*\n"
)


def batch(slurm: House, name: str, options: str, text: str) -> str:
    """What a job wrote that ran these lines to their end."""
    path = slurm.work / f"{name}.sh"
    path.write_text(f"#!/bin/bash\n#SBATCH -o {name}.out {options}\nexec 2>&1\n{text}\n")
    slurm.shell(f"sbatch -Q --wait {name}.sh")
    return (slurm.work / f"{name}.out").read_text()


def without_step_id(text: str) -> str:
    return re.sub(r"(StepId=|job |Job )\d+(\.\d+)?", r"\1N", text)


# A job of its own.


def test_srun_alone_is_a_job_that_ends_as_its_step_does(slurm: House) -> None:
    good = slurm.shell("srun -J alone -n2 -l bash -c 'echo $SLURM_PROCID of $SLURM_NTASKS'")
    bad = slurm.shell("srun -J alone bash -c 'exit 3'")

    assert (good.code, good.err) == (0, "")
    assert sorted(good.out.splitlines()) == ["0: 0 of 2", "1: 1 of 2"]
    assert bad.code == 3
    assert re.fullmatch(r"srun: error: pretend\d: task 0: Exited with exit code 3\n", bad.err)
    line = "sacct -X -n -P -o State,ExitCode --name alone"
    slurm.waits_until(lambda: slurm.out(line).split() == ["COMPLETED|0:0", "FAILED|3:0"])


def test_srun_has_its_stdin_and_its_gpus(slurm: House) -> None:
    out = slurm.out("echo typed | srun --gres=gpu:2 bash -c 'cat; echo $CUDA_VISIBLE_DEVICES'")

    typed, gpus = out.splitlines()
    assert typed == "typed"
    assert len(gpus.split(",")) == 2


def test_srun_waits_for_room_and_says_so(slurm: House) -> None:
    first = slurm.submits("-N2 --exclusive -o /dev/null --wrap 'sleep 600'")
    slurm.waits_for(first, "RUNNING")
    waiting = begun(slurm, "srun echo there")
    assert waiting.stderr is not None
    queued = waiting.stderr.readline()
    slurm.out(f"scancel {first}")

    out, err = waiting.communicate(timeout=PATIENCE_S)

    assert (waiting.returncode, out) == (0, "there\n")
    assert re.fullmatch(
        r"srun: job (\d+) queued and waiting for resources\n"
        r"srun: job \1 has been allocated resources\n",
        queued + err,
    )


def test_what_cannot_start_at_once_does_not_when_asked_so(slurm: House) -> None:
    first = slurm.submits("-N2 --exclusive -o /dev/null --wrap 'sleep 600'")
    slurm.waits_for(first, "RUNNING")

    ran = slurm.shell("srun -I -J hurried true")

    busy = "srun: error: Unable to allocate resources: Requested nodes are busy\n"
    assert (ran.code, ran.err) == (1, busy)
    assert slurm.out("sacct -X -n -P -o State --name hurried").startswith("CANCELLED")
    slurm.out(f"scancel {first}")
    slurm.waits_for(first, "CANCELLED")


@pytest.mark.parametrize("command", ["srun", "salloc"])
def test_ctrl_c_gives_up_a_job_that_waits(slurm: House, command: str) -> None:
    first = slurm.submits("-N2 --exclusive -o /dev/null --wrap 'sleep 600'")
    slurm.waits_for(first, "RUNNING")
    waiting = begun(slurm, f"exec {command} -J given-up true")
    slurm.waits_until(lambda: "PD" in slurm.out("squeue -h -n given-up -o %t"))
    until_line(waiting, "queued and waiting")
    waiting.send_signal(signal.SIGINT)

    _, err = waiting.communicate(timeout=PATIENCE_S)

    assert waiting.returncode == 1
    assert "has been revoked" in err
    slurm.waits_until(lambda: not slurm.out("squeue -h -n given-up"))
    slurm.out(f"scancel {first}")
    slurm.waits_for(first, "CANCELLED")


def test_a_job_ends_when_its_srun_is_killed(slurm: House) -> None:
    killed = begun(slurm, "exec srun -J orphan bash -c 'echo $$; sleep 600'")
    pid = int(first_line(killed))
    killed.kill()
    killed.communicate(timeout=PATIENCE_S)

    slurm.waits_until(lambda: not Path(f"/proc/{pid}").exists())
    line = "sacct -X -n -P -o State --name orphan"
    slurm.waits_until(lambda: slurm.out(line).startswith("CANCELLED"))


# Steps of a job.


def test_steps_run_in_a_job_with_its_gpus_and_numbers(slurm: House) -> None:
    output = batch(
        slurm,
        "steps",
        "-n2 --gres=gpu:2",
        "srun bash -c 'echo $SLURM_STEP_ID $SLURM_NTASKS $SLURM_STEP_GPUS'\n"
        "srun -n2 --gpus-per-task=1 -l bash -c 'echo $SLURM_STEPID $CUDA_VISIBLE_DEVICES'\n"
        "srun -n1 --gres=none bash -c 'echo [$CUDA_VISIBLE_DEVICES]'\n"
        "srun -n3 true\n"
        "srun --gres=gpu:3 true\n",
    )

    *lines, many, _, gres = without_step_id(output).splitlines()
    gpus = lines[0].split()[2]
    assert lines[:2] == [f"0 2 {gpus}", f"0 2 {gpus}"]
    assert sorted(lines[2:4]) == [f"{at}: 1 {gpu}" for at, gpu in enumerate(gpus.split(","))]
    assert lines[4] == "[]"
    prefix = "srun: error: Unable to create step for job N: "
    assert many == prefix + "More processors requested than permitted"
    assert gres == prefix + "Invalid generic resource (gres) specification"


def test_steps_wait_for_each_other_unless_they_overlap_or_are_exact(slurm: House) -> None:
    output = batch(
        slurm,
        "parallel",
        "-n2 --gres=gpu:2",
        "mkfifo gate\n"
        "srun -n1 bash -c 'touch up; cat gate; echo first' &\n"
        "until [ -e up ]; do sleep 0.05; done\n"
        "srun -n1 --overlap echo beside\n"
        "srun -n1 echo after 2>after.err &\n"
        "until grep -q retrying after.err; do sleep 0.05; done\n"
        "echo opened; echo >gate; wait; cat after.err\n"
        "srun --exact -n1 --gres=gpu:1 bash -c 'touch on; cat gate; echo $CUDA_VISIBLE_DEVICES' &\n"
        "until [ -e on ]; do sleep 0.05; done\n"
        "srun --exact -n1 --gres=gpu:1 bash -c 'echo $CUDA_VISIBLE_DEVICES; echo >gate'\n"
        "wait\n",
    )

    lines = [line for line in without_step_id(output).splitlines() if line]
    assert lines[0] == "beside"
    assert lines.index("opened") < lines.index("first") < lines.index("after")
    busy = "step creation temporarily disabled, retrying (Requested nodes are busy)"
    assert f"srun: Job N {busy}" in lines
    assert "srun: Step created for job N" in lines
    assert sorted(lines[-2:]) == ["0", "1"]


def test_output_goes_where_patterns_say(slurm: House) -> None:
    output = batch(
        slurm,
        "named",
        "-n2 -J named",
        "srun -o 'o-%j-%J-%t-%s-%x-%2t.txt' bash -c 'echo out $SLURM_PROCID'\n"
        "srun -n2 -o both.txt bash -c 'echo out; echo err >&2'\n"
        "srun -n2 -o 1 bash -c 'echo $SLURM_PROCID'\n"
        "srun -n2 -o none echo unseen\n"
        "srun -n2 -i 1 -l cat < named.sh | head -1\n"
        "echo all | srun -n2 -l cat\n"
        "ls o-*\n",
    )

    lines = output.splitlines()
    assert lines[0] == "1"
    assert lines[1] == "1: #!/bin/bash"
    assert sorted(lines[2:4]) == ["0: all", "1: all"]
    job = lines[4].split("-")[1]
    assert lines[4:] == [f"o-{job}-{job}.0-{rank}-0-named-0{rank}.txt" for rank in (0, 1)]
    assert sorted((slurm.work / "both.txt").read_text().split()) == ["err", "err", "out", "out"]


def test_multi_prog_runs_other_programs_in_other_tasks(slurm: House) -> None:
    (slurm.work / "programs.conf").write_text("# who\n0 echo first %t\n1-2 bash -c 'echo %t %o'\n")

    out = slurm.out("srun -n3 -l --multi-prog programs.conf")
    short = slurm.shell("srun -n4 --multi-prog programs.conf")

    assert sorted(out.splitlines()) == ["0: first 0", "1: 1 0", "2: 2 1"]
    assert "no record for task id 3" in short.err


def test_the_environment_is_that_of_a_step(slurm: House) -> None:
    (slurm.work / "environ.py").write_text("import json, os; print(json.dumps(dict(os.environ)))\n")
    out = slurm.out(f"srun -N2 -n4 -c2 -J vars {sys.executable} environ.py", MINE="kept")
    tasks = sorted(map(json.loads, out.splitlines()), key=lambda each: each["SLURM_PROCID"])

    ranks = [(each["SLURM_PROCID"], each["SLURM_NODEID"], each["SLURM_LOCALID"]) for each in tasks]
    assert ranks == [("0", "0", "0"), ("1", "0", "1"), ("2", "1", "0"), ("3", "1", "1")]
    first = tasks[0]
    assert first["SLURM_STEP_NODELIST"] == "pretend[1-2]"
    assert first["SLURM_STEP_TASKS_PER_NODE"] == first["SLURM_TASKS_PER_NODE"] == "2(x2)"
    assert (first["SLURM_GTIDS"], first["SLURM_CPUS_PER_TASK"]) == ("0,1", "2")
    assert (first["SLURM_JOB_NAME"], first["MINE"]) == ("vars", "kept")
    assert (first["RANK"], first["WORLD_SIZE"], first["LOCAL_WORLD_SIZE"]) == ("0", "4", "2")
    assert first["SLURM_TASK_PID"] != tasks[1]["SLURM_TASK_PID"]


def test_export_passes_on_what_it_says(slurm: House) -> None:
    line = "srun --export=MINE,NEW=1 /bin/sh -c 'echo $MINE $NEW [$OTHER]'"

    assert slurm.out(line, MINE="mine", OTHER="other") == "mine 1 []\n"


# How they end.


@pytest.mark.parametrize(
    ("command", "code", "text"),
    [
        ("-n2 bash -c 'kill -9 $$'", 137, "tasks 0-1: Killed"),
        ("bash -c 'kill -SEGV $$'", 139, "task 0: Segmentation fault"),
        ("no-such-command", 2, "task 0: Exited with exit code 2"),
        ("/etc/passwd", 13, "task 0: Exited with exit code 13"),
    ],
)
def test_srun_ends_with_the_highest_code(slurm: House, command: str, code: int, text: str) -> None:
    ran = slurm.shell(f"srun {command}")

    assert ran.code == code
    assert text in ran.err


def test_a_bad_exit_ends_the_step_when_asked_so(slurm: House) -> None:
    ran = slurm.shell("srun -n2 -K bash -c '[ $SLURM_PROCID = 1 ] && exit 5; sleep 600'")

    said = CANCELLED.sub("CANCELLED\n", without_step_id(ran.err))
    node = said.split()[2]
    assert said == (
        f"srun: error: {node} task 1: Exited with exit code 5\n"
        "srun: launch/slurm: _step_signal: Terminating StepId=N\n"
        "CANCELLED\n"
        f"srun: error: {node} task 0: Terminated\n"
        "srun: Force Terminated StepId=N\n"
    )
    assert ran.code == 143


def test_the_others_are_not_waited_for_longer_than_asked(slurm: House) -> None:
    ran = slurm.shell("srun -n2 -W 1 bash -c '[ $SLURM_PROCID = 0 ] || sleep 600'")

    assert ran.code == 137
    assert "srun: First task exited 1s ago\n" in ran.err


def test_ctrl_c_shows_the_status_and_again_ends_the_step(slurm: House) -> None:
    step = begun(slurm, "exec srun -n2 bash -c 'echo ready; sleep 600'")
    assert first_line(step) == "ready"
    step.send_signal(signal.SIGINT)
    until_line(step, "tasks 0-1: running")
    step.send_signal(signal.SIGINT)

    _, err = step.communicate(timeout=PATIENCE_S)

    assert step.returncode == 130
    assert "srun: sending Ctrl-C to StepId=" in err
    assert "tasks 0-1: Interrupt" in err


def test_signals_reach_the_tasks(slurm: House) -> None:
    traps = 'trap "echo got it; exit 0" USR1; echo ready; while :; do sleep 0.05; done'
    step = begun(slurm, f"exec srun bash -c '{traps}'")
    assert first_line(step) == "ready"
    step.send_signal(signal.SIGUSR1)

    out, err = step.communicate(timeout=PATIENCE_S)

    assert (step.returncode, out, err) == (0, "got it\n", "")


def test_steps_may_end_gracefully_when_their_job_is_cancelled(slurm: House) -> None:
    (slurm.work / "graceful.sh").write_text(
        "#!/bin/bash\n#SBATCH -o graceful.out\n"
        'exec srun bash -c \'trap "echo saved; exit 0" TERM; echo ready; '
        "while :; do sleep 0.05; done'\n"
    )
    job = slurm.submits("graceful.sh")
    written = slurm.work / "graceful.out"
    slurm.waits_until(lambda: written.exists() and "ready" in written.read_text())
    slurm.out(f"scancel {job}")
    slurm.waits_for(job, "CANCELLED")

    assert "saved\n" in written.read_text()


def test_a_step_has_a_time_limit_of_its_own(slurm: House) -> None:
    output = batch(slurm, "limited", "-n1", "srun -t 1 true; srun --time=0 sleep 0.1; echo $?")

    assert output == "0\n"


# From outside, and beside other things.


def test_a_step_can_be_started_from_outside_of_its_job(slurm: House) -> None:
    job = slurm.submits("-n2 -J outer -o /dev/null --wrap 'sleep 600'")
    slurm.waits_for(job, "RUNNING")

    out = slurm.out(f"srun --jobid={job} --overlap -n1 bash -c 'echo $SLURM_JOB_NAME'")
    slurm.out(f"scancel {job}")
    slurm.waits_for(job, "CANCELLED")
    late = slurm.shell(f"srun --jobid={job} true")

    assert out == "outer\n"
    assert f"Expired or invalid job {job}" in late.err


def test_jobs_of_muster_have_steps_too(slurm: House) -> None:
    path = f"{slurm.bin}:{os.environ['PATH']}"
    slurm.muster(
        "submit",
        "--gpus",
        "1",
        "--wait",
        "--name",
        "ours",
        "--env",
        f"PATH={path}",
        "--",
        "/bin/sh",
        "-c",
        "srun -n1 sh -c 'echo $SLURM_STEP_ID $CUDA_VISIBLE_DEVICES' >ours.out",
    )

    assert re.fullmatch(r"0 \d\n", (slurm.work / "ours.out").read_text())


def test_from_another_machine_there_is_a_clear_word(slurm: House) -> None:
    ran = slurm.shell("srun true", MUSTER_URL="http://127.0.0.1:1")

    assert ran.code == 1
    assert "steps can only be started on the machine of the job" in ran.err


# salloc.


def test_salloc_holds_a_job_for_a_command(slurm: House) -> None:
    ran = slurm.shell("salloc -n2 -J held bash -c 'srun -l echo hi; echo $SLURM_JOB_ID; exit 4'")

    *said, job = ran.out.split("\n")[:-1]
    assert sorted(said) == ["0: hi", "1: hi"]
    assert ran.code == 4
    assert ran.err == (
        f"salloc: Granted job allocation {job}\nsalloc: Relinquishing job allocation {job}\n"
    )
    line = "sacct -X -n -P -o State,ExitCode --name held"
    slurm.waits_until(lambda: slurm.out(line).strip() == "FAILED|4:0")


def test_salloc_without_a_shell_leaves_the_job_running(slurm: House) -> None:
    ran = slurm.shell("salloc --no-shell -n1")
    job = ran.err.split()[-1]

    out = slurm.out(f"srun --jobid={job} echo there")
    slurm.waits_for(job, "RUNNING")
    slurm.out(f"scancel {job}")
    slurm.waits_for(job, "CANCELLED")

    assert out == "there\n"


def test_the_command_of_salloc_ends_when_its_job_does(slurm: House) -> None:
    shell = begun(slurm, "exec salloc -n1 -J taken bash -c 'echo $SLURM_JOB_ID; sleep 600'")
    job = first_line(shell)
    slurm.out(f"scancel {job}")

    _, err = shell.communicate(timeout=PATIENCE_S)

    assert f"salloc: Job allocation {job} has been revoked.\n" in err


# A terminal.


def test_pty_gives_the_first_task_a_terminal(slurm: House) -> None:
    script = "test -t 0 && echo is-a-terminal; while read line; do stty size; done; exit 3"
    pid, ours = typed(slurm, "srun", "--pty", "bash", "-c", script)
    read_until(ours, "is-a-terminal")
    fcntl.ioctl(ours, termios.TIOCSWINSZ, struct.pack("HHHH", 33, 77, 0, 0))
    shown = ""
    while "33 77" not in shown:
        os.write(ours, b"\n")
        shown = read_until(ours, "\r\n")
    os.write(ours, b"\x04")

    assert ended(pid, ours) == 3


def test_what_is_typed_reaches_a_task_without_a_terminal(slurm: House) -> None:
    pid, ours = typed(slurm, "srun", "-n2", "-l", "sed", "s/^/got /")
    os.write(ours, b"hello\n")
    os.write(ours, b"\x04")
    shown = read_until(ours, "1: got hello")

    assert "0: got hello" in shown + read_rest(ours)
    assert ended(pid, ours) == 0


def test_salloc_gives_a_shell(slurm: House) -> None:
    pid, ours = typed(slurm, "salloc", "-n1", "-J", "sat-at", "sh", "-i")
    read_until(ours, "Granted job allocation")
    os.write(ours, b"echo in $SLURM_JOB_NAME; srun echo stepped; exit 5\n")
    shown = read_until(ours, "Relinquishing")

    assert "in sat-at" in shown
    assert "stepped\r\n" in shown
    assert ended(pid, ours) == 5


# MPI.


def test_tasks_of_an_mpi_program_find_each_other(slurm: House) -> None:
    """As MPICH does it on the wire; with a real MPICH it is the same."""
    (slurm.work / "meet.py").write_text(
        "import os\n"
        "rank, size = int(os.environ['PMI_RANK']), int(os.environ['PMI_SIZE'])\n"
        "line = open(int(os.environ['PMI_FD']), 'r+b', buffering=0)\n"
        "def ask(text):\n"
        "    line.write(f'cmd={text}\\n'.encode())\n"
        "    return line.readline().decode().strip()\n"
        "assert ask('init pmi_version=1 pmi_subversion=1').endswith('rc=0')\n"
        "name = ask('get_my_kvsname').partition('kvsname=')[2]\n"
        "ask(f'put kvsname={name} key=card-{rank} value=at {rank}')\n"
        "assert ask('barrier_in') == 'cmd=barrier_out rc=0'\n"
        "found = ask(f'get kvsname={name} key=card-{(rank + 1) % size}')\n"
        "print(found.partition('value=')[2])\n"
        "assert 'rc=-1' in ask(f'get kvsname={name} key=nothing')\n"
        "assert ask('finalize') == 'cmd=finalize_ack rc=0'\n"
    )

    meets = f"--mpi=pmi2 -l {sys.executable} meet.py"
    together = slurm.out(f"srun -n3 {meets}")
    apart = slurm.out(f"srun -n1 {meets} : -n2 {meets}")

    assert sorted(together.splitlines()) == ["0: at 1", "1: at 2", "2: at 0"]
    assert sorted(apart.splitlines()) == sorted(together.splitlines())


# When other things die.


def test_a_step_goes_on_while_muster_is_restarted() -> None:
    with house() as slurm:
        waits = "echo ready; until [ -e go ]; do sleep 0.05; done; exit 7"
        step = begun(slurm, f"exec srun -J lasting bash -c '{waits}'")
        assert first_line(step) == "ready"
        slurm.muster("down")
        slurm.muster("up", "--nodes", "2", "--gpus", "4xA100-40GB")
        assert step.poll() is None
        (slurm.work / "go").touch()

        _, err = step.communicate(timeout=PATIENCE_S)

        assert step.returncode == 7
        assert "task 0: Exited with exit code 7" in err
        line = "sacct -X -n -P -o State,ExitCode --name lasting"
        slurm.waits_until(lambda: slurm.out(line).strip() == "FAILED|7:0")


def test_srun_says_so_when_its_supervisor_is_gone(slurm: House) -> None:
    step = begun(slurm, "exec srun -J bereft bash -c 'echo $PPID; sleep 600'")
    os.kill(int(first_line(step)), signal.SIGKILL)

    _, err = step.communicate(timeout=PATIENCE_S)

    assert step.returncode == 1
    assert "srun: error: Node failure" in err
    line = "sacct -X -n -P -o State --name bereft"
    slurm.waits_until(lambda: slurm.out(line).strip() in {"FAILED", "NODE_FAIL"})


def typed(slurm: House, *argv: str) -> tuple[int, int]:
    """A command at a terminal of its own."""
    pid, ours = pty.fork()
    if pid == 0:
        os.chdir(slurm.work)
        os.execvpe(argv[0], argv, slurm.environ)  # noqa: S606  what a test types
    return pid, ours


def ended(pid: int, ours: int) -> int:
    read_rest(ours)
    _, status = os.waitpid(pid, 0)
    os.close(ours)
    return os.waitstatus_to_exitcode(status)


def read_rest(number: int) -> str:
    shown = ""
    with contextlib.suppress(OSError):
        while part := os.read(number, 4_096):
            shown += part.decode()
    return shown


def begun(slurm: House, line: str) -> "subprocess.Popen[str]":
    return subprocess.Popen(  # noqa: S603  what a test types
        ["/bin/bash", "-c", line],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=slurm.environ,
        cwd=slurm.work,
    )


def first_line(process: "subprocess.Popen[str]") -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


def until_line(process: "subprocess.Popen[str]", text: str) -> None:
    assert process.stderr is not None
    while text not in process.stderr.readline():
        assert process.poll() is None


def read_until(number: int, text: str) -> str:
    shown = ""
    deadline = time.monotonic() + PATIENCE_S
    while text not in shown:
        assert select.select([number], [], [], max(0.0, deadline - time.monotonic()))[0], shown
        shown += os.read(number, 4_096).decode()
    return shown


def test_one_step_can_be_cancelled_and_its_job_goes_on(slurm: House) -> None:
    job = slurm.submits(
        "-n1 -o cancelled.out --wrap 'srun sh -c \"echo ready; sleep 600\"; echo code $?'"
    )
    written = slurm.work / "cancelled.out"
    slurm.waits_until(lambda: written.exists() and "ready" in written.read_text())
    slurm.waits_until(lambda: "Terminating step" in slurm.shell(f"scancel -v {job}.0").err)
    slurm.waits_for(job, "COMPLETED")

    assert "task 0: Killed\n" in written.read_text()
    assert written.read_text().endswith("code 137\n")
    late = slurm.shell(f"scancel -v {job}.0").err
    assert f"scancel: error: Kill job error on job step id {job}.0: " in late


def test_sbcast_copies_with_the_rights_of_its_caller(slurm: House) -> None:
    (slurm.work / "source.txt").write_text("copied\n")
    output = batch(
        slurm,
        "copying",
        "-n1",
        "sbcast source.txt target.txt; cat target.txt\n"
        "sbcast source.txt target.txt; echo $?\n"
        "sbcast -f -C source.txt target.txt; echo $?\n"
        "sbcast no-such target.txt; echo $?\n",
    )
    outside = slurm.shell("sbcast source.txt there.txt")

    lines = output.splitlines()
    assert lines[0] == "copied"
    assert re.fullmatch(r"sbcast: error: REQUEST_FILE_BCAST\(pretend\d\): File exists", lines[1])
    assert lines[2:] == [
        "17",
        "sbcast: warning: --compress is ignored by Muster",
        "0",
        "sbcast: error: Can't open `no-such`: No such file or directory",
        "255",
    ]
    assert "Need a job id to run this command." in outside.err


def test_sattach_knows_the_layout_of_a_step_and_says_where_its_output_is(slurm: House) -> None:
    job = slurm.submits("-n2 -w pretend1 -o /dev/null --wrap 'srun sleep 600'")
    slurm.waits_until(lambda: slurm.shell(f"sattach --layout {job}.0").code == 0)

    layout = slurm.out(f"sattach --layout {job}.0")
    refused = slurm.shell(f"sattach {job}.0")
    slurm.out(f"scancel {job}")
    slurm.waits_for(job, "CANCELLED")
    late = slurm.shell(f"sattach {job}.0")

    nodes = "\t2 tasks, 1 nodes (pretend1)\n\n\tNode 0 (pretend1), 2 task(s): 0 1 \n"
    assert layout == f"Job step layout:\n{nodes}"
    assert "srun --output=FILE" in refused.err
    assert late.err == "sattach: error: Could not get job step info: Invalid job id specified\n"


def test_a_task_inherits_nothing_but_its_own_streams(slurm: House) -> None:
    look = "import os; print(*sorted(map(int, os.listdir('/proc/self/fd'))))"
    out = slurm.out(f'srun -n3 -l {sys.executable} -c "{look}"')

    # The fourth is the folder that is being listed.
    assert sorted(out.splitlines()) == [f"{rank}: 0 1 2 3" for rank in range(3)]
