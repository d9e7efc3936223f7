"""What is done to Muster in a round, and what must be so before the next one."""

import errno
import os
import sqlite3
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from random import Random

from chaos.house import House, kill, wait_until
from chaos.load import Load

LONGEST_WAIT_S = 0.4
"""The blow falls so long after the round began, or sooner."""

PATIENCE_S = 20.0
BLOCK = b"\0" * 65_536


@dataclass(frozen=True, kw_only=True)
class Stage:
    """Who is struck, and by which chance."""

    house: House
    load: Load
    chance: Random


class NotRecoveredError(Exception):
    """Muster did not come back, or did not say what was wrong."""


def strike(kind: str, stage: Stage) -> None:
    """One round: wait for a random moment, strike, and see that Muster answers again."""
    time.sleep(stage.chance.uniform(0, LONGEST_WAIT_S))
    BLOWS[kind][1](stage)
    if stage.house.daemon() is None:
        stage.house.up()
    time.sleep(stage.chance.uniform(0, LONGEST_WAIT_S))


def _daemon(stage: Stage) -> None:
    kill(stage.house.daemon())


def _restart(stage: Stage) -> None:
    """Kill the daemon, and kill it again while it takes over."""
    kill(stage.house.daemon())
    command = stage.house.starting()
    time.sleep(stage.chance.uniform(0.1, 1.2))
    kill(stage.house.daemon())
    command.communicate()


def _planner(stage: Stage) -> None:
    kill(stage.house.planner())


def _spawner(stage: Stage) -> None:
    kill(stage.house.spawner())


def _supervisors(stage: Stage) -> None:
    found = stage.house.supervisors()
    kill(*stage.chance.sample(found, min(len(found), stage.chance.randint(1, 3))))


def _several(stage: Stage) -> None:
    """Everything of a random choice, in a random order, at once."""
    house, chance = stage.house, stage.chance
    found = [house.daemon(), house.spawner(), house.planner(), *house.supervisors()[:3]]
    chance.shuffle(found)
    kill(*found[: chance.randint(2, len(found))])


def _full(stage: Stage) -> None:
    """The disk is full for a while: users see why, and nothing need be started again."""
    daemon = stage.house.daemon()
    ballast = stage.house.home / "ballast"
    try:
        _fill(ballast)
        _wait_for_trouble(stage, 507, "make room", lambda: _fill(ballast))
        if stage.chance.random() < 0.5:
            _supervisors(stage)
        time.sleep(stage.chance.uniform(0, 1.5))
    finally:
        ballast.unlink()
    _wait_for_answer(stage)
    if stage.house.daemon() != daemon:
        raise NotRecoveredError("the daemon ended because its disk was full")


def _locked(stage: Stage) -> None:
    """Another program holds the database for longer than Muster has patience."""
    with _another_program(stage.house):
        _wait_for_trouble(stage, 503, "is locked by another program")
        time.sleep(stage.chance.uniform(0, 1.5))
    _wait_for_answer(stage)


def _full_start(stage: Stage) -> None:
    """The daemon dies while the disk is full: who starts it sees why that fails."""
    ballast = stage.house.home / "ballast"
    try:
        _fill(ballast)
        kill(stage.house.daemon())
        _fill(ballast)
        _expect_failure(stage, "make room")
    finally:
        ballast.unlink()


def _locked_start(stage: Stage) -> None:
    """The same while another program holds the database."""
    with _another_program(stage.house):
        kill(stage.house.daemon())
        _expect_failure(stage, "is locked by another program")


@contextmanager
def _another_program(house: House) -> Generator[None]:
    """It holds the database as long as we are in here."""
    path = house.home / "muster.db"
    other = sqlite3.connect(path, timeout=PATIENCE_S, isolation_level=None)
    try:
        other.execute("BEGIN IMMEDIATE")
        yield
        other.execute("ROLLBACK")
    finally:
        other.close()


def _expect_failure(stage: Stage, advice: str) -> None:
    command = stage.house.starting()
    said, _ = command.communicate()
    if command.returncode == 0 or advice not in said:
        raise NotRecoveredError(f"muster up did not say {advice!r}, but: {said}")


def _fill(ballast: Path) -> None:
    """Take all the room that is left, to the last byte."""
    file = os.open(ballast, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    size = len(BLOCK)
    try:
        while size:
            try:
                os.write(file, BLOCK[:size])
            except OSError as error:
                if error.errno != errno.ENOSPC:
                    raise
                size //= 2
    finally:
        os.close(file)


def _wait_for_trouble(
    stage: Stage, status: int, advice: str, again: Callable[[], None] | None = None
) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline:
        error = stage.load.knock()
        if error is not None and error.status == status and advice in str(error):
            return
        if again is not None:
            again()
    raise NotRecoveredError(f"no user was answered {status} with the words: {advice}")


def _wait_for_answer(stage: Stage) -> None:
    if not wait_until(lambda: stage.load.knock() is None, PATIENCE_S):
        raise NotRecoveredError("no job was acknowledged after the trouble was over")


BLOWS: dict[str, tuple[int, Callable[[Stage], None]]] = {
    "daemon": (10, _daemon),
    "restart": (4, _restart),
    "planner": (2, _planner),
    "spawner": (3, _spawner),
    "supervisors": (4, _supervisors),
    "several": (5, _several),
    "full": (1, _full),
    "full start": (1, _full_start),
    "locked": (1, _locked),
    "locked start": (1, _locked_start),
}
"""Every kind of round, and how often it comes in proportion to the others."""


def kinds(house: House, chance: Random, rounds: int) -> list[str]:
    """The kinds of the rounds to come: each kind once, then as chance has it."""
    possible = [kind for kind in BLOWS if "full" not in kind or house.has_small_disk]
    chosen = chance.choices(possible, weights=[BLOWS[kind][0] for kind in possible], k=rounds)
    chosen[: len(possible)] = chance.sample(possible, len(possible))
    return chosen[:rounds]
