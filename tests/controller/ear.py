"""Hears which mails there would be of what happens at a desk."""

from controller.desk import Desk, spec
from muster.backends.simulated.attempt import Behaviour
from muster.controller.mail.notices import ArrayOver, NoticeSource, Outgoing
from muster.controller.world.journal import KeepingStore
from muster.controller.world.transaction import Change, Transaction
from muster.model.mail import Mail, Occasion
from muster.model.value import SECOND, Duration, JobId, replace
from muster.simulator.run import Arrival
from muster.stores.base import Batch

EVERYTHING = Mail(on=tuple(Occasion))


class Ear:
    """Hears what mails there would be, and counts parts of time as they pass."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self._news: NoticeSource | None = None
        self._heard: list[Outgoing] = []
        desk.simulation.journal.subscribers.add(self._note)

    def begins(self) -> None:
        """A process begins to lead."""
        journal = self._desk.simulation.journal
        store: KeepingStore = journal.store
        news = NoticeSource(self._desk.record, store)

        def command(transaction: Transaction) -> None:
            news.begin(transaction)
            self._news = news

        journal.write(command).result()

    def heard(self) -> list[str]:
        """What came since the last look: `1 begin`, `array 3 over`."""
        if self._news is not None:
            self._heard += self._news.due(self._desk.simulation.now)
        found, self._heard = self._heard, []
        return [_text(each) for each in found]

    def _note(self, batch: Batch, changes: tuple[Change, ...]) -> None:
        if self._news is not None:
            self._heard += self._news.due(self._desk.simulation.now)
            self._heard += self._news.of(batch, changes)


def _text(errand: Outgoing) -> str:
    if isinstance(errand, ArrayOver):
        return f"array {errand.array} over"
    return f"{errand.job.id} {errand.on.value}"


def listening(desk: Desk) -> Ear:
    ear = Ear(desk)
    ear.begins()
    return ear


def submits_array(desk: Desk, parts: int, *, lasts: int = 60, mail: Mail = EVERYTHING) -> JobId:
    arrival = Arrival(
        at=desk.simulation.now, spec=replace(spec(), mail=mail), indices=tuple(range(parts))
    )
    jobs = desk.simulation.submit(arrival).jobs
    for job in jobs:
        desk.will_go(job, Behaviour(work=Duration(lasts * SECOND)))
    return jobs[0]
