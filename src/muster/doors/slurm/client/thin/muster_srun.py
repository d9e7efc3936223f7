"""srun while its step runs: what it asks of the supervisor, what it passes on, how it ends."""

import os
import select
import signal
import socket
import sys
import time

from muster_line import Line, Lost
from muster_report import Report, say
from muster_streams import NoFile, Streams

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

HEARD = (
    signal.SIGINT,
    signal.SIGQUIT,
    signal.SIGTERM,
    signal.SIGHUP,
    signal.SIGALRM,
    signal.SIGUSR1,
    signal.SIGUSR2,
    signal.SIGWINCH,
)
AGAIN_S = 1.0
GRACE_S = 5.0
DRAIN_S = 2.0
LOOK_AGAIN_S = 0.5
AROUND = os.path.join(os.path.dirname(__file__), "muster_task.py")
ABORTED = "Job step aborted: Waiting up to 7 seconds for job step to finish."


def run(then: "dict[str, Any]") -> int:
    """Run the step; a job of our own is held meanwhile, and ends as the step does."""
    job = then["job"]
    try:
        holder = Line(then["address"]) if then["owns"] else None
        if holder is not None:
            holder.tell("hold")
            holder.first()
        step = Srun(then)
    except (OSError, Lost):
        say(f"error: Unable to create step for job {job}: Job/step already completing or completed")
        return 1
    code = step.run()
    if holder is not None:
        _release(holder, code)
    return code


def _release(holder: Line, code: int) -> None:
    sent = code - 128 if code > 128 else 0
    try:
        holder.tell("release", keep=False, code=0 if sent else code, signal=sent)
    except Lost:
        # Another user or process ended the job, and the step with it.
        return


class Srun:
    """One step, from asking for it to its end."""

    def __init__(self, then: "dict[str, Any]") -> None:
        self._then = then
        self._conduct: dict[str, Any] = then["conduct"]
        self._line = Line(then["address"])
        self._hears, self._tells = socket.socketpair()
        self._streams: Streams | None = None
        self._report: Report | None = None
        self._is_busy = False
        self._is_over = False
        self._code: int | None = None
        self._interrupted_at = 0.0
        self._gives_up_at: float | None = None
        self._kills_at: float | None = None
        self._waits_until: float | None = None
        self._drains_until: float | None = None

    def run(self) -> int:
        """Until the step is over; its exit code."""
        self._listen()
        then, conduct = self._then, self._conduct
        first, *beside = map(_wanted, then["programs"])
        if conduct["immediate_s"] is not None:
            self._gives_up_at = time.monotonic() + max(0.2, conduct["immediate_s"])
        try:
            # A supervisor that is older than we are knows of one program alone.
            more: dict[str, Any] = {"beside": beside} if beside else {}
            self._line.tell("want", limit_ms=then["limit_ms"], **first, **more)
            while self._code is None:
                self._turn()
        except Lost:
            self._lose()
        finally:
            if self._streams is not None and self._streams.terminal is not None:
                self._streams.terminal.restore()
        self._run_beside("epilog")
        return self._code or 0

    def _listen(self) -> None:
        for end in (self._hears, self._tells):
            end.settimeout(0)
        signal.set_wakeup_fd(self._tells.fileno(), warn_on_full_buffer=False)
        for number in HEARD:
            signal.signal(number, _ignore)
        signal.pthread_sigmask(signal.SIG_SETMASK, ())

    def _turn(self) -> None:
        waiting = select.poll()
        waiting.register(self._hears, select.POLLIN)
        if not self._is_over:
            waiting.register(self._line, select.POLLIN)
        if self._streams is not None:
            self._streams.register(waiting)
        ready = {number for number, _ in waiting.poll(self._timeout_ms())}
        if self._streams is not None:
            self._streams.relay(ready)
        if self._hears.fileno() in ready:
            for number in self._hears.recv(64):
                self._signalled(number)
        if not self._is_over and self._line.fileno() in ready:
            for message in self._line.hear():
                self._obey(message)
        self._advance()

    def _timeout_ms(self) -> float | None:
        times = [self._gives_up_at, self._kills_at, self._waits_until, self._drains_until]
        if self._report is not None:
            times.append(self._report.tell_due_at())
        if self._streams is not None and self._streams.fed is not None:
            # No signal says whether we are in the foreground, but we can look.
            times.append(time.monotonic() + LOOK_AGAIN_S)
        known = [at for at in times if at is not None]
        return max(0.0, min(known) - time.monotonic()) * 1_000 if known else None

    def _obey(self, message: "dict[str, Any]") -> None:
        kind = message["kind"]
        if kind == "busy":
            self._waits()
        elif kind == "refused":
            self._refused(message)
        elif kind == "created":
            self._begin(message)
        elif kind == "exited":
            self._exited(message)
        elif kind == "aborted":
            self._aborted(message)
        elif kind == "over":
            self._is_over = True
            self._drains_until = time.monotonic() + DRAIN_S

    def _waits(self) -> None:
        self._is_busy = True
        if self._gives_up_at is None:
            self._inform(
                "Job {} step creation temporarily disabled, retrying (Requested nodes are busy)"
            )

    def _refused(self, message: "dict[str, Any]") -> None:
        for text in message["before"]:
            say("error: " + text)
        job = self._then["job"]
        start = "" if message["whole"] else f"Unable to create step for job {job}: "
        say("error: " + start + message["text"])
        self._code = 1

    def _begin(self, created: "dict[str, Any]") -> None:
        then, self._gives_up_at = self._then, None
        if self._is_busy:
            self._inform("Step created for job {}")
        programs: list[dict[str, Any]] = then["programs"]
        counts: list[int] = [each["wish"]["tasks"] for each in programs]
        report = self._report = Report(then["job"], created, then["names"], counts)
        if any(each["bind"] for each in programs) and not created.get("binds"):
            say("cluster configuration lacks support for cpu binding")
        self._run_beside("prolog")
        outputs = [
            each for each, count in zip(self._outputs(), counts, strict=True) for _ in range(count)
        ]
        streams = Streams(outputs, report.named)
        try:
            streams.open()
        except NoFile as error:
            say("error: " + str(error))
            self._code = 1
            return
        self._streams = streams
        if then["pmi"]:
            streams.meet(report.step)
        if self._conduct["verbose"]:
            say(f"launching StepId={report.step}, {sum(counts)} tasks")
        first, *beside = [_surrounded(each, created["nodes"][0]) for each in programs]
        self._line.tell(
            "launch",
            streams.files,
            argvs=_commands(programs),
            streams=streams.triples,
            umask=_umask(),
            label=outputs[0]["label"],
            pty=streams.terminal is not None,
            **first,
            **({"beside": beside} if beside else {}),
        )
        streams.given()

    def _outputs(self) -> "list[dict[str, Any]]":
        outputs: list[dict[str, Any]] = [each["output"] for each in self._then["programs"]]
        if outputs[0]["pty"] and not os.isatty(0):
            say("error: ioctl(TIOCGWINSZ): Inappropriate ioctl for device")
            say("error: Not using a pseudo-terminal, disregarding --pty option")
            return [dict(output, pty=False) for output in outputs]
        return outputs

    def _exited(self, message: "dict[str, Any]") -> None:
        report = self._report
        if report is None:
            return
        is_well = report.exited(message)
        if not is_well and self._conduct["kill_on_bad_exit"] and self._kills_at is None:
            report.tell()
            self._terminate(report)
            self._line.tell("signal", signal=signal.SIGTERM)
            report.cancelled()
            self._kills_at = time.monotonic() + GRACE_S
        if self._conduct["wait_s"] and self._waits_until is None:
            self._waits_until = time.monotonic() + self._conduct["wait_s"]

    def _aborted(self, message: "dict[str, Any]") -> None:
        if self._report is not None and not self._report.is_aborted:
            self._report.is_aborted = True
            say(ABORTED)
            self._report.cancelled(message["at"], message["why"])

    def _signalled(self, number: int) -> None:
        if number == signal.SIGWINCH:
            if self._streams is not None and self._streams.terminal is not None:
                self._streams.terminal.resize()
        elif self._report is None:
            say(f"Cancelled pending job step with signal {number}")
            self._code = 1
        elif number == signal.SIGINT:
            self._interrupted(self._report)
        elif number in {signal.SIGTERM, signal.SIGHUP}:
            say("forcing job termination")
            self._abort(self._report)
        else:
            self._line.tell("signal", signal=number)

    def _interrupted(self, report: Report) -> None:
        """Once shows how things are; twice within a second ends them."""
        now = time.monotonic()
        is_meant = self._conduct["quit_on_interrupt"] or not self._conduct["shows_status"]
        if is_meant or now - self._interrupted_at <= AGAIN_S:
            say("sending Ctrl-C to StepId=" + report.step)
            self._line.tell("signal", signal=signal.SIGINT)
            say("forcing job termination")
            self._kills_at = now + AGAIN_S
        else:
            self._interrupted_at = now
            say("interrupt (one more within 1 sec to abort)")
            report.show_status()

    def _abort(self, report: Report) -> None:
        report.is_aborted = True
        say(ABORTED)
        self._line.tell("signal", signal=signal.SIGKILL)
        report.cancelled()

    def _terminate(self, report: Report) -> None:
        say("launch/slurm: _step_signal: Terminating StepId=" + report.step)

    def _advance(self) -> None:
        now, report = time.monotonic(), self._report
        if _is_due(self._gives_up_at, now):
            job = self._then["job"]
            say(f"error: Unable to create step for job {job}: Requested nodes are busy")
            self._code = 1
        if report is None:
            return
        if _is_due(report.tell_due_at(), now):
            report.tell()
        if _is_due(self._waits_until, now) and not self._is_over:
            self._waits_until = None
            say("First task exited {}s ago".format(self._conduct["wait_s"]))
            report.show_status()
            self._terminate(report)
            self._abort(report)
        if _is_due(self._kills_at, now) and not self._is_over:
            self._kills_at = None
            self._line.tell("signal", signal=signal.SIGKILL)
        self._finish_if_over(now, report)

    def _finish_if_over(self, now: float, report: Report) -> None:
        """Not before everything that was written is shown."""
        streams = self._streams
        if not self._is_over or streams is None:
            return
        if (streams.readers or streams.terminal) and not _is_due(self._drains_until, now):
            return
        if streams.terminal is not None:
            streams.terminal.restore()
        report.tell()
        self._code = report.code

    def _lose(self) -> None:
        """The supervisor is gone, and with it everything that ran."""
        if self._report is not None:
            self._report.tell()
        say("error: Node failure: the supervisor of job {} is gone".format(self._then["job"]))
        self._code = 1

    def _inform(self, text: str) -> None:
        if not self._conduct["quiet"]:
            say(text.format(self._then["job"]))

    def _run_beside(self, name: str) -> None:
        """A program before or after the step, here."""
        program = self._conduct[name]
        if program is not None and self._report is not None:
            import subprocess  # noqa: PLC0415 -- rarely needed

            env = {**os.environ, **self._report.facts, "SLURM_SCRIPT_CONTEXT": f"{name}_srun"}
            try:
                code = subprocess.call([program], env=env)  # noqa: S603 -- the user's own
            except OSError as error:
                say(f"Access denied for {program}: {error.strerror}")
                return
            if code:
                say(f"error: srun {name} failed status={code}")


def _wanted(program: "dict[str, Any]") -> "dict[str, Any]":
    command = " ".join(program["argvs"][0])
    return {"wish": program["wish"], "name": program["name"], "command": command}


def _commands(programs: "list[dict[str, Any]]") -> list[list[str]]:
    """One for all tasks, or one for each."""
    if len(programs) == 1:
        return _with_others(programs[0])
    return [_with_others(each)[0] for each in programs for _ in range(each["wish"]["tasks"])]


def _with_others(program: "dict[str, Any]") -> list[list[str]]:
    """What runs before and after each task is run by a small program around it."""
    argvs: list[list[str]] = program["argvs"]
    before, after = program["before"], program["after"]
    if not (before or after):
        return argvs
    around = [sys.executable, "-IS", AROUND, before, after]
    return [[*around, *argv] for argv in argvs]


def _surrounded(program: "dict[str, Any]", node: str) -> "dict[str, Any]":
    """What the tasks of a program find around them."""
    keep = program["keep"]
    kept = (
        os.environ
        if keep is None
        else {name: os.environ[name] for name in keep if name in os.environ}
    )
    found = {"env": {**kept, **program["env"]}, "cwd": _folder(program["cwd"], node)}
    return {**found, "bind": program["bind"]} if program["bind"] else found


def _folder(wanted: str, node: str) -> str:
    """Slurm's tasks go elsewhere rather than nowhere."""
    try:
        os.chdir(wanted)
    except OSError as error:
        text = f"couldn't chdir to `{wanted}': {error.strerror}: going to /tmp instead"
        os.write(2, f"slurmstepd-{node}: error: {text}\n".encode())
        return "/tmp"  # noqa: S108 -- see above
    return wanted


def _umask() -> int:
    now = os.umask(0o022)
    os.umask(now)
    return now


def _is_due(at: float | None, now: float) -> bool:
    return at is not None and at <= now


def _ignore(_number: int, _frame: object) -> None:
    """The wakeup socket is what we listen to."""
