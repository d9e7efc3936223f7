"""The users of the crash test: they submit, cancel, hold, and write down every answer they get."""

import sys
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from threading import Event, Thread

from chaos.house import House
from muster.api.requests import GroupDocument, SubmitDocument
from muster.client.calls import Client
from muster.client.errors import ApiError, LostAnswerError, UnreachableError
from muster.model.value import replace

JOB = Path(__file__).with_name("job.py")
MOST_LIVE = 120
LET_GO_AFTER_S = 1.5
LARGE = 100_000
TROUBLES = {503, 507}
"""What the server may answer when its store is full or locked."""


@dataclass(kw_only=True)
class Answers:
    """What the users were answered.

    acknowledged: jobs by id, with the name they were given.
    lost: names of jobs whose answer never came: they may be there or not.
    refused: names of jobs that the server would not take: they must not be there.
    troubles: how often each status was answered, with the newest text.
    strange: answers that no user should get.
    """

    acknowledged: dict[int, str] = field(default_factory=dict[int, str])
    lost: set[str] = field(default_factory=set[str])
    refused: set[str] = field(default_factory=set[str])
    troubles: dict[int, list[str]] = field(default_factory=dict[int, list[str]])
    strange: list[str] = field(default_factory=list[str])
    acts: int = 0


class Load:
    """A thread that asks for things, one after the other, until it is stopped."""

    def __init__(self, house: House, chance: Random) -> None:
        self.answers = Answers()
        self._house = house
        self._chance = chance
        self._client = house.client()
        self._count = 0
        self._knocks = 0
        self._chance_of_knocks = Random(chance.random())  # noqa: S311 seeded on purpose
        self._without_gpus: set[int] = set()
        self._to_let_go: list[tuple[float, str, int]] = []
        self._live = 0
        self._stopping = Event()
        self._thread = Thread(target=self._run, name="load")

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stopping.set()
        self._thread.join()
        self._client.close()

    def knock(self) -> ApiError | None:
        """Submit something large, from any thread: what went wrong, if anything did."""
        self._knocks += 1
        small = wish(self._chance_of_knocks, f"knock-{self._knocks}", self._house)
        wanted = replace(small, env={"LARGE": "x" * LARGE})
        with self._house.client() as client:
            try:
                self._submitted(client, wanted)
            except ApiError as error:
                return error
        return None

    def _run(self) -> None:
        while not self._stopping.is_set():
            turn = self._submit if self._chance.random() < 0.7 else self._act
            with self._troubles_written():
                self._let_go()
                if turn == self._act or not self._is_much():
                    turn()
            self._stopping.wait(self._chance.uniform(0.01, 0.2))

    def _is_much(self) -> bool:
        """Enough jobs wait and run: more would only wait."""
        if self._count % 8 == 0 or self._live > MOST_LIVE:
            self._live = sum(self._client.status().jobs.values())
        return self._live > MOST_LIVE

    def _submit(self) -> None:
        self._count += 1
        self._submitted(self._client, wish(self._chance, f"chaos-{self._count}", self._house))

    def _submitted(self, client: Client, wanted: SubmitDocument) -> None:
        try:
            given = client.submit_document(wanted)
        except LostAnswerError:
            self.answers.lost.add(wanted.name)
            return
        except ApiError:
            self.answers.refused.add(wanted.name)
            raise
        self.answers.acknowledged.update((id, wanted.name) for id in given.ids)
        if not wanted.groups[0].gpus:
            self._without_gpus.update(given.ids)
        if wanted.held:
            self._let_go_later("release", given.id)

    def _act(self) -> None:
        """Somebody changes their mind about one of the newest jobs."""
        newest = list(self.answers.acknowledged)[-12:]
        if not newest:
            return
        job = self._chance.choice(newest)
        action = self._chance.choice(("cancel", "requeue", "suspend", "hold"))
        if action == "suspend" and job not in self._without_gpus:
            # Who is suspended leaves the devices to others, and cannot let go of the locks.
            action = "requeue"
        self._client.act(action, (job,))
        self.answers.acts += 1
        if action in ("suspend", "hold"):
            self._let_go_later("resume" if action == "suspend" else "release", job)

    def _let_go_later(self, action: str, job: int) -> None:
        self._to_let_go.append((time.monotonic() + LET_GO_AFTER_S, action, job))

    def _let_go(self) -> None:
        now = time.monotonic()
        for each in [each for each in self._to_let_go if each[0] < now]:
            self._client.act(each[1], (each[2],))
            self._to_let_go.remove(each)

    @contextmanager
    def _troubles_written(self) -> Generator[None]:
        try:
            yield
        except (UnreachableError, LostAnswerError):
            # The daemon is dead or just dies: its users come back.
            pass
        except ApiError as error:
            if error.status in TROUBLES:
                self.answers.troubles.setdefault(error.status, []).append(str(error))
            else:
                self.answers.strange.append(f"{error.status}: {error}")


def wish(chance: Random, name: str, house: House) -> SubmitDocument:
    """Some job."""
    kind = chance.choices(tuple(KINDS), weights=[weight for weight, _ in KINDS.values()])[0]
    manner, lasts_ms, document = KINDS[kind][1](chance)
    command = (sys.executable, "-I", "-S", str(JOB), str(house.evidence), manner, str(lasts_ms))
    return replace(
        document,
        name=name,
        command=command,
        workdir=str(house.work),
        stdout="/dev/null",
        labels={"kind": kind},
    )


Kind = Callable[[Random], tuple[str, int, SubmitDocument]]


def _short(chance: Random) -> tuple[str, int, SubmitDocument]:
    return "plain", chance.randint(0, 300), SubmitDocument(groups=(_group(chance),))


def _long(chance: Random) -> tuple[str, int, SubmitDocument]:
    return "plain", chance.randint(2_000, 10_000), SubmitDocument(groups=(_group(chance),))


def _failing(chance: Random) -> tuple[str, int, SubmitDocument]:
    document = SubmitDocument(groups=(_group(chance),), attempts=chance.choice((1, 1, 2)))
    return "failing", chance.randint(0, 500), document


def _array(chance: Random) -> tuple[str, int, SubmitDocument]:
    document = SubmitDocument(groups=(_group(chance),), array=chance.choice(("0-3", "1-4%2")))
    return "plain", chance.randint(0, 600), document


def _gang(chance: Random) -> tuple[str, int, SubmitDocument]:
    document = SubmitDocument(groups=(GroupDocument(tasks=2, gpus=1),))
    return "plain", chance.randint(0, 1_500), document


def _forking(chance: Random) -> tuple[str, int, SubmitDocument]:
    return "forking", chance.randint(100, 2_000), SubmitDocument(groups=(_group(chance),))


def _stubborn(chance: Random) -> tuple[str, int, SubmitDocument]:
    return "stubborn", chance.randint(500, 4_000), SubmitDocument(groups=(_group(chance),))


def _fragile(chance: Random) -> tuple[str, int, SubmitDocument]:
    document = SubmitDocument(groups=(_group(chance),), requeue=False)
    return "plain", chance.randint(500, 3_000), document


def _held(chance: Random) -> tuple[str, int, SubmitDocument]:
    return "plain", chance.randint(0, 300), SubmitDocument(groups=(_group(chance),), held=True)


def _group(chance: Random) -> GroupDocument:
    return GroupDocument(gpus=chance.choice((0, 0, 1, 2)))


KINDS: dict[str, tuple[int, Kind]] = {
    "short": (10, _short),
    "long": (4, _long),
    "failing": (3, _failing),
    "array": (2, _array),
    "gang": (2, _gang),
    "forking": (3, _forking),
    "stubborn": (2, _stubborn),
    "fragile": (2, _fragile),
    "held": (1, _held),
}
