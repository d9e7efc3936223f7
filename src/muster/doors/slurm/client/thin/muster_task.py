"""What a task is run by when something runs before it or after it: --task-prolog, --task-epilog.

Called with the prolog, the epilog (each may be empty) and the command of the task. What the prolog
prints is read: `export NAME=value` and `unset NAME` change what the task finds, `print words` are
shown. Then the command takes this process' place, or is waited for where an epilog follows.
"""

import os
import signal
import subprocess
import sys

SHELLS_OWN = (signal.SIGPIPE, signal.SIGXFSZ)
"""Python ignores these, and the task must not."""


def main() -> None:
    """Never returns."""
    prolog, epilog, *argv = sys.argv[1:]
    code = before(prolog) if prolog else 0
    if not epilog:
        # A failing prolog is the end of the task.
        sys.exit(code) if code else become(argv)
    status = code << 8 if code else waited(argv)
    after(epilog)
    end_as(status)


def before(prolog: str) -> int:
    """Run it, and do what it prints; an exit code if there is to be no task."""
    try:
        problem = unfit(prolog)
        done = None if problem else run(prolog, "prolog_task", subprocess.PIPE)
    except OSError as error:
        problem, done = f"can not be executed ({prolog}) {error.strerror}", None
    if done is None:
        complain(f"run_command: user task_prolog {problem}")
        how = "Run command failed - configuration error"
        complain(f"user task_prolog did not exit normally. reason: {how}")
        complain("--task-prolog failed status=1")
        return 1
    if done.returncode:
        complain(f"--task-prolog failed status={done.returncode}")
        return done.returncode if done.returncode > 0 else 1
    for line in done.stdout.decode(errors="surrogateescape").splitlines():
        obey(line)
    return 0


def unfit(program: str) -> str:
    if not program.startswith("/"):
        return f"is not fully qualified pathname ({program})"
    if not os.access(program, os.R_OK | os.X_OK):
        why = "Permission denied" if os.path.exists(program) else "No such file or directory"
        return f"can not be executed ({program}) {why}"
    return ""


def obey(line: str) -> None:
    word, _, rest = line.partition(" ")
    if word == "print":
        os.write(1, (rest + "\n").encode(errors="surrogateescape"))
    elif word == "export":
        name, equals, value = rest.lstrip().partition("=")
        if equals and name:
            os.environ[name] = value
    elif word == "unset":
        os.environ.pop(rest.strip(), None)


def waited(argv: list[str]) -> int:
    """How the command ended, whatever other processes did."""
    # Signals are for the task: the process that runs something after it must outlive it.
    for number in set(signal.Signals) - {signal.SIGKILL, signal.SIGSTOP, signal.SIGCHLD}:
        signal.signal(number, signal.SIG_IGN)
    pid = os.fork()
    if pid == 0:
        hear_again()
        become(argv)
    return os.waitpid(pid, 0)[1]


def become(argv: list[str]) -> None:
    os.environ["SLURM_TASK_PID"] = str(os.getpid())
    for number in SHELLS_OWN:
        signal.signal(number, signal.SIG_DFL)
    try:
        os.execvp(argv[0], argv)  # noqa: S606 -- the user's own command
    except OSError as error:
        complain(f"execve(): {argv[0]}: {error.strerror}")
        os._exit(error.errno or 1)


def after(epilog: str) -> None:
    if not os.access(epilog, os.R_OK | os.X_OK):
        complain(f"Could not run user task_epilog [{epilog}]: access denied")
        complain("TaskEpilog failed status=-1")
        return
    try:
        code = run(epilog, "epilog_task", subprocess.DEVNULL).returncode
    except OSError as error:
        complain(f"Could not run user task_epilog [{epilog}]: {error.strerror}")
        return
    if code:
        complain(f"TaskEpilog failed status={code << 8 if code > 0 else -code}")


def run(program: str, context: str, stdout: int) -> "subprocess.CompletedProcess[bytes]":
    """With what the task finds; what a prolog says on stderr is read like the rest."""
    return subprocess.run(  # noqa: S603 -- the user's own
        [program],
        check=False,
        stdin=subprocess.DEVNULL,
        stdout=stdout,
        stderr=subprocess.STDOUT if stdout == subprocess.PIPE else None,
        env={**os.environ, "SLURM_SCRIPT_CONTEXT": context},
        preexec_fn=hear_again,
    )


def hear_again() -> None:
    for number in set(signal.Signals) - {signal.SIGKILL, signal.SIGSTOP}:
        signal.signal(number, signal.SIG_DFL)


def end_as(status: int) -> None:
    """As the task ended, which a signal may have ended."""
    if os.WIFSIGNALED(status):
        number = os.WTERMSIG(status)
        if number != signal.SIGKILL:
            signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)
    os._exit(os.waitstatus_to_exitcode(status))


def complain(text: str) -> None:
    node = os.environ.get("SLURMD_NODENAME", "")
    os.write(2, f"slurmstepd-{node}: error: {text}\n".encode(errors="surrogateescape"))


if __name__ == "__main__":
    main()
