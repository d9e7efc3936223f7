"""What is done in a round to Muster, to Slurm's daemons, or to what they say to each other."""

import os
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from random import Random

from bench.slurm.lab import Lab
from live.house import Process

STRUCK = "node1"
"""The node that dies: jobs of others are elsewhere."""
MOST_AWAY_S = 4.0
"""Daemons come back sooner than others give them up; longer is another story (the node's death)."""


@dataclass(frozen=True, kw_only=True)
class Stage:
    """Who is struck, and by which chance. deaf: while this file is there, answers are lost."""

    lab: Lab
    muster: Process
    chance: Random
    deaf: Path

    def waits(self, at_most_s: float) -> None:
        time.sleep(self.chance.uniform(0, at_most_s))


def _muster(stage: Stage) -> None:
    stage.muster.kill()
    stage.waits(1)
    stage.muster.start()


def _slurmctld(stage: Stage) -> None:
    """What it took in during the last seconds is forgotten, and its numbers are given again."""
    _kill_slurmctld(stage)
    stage.waits(MOST_AWAY_S)
    stage.lab.launch("slurmctld", "-D")


def _slurmd(stage: Stage) -> None:
    node = stage.chance.choice(stage.lab.layout.nodes)
    stage.lab.kill("slurmd", "-D", "-N", node)
    stage.waits(MOST_AWAY_S)
    stage.lab.launch("slurmd", "-D", "-N", node)


def _node(stage: Stage) -> None:
    """The node is gone with all that it ran, and comes back."""
    stage.lab.crash(STRUCK)
    stage.waits(MOST_AWAY_S)
    stage.lab.launch("slurmd", "-D", "-N", STRUCK)


def _slurmdbd(stage: Stage) -> None:
    stage.lab.kill("slurmdbd", "-D")
    stage.waits(MOST_AWAY_S)
    stage.lab.launch("slurmdbd", "-D")


def _both(stage: Stage) -> None:
    _kill_slurmctld(stage)
    stage.muster.kill()
    if stage.chance.random() < 0.5:
        stage.lab.launch("slurmctld", "-D")
        stage.muster.start()
    else:
        stage.muster.start()
        stage.waits(MOST_AWAY_S)
        stage.lab.launch("slurmctld", "-D")


def _hangs(stage: Stage) -> None:
    """slurmctld takes connections and says nothing for a while."""
    pids = stage.lab.pids("slurmctld")
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    stage.waits(2 * MOST_AWAY_S)
    for pid in pids:
        os.kill(pid, signal.SIGCONT)


def _answers_are_lost(stage: Stage) -> None:
    """What is asked happens, and nobody is told so."""
    stage.deaf.touch()
    stage.waits(MOST_AWAY_S)
    stage.deaf.unlink()


def _kill_slurmctld(stage: Stage) -> None:
    for first in (("slurmctld", "-D", "-i"), ("slurmctld", "-D")):
        stage.lab.kill(*first)


BLOWS: dict[str, tuple[int, Callable[[Stage], None]]] = {
    "muster": (5, _muster),
    "slurmctld": (5, _slurmctld),
    "slurmd": (3, _slurmd),
    "node": (1, _node),
    "slurmdbd": (2, _slurmdbd),
    "muster and slurmctld": (4, _both),
    "slurmctld hangs": (2, _hangs),
    "answers are lost": (4, _answers_are_lost),
}
"""Every kind of round, and how often it comes in proportion to the others."""


def kinds(chance: Random, rounds: int) -> list[str]:
    """Each kind once, then as chance has it."""
    chosen = chance.choices(list(BLOWS), weights=[each for each, _ in BLOWS.values()], k=rounds)
    chosen[: len(BLOWS)] = chance.sample(list(BLOWS), len(BLOWS))
    return chosen[:rounds]
