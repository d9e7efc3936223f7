"""What srun says of its step, in Slurm's words."""

import os
import re
import signal
import sys
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

PATTERN = re.compile(r"%(\d*)([a-zA-Z%])")
OUT_OF_MEMORY = 125
GATHER_S = 0.05
"""Tasks that end alike within this time are reported together."""


class Report:
    """The tasks of one step: which run, which ended how, and what was said of them.

    counts: how many tasks each component has; what is said of them is counted per component.
    """

    def __init__(
        self, job: int, created: "dict[str, Any]", names: dict[str, str], counts: list[int]
    ) -> None:
        self._names = names
        self._first_of = [
            sum(counts[:place]) for place, count in enumerate(counts) for _ in range(count)
        ]
        self.step = "{}.{}".format(job, created["step"])
        self._nodes: list[str] = created["nodes"]
        self._node_of = {
            rank: node
            for node, ranks in zip(self._nodes, created["parts"], strict=True)
            for rank in ranks
        }
        self._running = set(self._node_of)
        self._untold: list[tuple[str, int, int]] = []
        self._untold_since = 0.0
        self.code = 0
        self._was_killed = False
        self.first_exit_at: float | None = None
        self.is_aborted = False

    @property
    def facts(self) -> dict[str, str]:
        """By these, programs beside the step know it."""
        job, _, step = self.step.partition(".")
        tasks, nodes = str(len(self._node_of)), str(len(self._nodes))
        own = {"SLURM_JOB_ID": job, "SLURM_JOBID": job, "SLURM_STEP_ID": step, "SLURM_STEPID": step}
        return own | {"SLURM_NTASKS": tasks, "SLURM_NPROCS": tasks, "SLURM_NNODES": nodes}

    def named(self, text: str, rank: int) -> str:
        """The file that a pattern means for one task; a backslash means that there is none."""
        if "\\" in text:
            return text.replace("\\", "")
        node = self._node_of[rank]
        place, step = str(self._nodes.index(node)), self.step.partition(".")[2]
        own = {"%": "%", "J": self.step, "s": step, "t": str(rank), "n": place, "N": node}
        meanings = {**self._names, **own}

        def meaning(found: "re.Match[str]") -> str:
            if found[2] not in meanings:
                return found[0]
            return meanings[found[2]].zfill(min(int(found[1] or 0), 10))

        return PATTERN.sub(meaning, text)

    def exited(self, message: "dict[str, Any]") -> bool:
        """A task is over; whether it went well."""
        rank, status = message["task"], message["status"]
        self._running.discard(rank)
        if self.first_exit_at is None:
            self.first_exit_at = time.monotonic()
        node = self._node_of[rank]
        if message["command"]:
            problem = os.strerror(os.waitstatus_to_exitcode(status))
            text = "execve(): {}: {}".format(message["command"], problem)
            _line(f"slurmstepd-{node}: error: {text}")
        if status == 0:
            return True
        if status == OUT_OF_MEMORY:
            told = f"Detected 1 oom_kill event in StepId={self.step}."
            _line(f"slurmstepd-{node}: error: {told} Some of the step tasks have been OOM Killed.")
        # One that was killed says more than any exit code of the others.
        if os.WIFSIGNALED(status) == self._was_killed:
            self.code = max(self.code, _code(status))
        elif not self._was_killed:
            self.code, self._was_killed = _code(status), True
        if not self._untold:
            self._untold_since = time.monotonic()
        self._untold.append((node, status, rank))
        return False

    def tell_due_at(self) -> float | None:
        return self._untold_since + GATHER_S if self._untold else None

    def tell(self) -> None:
        """Say how tasks ended, those together that ended alike."""
        untold, self._untold = self._untold, []
        alike: dict[tuple[str, int, int], list[int]] = {}
        for node, status, rank in untold:
            first = self._first_of[rank]
            alike.setdefault((node, status, first), []).append(rank - first)
        for (node, status, _), ranks in alike.items():
            say(f"error: {node}: {_tasks(ranks)}: {_words(status)}")
        is_killed = any(
            status & 0x7F in {signal.SIGKILL, signal.SIGTERM} for _, status, _ in untold
        )
        if is_killed and not self._running and not self.is_aborted:
            say("Force Terminated StepId=" + self.step)

    def show_status(self) -> None:
        """Which tasks run, and which are over."""
        over = self._node_of.keys() - self._running
        for ranks, word in ((self._running, "running"), (over, "exited")):
            if ranks:
                say(f"StepId={self.step} {_tasks(ranks)}: {word}")

    def cancelled(self, at_ms: "int | None" = None, why: str = "") -> None:
        """What the node says when a step is ended before its time."""
        at = time.time() if at_ms is None else at_ms / 1_000
        stamp = time.strftime("%Y-%m-%dT%H:%M:%S", time.localtime(at))
        text = f"*** STEP {self.step} ON {self._nodes[0]} CANCELLED AT {stamp}"
        _line("slurmstepd-{}: error: {} {}***".format(self._nodes[0], text, why and why + " "))


def say(text: str) -> None:
    _line("srun: " + text)


def _line(text: str) -> None:
    # In raw mode a terminal does not go back to the first column by itself.
    sys.stderr.write(text + ("\r\n" if os.isatty(2) else "\n"))
    sys.stderr.flush()


def _tasks(ranks: "Iterable[int]") -> str:
    spans: list[list[int]] = []
    for rank in sorted(ranks):
        if spans and rank == spans[-1][1] + 1:
            spans[-1][1] = rank
        else:
            spans.append([rank, rank])
    text = ",".join(str(low) if low == high else f"{low}-{high}" for low, high in spans)
    return f"task {text}" if text.isdecimal() else f"tasks {text}"


def _code(status: int) -> int:
    number = os.waitstatus_to_exitcode(status)
    return 128 - number if number < 0 else number


def _words(status: int) -> str:
    number = os.waitstatus_to_exitcode(status)
    if number >= 0:
        return f"Exited with exit code {number}"
    if status == OUT_OF_MEMORY:
        return "Out Of Memory"
    return (signal.strsignal(-number) or str(-number)) + (" (core dumped)" if status & 0x80 else "")
