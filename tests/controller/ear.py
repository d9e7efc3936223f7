"""Hears which mails there would be of what happens at a desk."""

from controller.desk import Desk, spec
from muster.backends.simulated.attempt import Behaviour
from muster.controller.journal import KeepingStore
from muster.controller.mail_news import ArrayOver, Errand, News
from muster.controller.stage import Change, Stage
from muster.model.mail import Mail, Occasion
from muster.model.value import SECOND, Duration, JobId, replace
from muster.simulator.run import Arrival
from muster.stores.base import Batch

EVERYTHING = Mail(on=tuple(Occasion))


class Ear:
    """Hears what mails there would be, and counts parts of time as they pass."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self._news: News | None = None
        self._heard: list[Errand] = []
        desk.simulation.journal.told.add(self._note)

    def begins(self) -> None:
        """A process begins to lead."""
        journal = self._desk.simulation.journal
        store: KeepingStore = journal.store
        news = News(self._desk.record, store)

        def command(stage: Stage) -> None:
            news.begin(stage)
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


def _text(errand: Errand) -> str:
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
