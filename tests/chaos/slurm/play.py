"""Rounds of faults with jobs of ours and of others, and what must be true in the end."""

import shutil
import stat
import sys
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

from bench.slurm.configuring import Look
from bench.slurm.lab import Lab, laboratory
from chaos.evidence import Written, written_by_all
from chaos.load import JOB, Answers
from chaos.slurm.blows import BLOWS, Stage, kinds
from chaos.verdict import Verdict, disagreements, judge_ends
from live.house import Process, folder, until
from muster.api.pages import JobFilter
from muster.client.calls import Client
from muster.client.errors import ClientError
from muster.settings import Settings, SlurmCluster

QUICK = {
    "SlurmdTimeout": 20,
    "SlurmctldTimeout": 20,
    "MessageTimeout": 5,
    "MinJobAge": 300,
    # By default Slurm looks once a minute at jobs whose room came back by itself.
    "SchedulerParameters": "batch_sched_delay=0,sched_interval=5,bf_interval=5",
}
ENDED = ("completed", "failed", "cancelled")
END_PATIENCE_S = 300.0
SAFE = "node4"
"""Where others run: this node's slurmd is struck, but never the node."""
STATE_WRITTEN_S = 8.0
"""slurmctld writes its state at least this often: jobs of others are to be older than that."""
COMMANDS = ("sbatch", "squeue", "scontrol", "scancel", "sacct")
WRAPPED = """#!/bin/sh
PATH={path} {command} "$@"
code=$?
[ -e {deaf} ] && {{ echo "{command}: error: Socket timed out on send/recv operation" >&2; exit 1; }}
exit $code
"""


@dataclass(kw_only=True)
class Played:
    """What was played, and what came of it.

    again: attempts that a slurmctld which forgot that they had begun, or ended, began once more
    before anybody saw it: that is Slurm's to prevent, and is counted. Two at once are doubled.
    """

    seed: int
    lasted_s: float
    rounds: Counter[str]
    verdict: Verdict
    attempts: int
    again: int
    harmed: list[str] = field(default_factory=list[str])

    @property
    def passed(self) -> bool:
        return not (self.verdict.broken or self.harmed)


def play(rounds: int, seed: int, say: Callable[[str], object] = lambda _: None) -> Played:
    """So many rounds, by this chance, on a Slurm of four nodes of its own."""
    began, chance = time.monotonic(), Random(seed)  # noqa: S311 seeded on purpose
    played: Counter[str] = Counter()
    with (
        folder() as place,
        laboratory(nodes=4, gpus_per_node=2, look=Look(settings=QUICK), rest=False) as lab,
    ):
        stage, load = _stage(place, lab, chance), Load(place)
        others = _others(lab, place)
        stage.muster.start()
        try:
            _until_gpus(stage.muster)
            for number, kind in enumerate(kinds(chance, rounds), 1):
                played[kind] += 1
                say(f"round {number} of {rounds}: {kind}")
                load.submit(stage.muster, chance)
                stage.waits(2)
                BLOWS[kind][1](stage)
                load.submit(stage.muster, chance)
                stage.waits(2)
                _takes_nodes_back(lab)
            found, attempts, again = _judged(stage.muster, load, place)
            harmed = _harmed(lab, others)
            if found.lost:
                found.wrong.append(_state_of_things(stage.muster, lab))
        except ClientError as error:
            raise AssertionError(f"{error}\n{_said_of_bugs(stage.muster)}") from error
        finally:
            stage.muster.stop()
    return Played(
        seed=seed,
        lasted_s=time.monotonic() - began,
        rounds=played,
        verdict=found,
        attempts=attempts,
        again=again,
        harmed=harmed,
    )


class Load:
    """Jobs that come all the time; each leaves evidence of every attempt."""

    def __init__(self, place: Path) -> None:
        self.evidence = place
        self.answers = Answers()
        for name in ("written", "locks"):
            (place / name).mkdir()

    def submit(self, muster: Process, chance: Random) -> None:
        """A few more."""
        for _ in range(chance.randint(1, 3)):
            name = f"job{len(self.answers.acknowledged) + len(self.answers.lost)}"
            lasts_ms = chance.choice((0, 200, 1_000, 3_000))
            words = [sys.executable, "-I", "-S", str(JOB), str(self.evidence)]
            try:
                with muster.client() as client:
                    job = client.submit(
                        [*words, "plain", str(lasts_ms)],
                        name=name,
                        workdir="/",
                        stdout="/dev/null",
                        pools=("gpu",),
                        gpus=1,
                    )
                self.answers.acknowledged[job.id] = name
            except ClientError:
                self.answers.lost.add(name)


def _stage(place: Path, lab: Lab, chance: Random) -> Stage:
    """A Muster whose commands lose their answers when they are told to."""
    place.chmod(0o777)
    deaf, commands = place / "deaf", place / "commands"
    commands.mkdir()
    for name in COMMANDS:
        path = shutil.which(name) or name
        wrapper = commands / name
        text = WRAPPED.format(path=f"{Path(path).parent}:/usr/bin:/bin", command=name, deaf=deaf)
        wrapper.write_text(text, encoding="utf-8")
        wrapper.chmod(stat.S_IRWXU | stat.S_IRGRP | stat.S_IXGRP | stat.S_IROTH | stat.S_IXOTH)
    cluster = SlurmCluster(name="lab", conf=lab.layout.conf, commands=str(commands))
    settings = Settings(mail_program="none", nodes=1, gpus="0", clusters=(cluster,))
    muster = Process(place / "home", settings)
    return Stage(lab=lab, muster=muster, chance=chance, deaf=deaf)


def _until_gpus(muster: Process) -> None:
    def gpus() -> int:
        with muster.client() as client:
            return sum(node.gpus for node in client.nodes())

    until(gpus, lambda count: count > 0)


def _takes_nodes_back(lab: Lab) -> None:
    """What an administrator does: a slurmctld that gave a number twice drains who had both."""

    def is_done() -> bool:
        try:
            for row in lab.ask("sinfo", "-N", "-h", "-o", "%N|%E").splitlines():
                node, _, why = row.partition("|")
                if why == "Duplicate jobid":
                    lab.ask("scontrol", "update", f"NodeName={node}", "State=RESUME")
        except RuntimeError:
            return False
        return True

    until(is_done, bool)


def _others(lab: Lab, place: Path) -> dict[str, Path]:
    """Somebody else's jobs: each says once that it began, and goes on until the end."""
    found: dict[str, Path] = {}
    for number in range(2):
        path = place / f"other{number}"
        text = f"echo begun >> {path}; sleep 86400"
        options = ("--parsable", "-w", SAFE, "--comment=muster:else:1.1", "-o", "/dev/null")
        found[lab.ask("sbatch", *options, "--wrap", text).strip()] = path
    until(lambda: all(path.exists() for path in found.values()), bool)
    time.sleep(STATE_WRITTEN_S)
    return found


def _harmed(lab: Lab, others: dict[str, Path]) -> list[str]:
    found: list[str] = []
    for job, path in others.items():
        state = lab.ask("squeue", "-h", "-j", job, "-o", "%T").strip()
        times = path.read_text(encoding="utf-8").count("begun")
        if (state, times) != ("RUNNING", 1):
            found.append(f"harmed: job {job} of somebody else is {state}, and began {times} times")
    return found


def _state_of_things(muster: Process, lab: Lab) -> str:
    """What keeps jobs that have not ended, for who looks for that."""
    with muster.client() as client:
        job = next(iter(client.all_jobs()), None)
        why = "" if job is None else client.explain(job.id).text
        nodes = [f"{each.id} {each.state} {each.gpus_used}/{each.gpus}" for each in client.nodes()]
    slurm = lab.ask("sinfo", "-N", "-h", "-o", "%N %T %E") + lab.ask("squeue", "-a", "-h")
    said = [line for line in muster.log().splitlines() if "cluster lab" in line][-15:]
    return "\n".join((f"waits: {why}", *nodes, slurm, *said))


def _said_of_bugs(muster: Process) -> str:
    """What its log says of what it calls a bug of its own, for who looks for that."""
    lines = muster.log().splitlines()
    found = [at for at, line in enumerate(lines) if "bug" in line]
    return "\n".join(lines[max(0, found[-1] - 5) : found[-1] + 60]) if found else ""


def _judged(muster: Process, load: Load, place: Path) -> tuple[Verdict, int, int]:
    found = Verdict(acknowledged=len(load.answers.acknowledged))
    with muster.client() as client:
        _until_over(client)
        over = list(client.all_jobs(JobFilter(ended=True, states=ENDED)))
        live = list(client.all_jobs())
        documents = {job.id: client.job(job.id) for job in over}
    judge_ends(found, load.answers, over, live)
    written, again = written_by_all(place), 0
    for id, job in documents.items():
        mine = written.get(id, Written())
        found.doubled += [f"job {id}: {line}" for line in mine.overlaps]
        again += sum(times > 1 for times in mine.starts.values())
        found.wrong += disagreements(job, mine)
    return found, sum(len(job.attempts) for job in documents.values()), again


def _until_over(client: Client) -> None:
    deadline = time.monotonic() + END_PATIENCE_S
    while list(client.all_jobs()) and time.monotonic() < deadline:
        time.sleep(0.5)
