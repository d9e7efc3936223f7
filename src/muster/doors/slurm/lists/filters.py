"""Which jobs a command is about: ids as Slurm writes them, and filters."""

import re
from collections.abc import Iterable, Sequence

from muster.controller.messages import JobQuery, JobView
from muster.doors.slurm.call import Door
from muster.doors.slurm.lists.jobs import JobRow
from muster.doors.slurm.lists.listing import Listing
from muster.doors.slurm.words.states import LIVE, WORDS, State, state_of
from muster.doors.slurm.words.users import user_of
from muster.model.history import Attempt
from muster.model.job import Job
from muster.model.launch import Launch
from muster.model.value import Instant, JobId, QueuePath, UserName, Value
from muster.stores.base import HistoryQuery

KEPT_MS = 300_000
"""MinJobAge: so long squeue still shows a job that is over."""

EVERYTHING = 1_000_000

_ID = re.compile(
    r"([0-9]{1,18})(?:_(?:([0-9]{1,9})|\[([0-9,:%-]+)\]|(\*)))?(?:\+([0-9]{1,6}))?(?:\.(\w+))?"
)
_RANGE = re.compile(r"([0-9]{1,9})(?:-([0-9]{1,9})(?::([0-9]{1,9}))?)?")


class JobName(Value):
    """`12`, `12_3`, `12_[1-4]`: a job, or an array and some of its indices.

    component: `12+1`, of a job with several. step: `12.0`, `12.batch`. text: as it was written.
    """

    job: JobId
    indices: frozenset[int] | None = None
    component: int | None = None
    step: str | None = None
    text: str = ""

    def means(self, job: Job) -> bool:
        part = job.spec.array
        if part is not None and part.array == self.job:
            return self.indices is None or part.index in self.indices
        return self.indices is None and job.id == self.job


def job_name(text: str) -> JobName | None:
    """Read an id; None if it is none."""
    found = _ID.fullmatch(text.strip())
    if found is None:
        return None
    indices: frozenset[int] | None = None
    if found[2]:
        indices = frozenset({int(found[2])})
    elif found[3]:
        indices = _indices(found[3])
        if indices is None:
            return None
    return JobName(
        job=JobId(int(found[1])),
        indices=indices,
        component=int(found[5]) if found[5] else None,
        step=found[6],
        text=text.strip(),
    )


def split_ids(text: str) -> list[str]:
    """At commas outside of brackets."""
    return [each for each in re.split(r",(?![^\[]*\])", text) if each]


class Filter(Value):
    """Everything that is given must hold. states of None: what squeue shows by default."""

    names: tuple[JobName, ...] = ()
    users: frozenset[str] = frozenset()
    accounts: frozenset[str] = frozenset()
    qos: frozenset[str] = frozenset()
    job_names: frozenset[str] = frozenset()
    reservations: frozenset[str] = frozenset()
    states: frozenset[State] | None = None

    def accepts(self, job: Job, state: State) -> bool:
        """Does a job pass, apart from where it is?"""
        spec = job.spec
        return (
            (not self.users or spec.user in self.users)
            and (not self.accounts or is_one_of(spec.queue, self.accounts))
            and (not self.qos or spec.job_class in self.qos)
            and (not self.job_names or spec.name in self.job_names)
            and (not self.reservations or spec.reservation in self.reservations)
            and state in (LIVE if self.states is None else self.states)
            and (not self.names or any(name.means(job) for name in self.names))
        )


def is_one_of(queue: QueuePath, accounts: frozenset[str]) -> bool:
    """An account may be named by its path or by its last part."""
    return queue in accounts or queue.rpartition("/")[2] in accounts


def states_of(words: Iterable[str]) -> frozenset[State] | str:
    """The states that are meant, or the word that means none."""
    found: set[State] = set()
    for word in words:
        if word.lower() == "all":
            return frozenset(State)
        state = WORDS.get(word.lower())
        if state is None:
            return word
        found.add(state)
    return frozenset(found)


def users_of(words: Iterable[str]) -> frozenset[str]:
    """Names, of which some may be numbers."""
    return frozenset(user_of(word) for word in words)


def live_views(door: Door, wish: Filter) -> list[JobView]:
    """Jobs that are not over, in the order of their ids."""
    named = tuple(sorted({name.job for name in wish.names}))
    users = tuple(UserName(each) for each in sorted(wish.users))
    base = JobQuery(users=users, limit=EVERYTHING)
    queries = [base]
    if named:
        queries = [
            JobQuery(users=users, jobs=named, limit=EVERYTHING),
            JobQuery(users=users, arrays=named, limit=EVERYTHING),
        ]
    found: dict[JobId, JobView] = {}
    for query in queries:
        for view in door.queries.jobs.page(door.caller, query).jobs:
            if wish.accepts(view.job, state_of(view.job)):
                found[view.job.id] = view
    return [found[each] for each in sorted(found)] if named else list(found.values())


def ended_views(door: Door, wish: Filter, since: Instant) -> list[JobView]:
    """Jobs that are over since then."""
    named = tuple(sorted({name.job for name in wish.names}))
    users = tuple(UserName(each) for each in sorted(wish.users))
    paths = door.queries.site().queues.keys()
    is_plain = wish.accounts <= paths
    queues = tuple(QueuePath(each) for each in sorted(wish.accounts)) if is_plain else ()
    base = HistoryQuery(users=users, queues=queues, ended_from=since, limit=EVERYTHING)
    queries = [base]
    if named:
        queries = [
            HistoryQuery(users=users, jobs=named, ended_from=since, limit=EVERYTHING),
            HistoryQuery(users=users, arrays=named, ended_from=since, limit=EVERYTHING),
        ]
    found: dict[JobId, JobView] = {}
    for query in queries:
        for ended in door.queries.history.jobs(door.caller, query).jobs:
            view = JobView(job=ended.job, started_at=ended.started_at, ended_at=ended.ended_at)
            if wish.accepts(view.job, state_of(view.job)):
                found[view.job.id] = view
    return [found[each] for each in sorted(found)]


def in_any_state(name: JobName) -> Filter:
    """What the name means, whatever has become of it."""
    return Filter(names=(name,), states=frozenset(State))


def parts_of(door: Door, job: int, index: int | None) -> dict[JobId, int | None]:
    """The jobs that `12` or `12_3` names, over or not, with their indices; as it is, if none."""
    live = door.queries.jobs.find(door.caller, JobId(job))
    if index is None and live is not None and live.spec.array is None:
        return {live.id: None}
    named = JobName(job=JobId(job), indices=None if index is None else frozenset({index}))
    wish = in_any_state(named)
    views = (*live_views(door, wish), *ended_views(door, wish, Instant(0)))
    parts = {view.job.id: view.job.spec.array for view in views} or {JobId(job): None}
    return {each: part and part.index for each, part in sorted(parts.items())}


def rows_of(door: Door, listing: Listing, views: Sequence[JobView]) -> list[JobRow]:
    """Rows that know their last attempt, if they are over, and what they run, if asked."""
    over = tuple(view.job.id for view in views if view.ended_at is not None)
    last: dict[JobId, Attempt] = {}
    for attempt in door.queries.history.attempts(door.caller, over) if over else ():
        last[attempt.job] = attempt
    launch_of = Launches(door, [view.job for view in views]).of
    rows = [JobRow(view, listing, last.get(view.job.id)) for view in views]
    for row in rows:
        row.launch_of = launch_of
    return rows


class Launches:
    """What jobs run: looked up for all of them when the first is asked for."""

    def __init__(self, door: Door, jobs: Sequence[Job]) -> None:
        self._door = door
        self._jobs = jobs
        self._known: dict[JobId, Launch] | None = None

    def of(self, job: Job) -> Launch | None:
        if self._known is None:
            self._known = self._door.queries.jobs.launches(self._door.caller, self._jobs)
        return self._known.get(job.id)


def _indices(text: str) -> frozenset[int] | None:
    found: set[int] = set()
    for each in text.partition("%")[0].split(","):
        match = _RANGE.fullmatch(each)
        if match is None:
            return None
        low, high, step = int(match[1]), int(match[2] or match[1]), int(match[3] or 1)
        if high - low > EVERYTHING:
            return None
        found |= set(range(low, high + 1, step or 1))
    return frozenset(found)
