"""A part of a trace through a live Muster and through a real Slurm, side by side.

Both get the same jobs at the same moments by their own `sbatch`, on as many pretend nodes. A job is
a sleep that writes down when it began and ended; those times, and no system's own, are compared.
"""

import argparse
import contextlib
import os
import pwd
import subprocess
import tempfile
import time
from collections.abc import Generator, Mapping, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from math import isinf
from pathlib import Path
from threading import Event

from bench import _jct_trace, _replay_pretend
from bench._jct_queue import HOUR_S
from bench._jct_trace import GPUS_PER_NODE
from bench._musters import muster, slurm_commands, tidy_when_told_to_end
from bench._replay_measured import (
    WAITED_S,
    Measured,
    Ran,
    Seen,
    csv_lines,
    measured,
    ran_by,
    told_by,
)
from bench._replay_slice import Compression, ReplayedJob, Slice, accounts, sbatch_words, slice_of
from bench.report import Cell, Row, aligned, report
from bench.slurm.configuring import Look
from bench.slurm.lab import Lab, laboratory
from muster.model.errors import MusterError

USUAL = Compression(jobs=520, hour_s=30.0, load=1.0, longest_s=8 * HOUR_S)
ASKED_EVERY_S = 2.0
LOOK_S = 0.5
BEFORE_S = 3.0
PATIENCE_S = 1_800.0
"""After the last arrival, until the last job must have ended."""

SETTINGS: Mapping[str, str | int] = {
    # Every cycle looks at the whole queue, once a second or when something happened, to the second.
    "SchedulerParameters": (
        "batch_sched_delay=0,sched_interval=1,sched_min_interval=0,default_queue_depth=1000,"
        "bf_interval=1,bf_continue,bf_resolution=1,bf_window=1440,bf_max_job_test=1000"
    ),
    # The weights and times of Muster's default policy; usage counts as soon as Slurm can do that.
    "PriorityType": "priority/multifactor",
    "PriorityWeightAge": 1_000,
    "PriorityWeightFairshare": 4_000,
    "PriorityMaxAge": "14-0",
    "PriorityDecayHalfLife": "7-0",
    "PriorityCalcPeriod": 1,
}

SCRIPT = """\
#!/bin/bash
echo "$EPOCHREALTIME"
sleep "$1"
echo "$EPOCHREALTIME"
"""

NOTE = f"""\
The second half of Venus (both virtual clusters on all of their nodes), jobs of up to
{USUAL.longest_s // HOUR_S} hours; an hour of a job takes {USUAL.hour_s:.0f} s. Arrivals are drawn
together until their load is {USUAL.load}. Limits are those of users: the next usual one above twice
the duration, compressed like durations and rounded up to Slurm's whole minutes, so that a limit of
an hour is one of two; both sides get the same. JCT and waits count from the moment at which a job
was to be submitted. Utilisation is that of the time in which jobs arrived. Slowdown: jobs under
ten minutes, compressed, count as that long. Dates: `squeue --start` is asked every
{ASKED_EVERY_S:.0f} s on both sides, and the first date of each job that waited {WAITED_S:.0f} s or
longer counts; its error is a part of the wait, the median of all.
A ratio above 1 means that Muster is ahead."""


class Side:
    """One system: how its commands are found, and where its jobs write."""

    def __init__(self, name: str, environ: Mapping[str, str], folder: Path) -> None:
        self.name = name
        self.numbers: dict[int, int] = {}
        self.latest_s = 0.0
        self._environ = environ
        self._script = folder / "job.sh"
        self._out = folder / name
        self._out.mkdir()
        # Jobs run as the users that submitted them.
        self._out.chmod(0o777)

    def submit(self, job: ReplayedJob, account: str) -> None:
        """As a user of this machine."""
        output = str(self._output(job))
        words = sbatch_words(job, script=str(self._script), output=output)
        done = subprocess.run(  # noqa: S603 -- commands of the benchmark alone
            words,
            env=self._environ,
            user=account,
            group=pwd.getpwnam(account).pw_gid,
            extra_groups=[],
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode != 0:
            raise RuntimeError(f"{self.name}: {' '.join(words)}: {done.stderr.strip()}")
        self.numbers[int(done.stdout)] = job.number

    def starts(self) -> str:
        """What it says now of those that wait."""
        done = subprocess.run(
            ["squeue", "--start", "--noheader", "--format=%A|%S"],  # noqa: S607 -- found by PATH
            env=self._environ,
            capture_output=True,
            text=True,
            check=True,
        )
        return done.stdout

    def ran(self, job: ReplayedJob, begun_s: float) -> Ran | None:
        """When the job ran, once it has ended."""
        try:
            return ran_by(self._output(job).read_text(), begun_s)
        except FileNotFoundError:
            return None

    def _output(self, job: ReplayedJob) -> Path:
        return self._out / str(job.number)


class Replay:
    """Sends the jobs of a slice to one side, and sees what becomes of them."""

    def __init__(self, side: Side, part: Slice, names: Mapping[str, str], begun_s: float) -> None:
        self.side = side
        self._part = part
        self._names = names
        self._begun_s = begun_s
        self._over = Event()
        self._ran: dict[int, Ran] = {}
        self._told_s: dict[int, float] = {}

    @property
    def seen(self) -> Seen:
        """When everything ran, and what was told first."""
        numbers = self.side.numbers
        told = {numbers[job]: at_s for job, at_s in self._told_s.items() if job in numbers}
        return Seen(ran=self._ran, told_s=told)

    def submit_all(self) -> None:
        """Each job at its moment, or as soon as those before it were accepted."""
        for job in self._part.jobs:
            self._over.wait(max(0.0, self._begun_s + job.at_s - time.time()))
            if self._over.is_set():
                return
            self.side.submit(job, self._names[job.user])
            late_s = time.time() - self._begun_s - job.at_s
            self.side.latest_s = max(self.side.latest_s, late_s)

    def ask_for_dates(self) -> None:
        """Keep the first date of each job."""
        while not self._over.wait(ASKED_EVERY_S):
            for job, at_s in told_by(self.side.starts(), self._begun_s).items():
                self._told_s.setdefault(job, at_s)

    def watch(self) -> None:
        """Until the last job has ended."""
        left = list(self._part.jobs)
        deadline_s = self._begun_s + self._part.span_s + PATIENCE_S
        while left and not self._over.wait(LOOK_S):
            if time.time() > deadline_s:
                numbers = [job.number for job in left]
                raise RuntimeError(f"{self.side.name}: {numbers} have not ended")
            self._ran |= {
                job.number: ran
                for job in left
                if (ran := self.side.ran(job, self._begun_s)) is not None
            }
            left = [job for job in left if job.number not in self._ran]
        self.stop()

    def stop(self) -> None:
        """Leave off."""
        self._over.set()


def main() -> None:
    options = _options()
    tidy_when_told_to_end()
    compression = Compression(
        jobs=options.jobs, hour_s=options.hour_s, load=options.load, longest_s=USUAL.longest_s
    )
    (park,) = _jct_trace.venus_together(_jct_trace.folder())
    part = slice_of(park, compression)
    print(f"{len(part.jobs)} jobs in {part.span_s:.0f} s", flush=True)
    pretended = _pretended(part, compression.hour_s)
    print(f"in pretend time:\n{aligned(pretended)}\n", flush=True)
    if options.pretend:
        return
    load, busy = os.getloadavg()[0], _processor_ticks()
    names = accounts(part.users, _system_accounts())
    with _both(part, sorted(names.values())) as (sides, version):
        seen = _replayed(part, sides, names)
        latest = {f"{side.name}_accepted_within_s": round(side.latest_s, 2) for side in sides}
    if options.csv:
        options.csv.write_text("\n".join(csv_lines(part.jobs, seen)) + "\n")
    figures: dict[str, Cell] = {
        "jobs": len(part.jobs),
        "gangs": sum(job.nodes > 1 for job in part.jobs),
        "largest_gang": max(job.nodes for job in part.jobs),
        "nodes": part.nodes,
        "gpus_per_node": GPUS_PER_NODE,
        "users": len(part.users),
        "left_out_for_their_length": part.left_out,
        "arrivals_s": round(part.span_s),
        "muster_mean_jct_in_pretend_time_s": pretended[0]["mean JCT, s"],
        **latest,
        "load_before": round(load, 2),
        "processor_idle": _idle_part(busy, _processor_ticks()),
        "slurm": f"{version}, {SETTINGS['SchedulerParameters']}",
    }
    by_side = {name: measured(part, each, compression.hour_s) for name, each in seen.items()}
    table = rows(by_side["muster"], by_side["slurm"])
    if compression == USUAL and not options.keep_nothing:
        report("slurm-replay", figures, table, list_as="rows")
    else:
        print(aligned([{"figure": key, "value": value} for key, value in figures.items()]))
        print(f"\n{aligned(table)}")
    print(f"\n{NOTE}")


def _pretended(part: Slice, hour_s: float) -> list[Row]:
    """What the planner alone makes of it, beside others, if nothing but the jobs took time."""
    seen = {"muster": _replay_pretend.ours(part)}
    seen |= {name: _replay_pretend.by(each, part) for name, each in _replay_pretend.OTHERS.items()}
    found = {name: measured(part, each, hour_s) for name, each in seen.items()}
    return [
        {
            "policy": name,
            "mean JCT, s": round(each.mean_jct_s, 3),
            "p99 JCT, s": round(each.p99_jct_s, 3),
            "mean slowdown": round(each.mean_slowdown, 3),
            "longest wait, s": round(each.longest_wait_s, 3),
            "utilisation": round(each.utilisation, 3),
        }
        for name, each in found.items()
    ]


def rows(ours: Measured, theirs: Measured) -> list[Row]:
    """Each figure of both, and whether Muster is ahead."""
    return [
        _row("mean JCT, s", ours.mean_jct_s, theirs.mean_jct_s),
        _row("p99 JCT, s", ours.p99_jct_s, theirs.p99_jct_s),
        _row("mean slowdown", ours.mean_slowdown, theirs.mean_slowdown),
        _row("mean wait, s", ours.mean_wait_s, theirs.mean_wait_s),
        _row("longest wait, s", ours.longest_wait_s, theirs.longest_wait_s),
        _row("utilisation", ours.utilisation, theirs.utilisation, more_is_better=True),
        _row("first date told, part of jobs", ours.dated, theirs.dated, more_is_better=True),
        _row("error of the first date, part of the wait", ours.date_error, theirs.date_error),
        _row("error of the first date, s", ours.date_error_s, theirs.date_error_s),
    ]


def _row(metric: str, ours: float, theirs: float, *, more_is_better: bool = False) -> Row:
    """Equal to the last digit that is shown counts as ahead."""
    ratio = _ratio(ours, theirs) if more_is_better else _ratio(theirs, ours)
    return {
        "metric": metric,
        "muster": _cell(ours),
        "slurm": _cell(theirs),
        "ratio": ratio,
        "verdict": "ahead" if ratio >= 1.0 else "BEHIND",
    }


def _ratio(better: float, worse: float) -> float:
    return 1.0 if worse == 0 or isinf(better) else round(better / worse, 3)


def _cell(value: float) -> Cell:
    return "none" if isinf(value) else round(value, 3)


@contextlib.contextmanager
def _both(part: Slice, names: Sequence[str]) -> Generator[tuple[tuple[Side, Side], str]]:
    """Muster as it is shipped and a tuned Slurm, and which Slurm that is."""
    with (
        tempfile.TemporaryDirectory(prefix="replay-") as made,
        muster(nodes=part.nodes, gpus=f"{GPUS_PER_NODE}xA100-40GB") as home,
        slurm_commands(home) as environ,
        laboratory(
            nodes=part.nodes,
            gpus_per_node=GPUS_PER_NODE,
            look=Look(settings=SETTINGS),
            rest=False,
        ) as lab,
    ):
        folder = Path(made)
        folder.chmod(0o755)
        script = folder / "job.sh"
        script.write_text(SCRIPT)
        script.chmod(0o755)
        _add_accounts(lab, names)
        sides = (Side("muster", environ, folder), Side("slurm", lab.environ, folder))
        yield sides, lab.version


def _add_accounts(lab: Lab, names: Sequence[str]) -> None:
    """Users with equal shares; without them Slurm's fair share says nothing."""
    lab.ask("sacctmgr", "-i", "add", "account", "trace")
    for name in sorted(set(names)):
        lab.ask("sacctmgr", "-i", "add", "user", name, "Account=trace", "Fairshare=1")


def _replayed(part: Slice, sides: Sequence[Side], names: Mapping[str, str]) -> dict[str, Seen]:
    begun_s = time.time() + BEFORE_S
    replays = [Replay(side, part, names, begun_s) for side in sides]
    parts = [work for each in replays for work in (each.submit_all, each.ask_for_dates, each.watch)]
    with ThreadPoolExecutor(len(parts)) as pool:
        futures = [pool.submit(work) for work in parts]
        try:
            wait(futures, return_when=FIRST_EXCEPTION)
        finally:
            for each in replays:
                each.stop()
        for future in futures:
            future.result()
    return {each.side.name: each.seen for each in replays}


def _system_accounts() -> list[str]:
    """Accounts that every machine has, so that none need be made."""
    return [each.pw_name for each in pwd.getpwall() if 0 < each.pw_uid < 100]


def _processor_ticks() -> tuple[int, int]:
    """Idle and all of them, since this machine started."""
    words = Path("/proc/stat").read_text().split("\n", 1)[0].split()
    ticks = list(map(int, words[1:9]))
    return ticks[3], sum(ticks)


def _idle_part(before: tuple[int, int], after: tuple[int, int]) -> float:
    """How much of the processors nobody wanted during the replay."""
    return round((after[0] - before[0]) / max(1, after[1] - before[1]), 3)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", type=int, default=USUAL.jobs)
    parser.add_argument("--hour-s", type=float, default=USUAL.hour_s, help="an hour of a job")
    parser.add_argument("--load", type=float, default=USUAL.load)
    parser.add_argument("--csv", type=Path, help="write when each job ran, on either side")
    parser.add_argument("--pretend", action="store_true", help="in pretend time alone")
    parser.add_argument("--keep-nothing", action="store_true", help="print, and write no results")
    return parser.parse_args()


if __name__ == "__main__":
    try:
        main()
    except MusterError as error:
        raise SystemExit(str(error)) from error
