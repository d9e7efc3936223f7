"""Whatever happens to pretended attempts: each ends once, and no work is won or lost unseen."""

from dataclasses import dataclass, field

from hypothesis import given
from hypothesis import strategies as st

from contracts.backends.given import BY_OTHER, CLUSTER, N1, NODES, job_of, run_of
from muster.backends.base import Action, Continue, Limit, Stop, Suspend
from muster.backends.simulated.attempt import Behaviour
from muster.backends.simulated.backend import SimulatedBackend
from muster.model.event import (
    Event,
    JobCheckpointed,
    JobEnded,
    JobStarted,
    JobSuspended,
)
from muster.model.job import Exited, Job
from muster.model.placement import Allocation
from muster.model.value import Duration, Instant, JobId, Value

DONE = Exited(code=0)


class Disturbance(Value):
    """So long after the last one, this happens to the jobs of these numbers."""

    after: int
    what: str
    jobs: tuple[int, ...]
    grace: int = 0
    saving: bool = False


def spans(most: int) -> st.SearchStrategy[Duration]:
    return st.integers(0, most).map(Duration)


fates = st.builds(
    Behaviour,
    work=spans(300),
    start_delay=spans(20),
    checkpoint_every=st.none() | st.integers(1, 60).map(Duration),
    restart_overhead=spans(20),
    saves_in=st.none() | spans(20),
    stops_in=spans(30),
)
disturbances = st.builds(
    Disturbance,
    after=st.integers(0, 60),
    what=st.sampled_from(["stop", "suspend", "continue", "limit", "outage"]),
    jobs=st.lists(st.integers(1, 3), min_size=1, max_size=3, unique=True).map(tuple),
    grace=st.integers(0, 30),
    saving=st.booleans(),
)


@dataclass
class Account:
    """What one attempt did, kept from outside: by what was ordered and what was heard of it."""

    placed_at: int
    overhead: int
    started_at: int | None = None
    computes_since: int | None = None
    computed: int = 0
    saved: int = 0
    is_stopping: bool = False
    ends: list[JobEnded] = field(default_factory=list[JobEnded])

    def pause(self, at: int) -> None:
        if self.computes_since is not None:
            self.computed += at - self.computes_since
        self.computes_since = None

    def worked(self, at: int) -> int:
        """Work of this attempt, without what the restart took."""
        going = 0 if self.computes_since is None else at - self.computes_since
        return max(0, self.computed + going - self.overhead)

    @property
    def lost(self) -> int:
        is_done = self.ends[0].why == DONE
        return 0 if is_done else self.worked(self.ends[0].at) - self.saved


class Trial:
    """Jobs that are run again until they are done, whatever comes between."""

    def __init__(self, lots: list[Behaviour], tells_every: int) -> None:
        self.lots = dict(enumerate(lots, start=1))
        self.backend = SimulatedBackend(
            NODES.values(), CLUSTER, self.lasts, tells_every=Duration(tells_every)
        )
        self.now = 0
        self.accounts: dict[int, list[Account]] = {job: [] for job in self.lots}
        self.look(0)
        for job in self.lots:
            self.run(job)

    def lasts(self, job: Job, _: Allocation) -> Behaviour:
        return self.lots[job.id]

    def run(self, job: int) -> None:
        """The next attempt; ordered twice, since that must not matter."""
        number = len(self.accounts[job]) + 1
        overhead = self.lots[job].restart_overhead if number > 1 else 0
        self.accounts[job].append(Account(self.now, overhead))
        for _ in range(2):
            self.backend.do(run_of(job_of(job, number), self.now))

    def look(self, now: int) -> None:
        self.now = now
        for event in self.backend.observe(Instant(now)):
            self.hear(event)

    def hear(self, event: Event) -> None:
        if not isinstance(event, JobStarted | JobSuspended | JobCheckpointed | JobEnded):
            return
        account = self.accounts[event.job][event.attempt - 1]
        assert account.ends == []
        assert account.placed_at <= event.at <= self.now
        match event:
            case JobStarted(at=at):
                assert account.started_at is None
                account.started_at = account.computes_since = at
            case JobSuspended(at=at):
                account.pause(at)
            case JobCheckpointed(at=at):
                account.saved = account.worked(at)
            case JobEnded(at=at):
                assert account.started_at is not None or event.why != DONE
                account.pause(at)
                account.ends.append(event)

    def disturb(self, cause: Disturbance) -> None:
        self.look(self.now + cause.after)
        self.run_again()
        if cause.what == "outage":
            until = Instant(self.now + cause.grace)
            self.backend.fail_node(N1, Instant(self.now), until)
            self.look(until)
        for job in cause.jobs:
            if job in self.lots:
                self.act(cause, job)
        self.look(self.now)

    def act(self, cause: Disturbance, job: int) -> None:
        account, attempt = self.accounts[job][-1], len(self.accounts[job])
        action: Action
        match cause.what:
            case "stop":
                action = Stop(
                    job=JobId(job),
                    attempt=attempt,
                    why=BY_OTHER,
                    grace=Duration(cause.grace),
                    checkpoint=cause.saving,
                )
            case "suspend":
                action = Suspend(job=JobId(job), attempt=attempt)
            case "continue":
                action = Continue(job=JobId(job), attempt=attempt)
            case "limit":
                action = Limit(
                    job=JobId(job), attempt=attempt, ends_at=Instant(self.now + cause.grace)
                )
            case _:
                return
        self.backend.do(action)
        self.note(action, account)

    def note(self, action: Action, account: Account) -> None:
        """What must follow from the action, if the attempt computes now or could."""
        if account.ends or account.is_stopping or account.started_at is None:
            return
        if isinstance(action, Stop):
            self.look(self.now)
            account.pause(self.now)
            account.is_stopping = True
        if isinstance(action, Continue) and account.computes_since is None:
            account.computes_since = self.now

    def run_again(self) -> None:
        for job, accounts in self.accounts.items():
            ends = accounts[-1].ends
            if ends and ends[0].why != DONE:
                self.run(job)

    def finish(self) -> None:
        """Let everybody go on until all are done."""
        for _ in range(3):
            for job in self.lots:
                self.act(Disturbance(after=0, what="continue", jobs=()), job)
            self.run_again()
            while (at := self.backend.next_at()) is not None:
                self.look(at)


@given(
    st.lists(fates, min_size=1, max_size=3),
    st.integers(1, 100),
    st.lists(disturbances, max_size=15),
)
def test_every_run_ends_once_and_all_work_is_accounted_for(
    lots: list[Behaviour], tells_every: int, causes: list[Disturbance]
) -> None:
    trial = Trial(lots, tells_every)

    for each in causes:
        trial.disturb(each)
    trial.finish()

    for job, accounts in trial.accounts.items():
        assert all(len(account.ends) == 1 for account in accounts)
        assert accounts[-1].ends[0].why == DONE
        done = sum(account.worked(account.ends[0].at) for account in accounts)
        assert done == lots[job - 1].work + sum(account.lost for account in accounts)


@given(
    st.lists(fates, min_size=1, max_size=3),
    st.integers(1, 100),
    st.lists(disturbances, max_size=15),
)
def test_something_happens_exactly_when_it_says(
    lots: list[Behaviour], tells_every: int, causes: list[Disturbance]
) -> None:
    trial = Trial(lots, tells_every)
    for each in causes:
        trial.disturb(each)

    while (at := trial.backend.next_at()) is not None:
        before = trial.backend.observe(Instant(at - 1)) if at > trial.now else ()
        happened = trial.backend.observe(at)
        trial.now = at

        assert before == ()
        assert happened != ()
