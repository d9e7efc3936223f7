"""The crash test from its beginning to its end."""

import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

from chaos.blows import NotRecoveredError, Stage, kinds, strike
from chaos.house import CannotStartError, House
from chaos.load import Answers, Load
from chaos.verdict import Verdict, verdict
from muster.client.calls import Client
from muster.client.errors import ClientError

END_PATIENCE_S = 60.0
"""So long jobs may take to end by themselves; then they are cancelled, and get as long again."""


@dataclass(kw_only=True)
class Played:
    """What was played, and what came of it."""

    seed: int
    lasted_s: float
    rounds: Counter[str]
    answers: Answers
    verdict: Verdict
    has_small_disk: bool = True
    mishaps: list[str] = field(default_factory=list[str])

    @property
    def passed(self) -> bool:
        return not (self.verdict.broken or self.mishaps)


def play(
    rounds: int, seed: int, folder: Path, say: Callable[[str], object] = lambda _: None
) -> Played:
    """So many rounds in this folder, by this chance; the house is closed afterwards."""
    chance = Random(seed)  # noqa: S311 seeded on purpose
    began = time.monotonic()
    house = House(folder)
    load = Load(house, Random(chance.random()))  # noqa: S311 seeded on purpose
    played: Counter[str] = Counter()
    mishaps: list[str] = []
    try:
        house.up()
        load.start()
        for number, kind in enumerate(kinds(house, chance, rounds), 1):
            played[kind] += 1
            say(f"round {number} of {rounds}: {kind}")
            mishaps += _mishap(number, kind, Stage(house=house, load=load, chance=chance))
        load.stop()
        mishaps += _early_end(house)
        _end_everything(house)
        found = verdict(house, load.answers)
    finally:
        load.stop()
        house.close()
    return Played(
        seed=seed,
        lasted_s=time.monotonic() - began,
        rounds=played,
        answers=load.answers,
        verdict=found,
        has_small_disk=house.has_small_disk,
        mishaps=mishaps,
    )


def _mishap(number: int, kind: str, stage: Stage) -> list[str]:
    try:
        strike(kind, stage)
    except (NotRecoveredError, CannotStartError, ClientError) as error:
        return [f"round {number} ({kind}): {error}"]
    return []


def _early_end(house: House) -> list[str]:
    """Every round leaves Muster running: if it does not run, it ended by itself."""
    if house.daemon() is not None:
        return []
    house.up()
    return ["the daemon was dead after the last round"]


def _end_everything(house: House) -> None:
    """Let every job come to its end: those that stand still go on, those that dawdle are ended."""
    with house.client() as client:
        if not _all_ended(client, END_PATIENCE_S):
            client.cancel([job.id for job in client.all_jobs()])
            _all_ended(client, END_PATIENCE_S)


def _all_ended(client: Client, patience_s: float) -> bool:
    deadline = time.monotonic() + patience_s
    while time.monotonic() < deadline:
        live = list(client.all_jobs())
        if not live:
            return True
        for state, action in (("held", "release"), ("suspended", "resume")):
            standing = [job.id for job in live if job.state == state]
            if standing:
                client.act(action, standing)
        time.sleep(0.2)
    return False
