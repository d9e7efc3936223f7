"""What a call of sacct asks for: which jobs, and when; and how it says that something is wrong."""

import grp
import pwd
import re
from datetime import datetime
from typing import TypeVar

from muster.doors.slurm.accounting.records import AcctJob, AcctRow, RecordKind
from muster.doors.slurm.accounting.values import cpus, nodes, reason
from muster.doors.slurm.accounting.window import ACCOUNTED, Window
from muster.doors.slurm.call import Call, Door
from muster.doors.slurm.lists import jobs
from muster.doors.slurm.lists.filters import JobName, job_name, split_ids
from muster.doors.slurm.words import times
from muster.doors.slurm.words.errors import SlurmError
from muster.doors.slurm.words.hostlist import expanded
from muster.doors.slurm.words.options import Parsed
from muster.doors.slurm.words.states import WORDS, State
from muster.doors.slurm.words.users import group_of, user_of
from muster.model.site import Site
from muster.model.value import DAY, Duration, Instant, Value

T = TypeVar("T")

FLAGS = ("SchedSubmit", "SchedMain", "SchedBackfill")
_STEP = re.compile(r"batch|extern|interactive|[0-9]{1,10}")
_RANGE = re.compile(r"([0-9]{1,9})(?:-([0-9]{1,9}))?")

Range = tuple[int, int]


class RecordFilter(Value):
    """Everything that is given must hold for a record."""

    window: Window
    names: tuple[JobName, ...] = ()
    users: frozenset[str] = frozenset()
    groups: frozenset[int] = frozenset()
    accounts: frozenset[str] = frozenset()
    qos: frozenset[str] = frozenset()
    job_names: frozenset[str] = frozenset()
    partitions: frozenset[str] = frozenset()
    nodes: frozenset[str] = frozenset()
    wckeys: frozenset[str] = frozenset()
    constraints: frozenset[str] = frozenset()
    reasons: frozenset[str] = frozenset()
    flags: frozenset[str] = frozenset()
    node_count: Range | None = None
    cpu_count: Range | None = None
    limit: tuple[Duration, Duration] | None = None

    def has(self, record: AcctJob) -> bool:
        """Is the record asked for?"""
        return self.window.has(record) and self._is_theirs(record) and self._is_so(record)

    def _is_theirs(self, record: AcctJob) -> bool:
        row, spec = record.row, record.job.spec
        tests = (
            not self.groups or group_of(spec.user)[1] in self.groups,
            not self.partitions or jobs.partition(row) in self.partitions,
            not self.nodes or not self.nodes.isdisjoint(jobs.nodes(row)),
            not self.wckeys or row.label("wckey") in self.wckeys,
            not self.constraints or self.constraints <= _features(record),
            not self.flags or (record.started_at is not None and "SchedMain" in self.flags),
            not self.names or any(_means(name, record) for name in self.names),
        )
        return all(tests)

    def _is_so(self, record: AcctJob) -> bool:
        if not (self.reasons or self.node_count or self.cpu_count or self.limit):
            return True
        acct = AcctRow(record, RecordKind.JOB)
        allowed = jobs.time_limit(record.row)
        tests = (
            not self.reasons or reason(acct) in self.reasons,
            self.node_count is None or _within(len(nodes(acct)), self.node_count),
            self.cpu_count is None or _within(cpus(acct), self.cpu_count),
            self.limit is None or (allowed is not None and _within(allowed, self.limit)),
        )
        return all(tests)

    def shows(self, acct: AcctRow) -> bool:
        """Is this row of a record asked for? Who names steps wants them alone."""
        wanted = [name for name in self.names if _means(name, acct.record)]
        if not wanted or any(name.step is None for name in wanted):
            return True
        return acct.name in {name.step for name in wanted}


def asked(line: Parsed, call: Call, door: Door) -> RecordFilter:
    """Read it; SlurmError says what is wrong as sacct does."""
    site = door.queries.site()
    names = _names(line)
    return RecordFilter(
        window=_window(line, call, door, named=bool(names)),
        names=names,
        users=_users(line, door, site, named=bool(names)),
        groups=frozenset(_gid(word) for word in line.words("gid", "group")),
        accounts=frozenset(line.words("accounts")),
        qos=_qos(line, site),
        job_names=frozenset(line.words("name")),
        partitions=frozenset(line.words("partition")),
        nodes=frozenset(expanded(line.value("nodelist") or "")),
        wckeys=frozenset(line.words("wckeys")),
        constraints=frozenset(line.words("constraints")),
        reasons=frozenset(line.words("reason")),
        flags=_flags(line),
        node_count=_range(line.value("nnodes"), "node"),
        cpu_count=_range(line.value("ncpus"), "cpu"),
        limit=_limit(line),
    )


def _means(name: JobName, record: AcctJob) -> bool:
    if name.component not in {None, record.component or 0}:
        return False
    return name.means(record.job)


def _features(record: AcctJob) -> frozenset[str]:
    return frozenset(re.split(r"[&|,\[\]*() ]+", record.row.label("features") or ""))


def _within(count: int, bounds: tuple[int, int]) -> bool:
    return bounds[0] <= count <= bounds[1]


def _names(line: Parsed) -> tuple[JobName, ...]:
    found: list[JobName] = []
    for text in (each for value in line.values("jobs") for each in split_ids(value)):
        name = job_name(text) if text == text.strip() else None
        before = text.partition(".")[0]
        if name is None and "." in text and job_name(before) is not None:
            raise SlurmError(f"sacct: fatal: Bad step specified: {before}")
        if name is None:
            raise SlurmError(f"sacct: fatal: Bad job/step specified: {text}")
        if name.step is not None and _STEP.fullmatch(name.step) is None:
            raise SlurmError(f"sacct: fatal: Bad step specified: {before}")
        found.append(name)
    return tuple(found)


def _users(line: Parsed, door: Door, site: Site, *, named: bool) -> frozenset[str]:
    """The caller's own jobs by default; jobs that are named may belong to any user."""
    words = line.words("user", "uid")
    users = frozenset(user_of(word) for word in words if word != "-1")
    for word in sorted(users):
        if not word.isdecimal() and word not in site.users and not _is_user(word):
            raise SlurmError(f"sacct: error: Invalid user id: {word}")
    sees_all = line.has("allusers") or "-1" in words or door.caller.user == "root" or named
    if users or sees_all:
        return users
    return frozenset({door.caller.user})


def _is_user(name: str) -> bool:
    try:
        pwd.getpwnam(name)
    except KeyError:
        return False
    return True


def _gid(word: str) -> int:
    if word.isdecimal():
        return int(word)
    try:
        return grp.getgrnam(word).gr_gid
    except KeyError:
        raise SlurmError(f"sacct: error: Invalid group id: {word}") from None


def _qos(line: Parsed, site: Site) -> frozenset[str]:
    words = line.words("qos")
    for word in words:
        if word not in site.classes:
            valid = ",".join(sorted(site.classes))
            raise SlurmError(
                f"sacct: error: You gave a bad qos '{word}'. Valid QOS's are {valid}",
                "sacct: fatal: problem processing qos list",
            )
    return frozenset(words)


def _flags(line: Parsed) -> frozenset[str]:
    known = {flag.lower(): flag for flag in FLAGS}
    for word in line.words("flags"):
        if word.lower() not in known:
            raise SlurmError(f"sacct: error: str_2_job_flags: Invalid job flag {word}")
    return frozenset(known[word.lower()] for word in line.words("flags"))


def _range(text: str | None, what: str) -> Range | None:
    """`2`, `2-4`."""
    if text is None:
        return None
    found = _RANGE.fullmatch(text)
    if found is None:
        raise SlurmError(
            f'sacct: error: Invalid numeric value "{text}" for requested {what} range.'
        )
    return int(found[1]), int(found[2] or found[1])


def _limit(line: Parsed) -> tuple[Duration, Duration] | None:
    """The most alone means nothing, says Slurm."""
    least = _time_limit(line.value("timelimit-min"))
    most = _time_limit(line.value("timelimit-max"))
    if least is None:
        return None
    return least, least if most is None else most


def _time_limit(text: str | None) -> Duration | None:
    if text is None:
        return None
    try:
        found = times.limit(text)
    except times.BadTimeError as bad:
        raise SlurmError("sacct: fatal: Invalid time limit specification") from bad
    return Duration(36_500 * DAY) if found is None else found


def _window(line: Parsed, call: Call, door: Door, *, named: bool) -> Window:
    """Today, unless a time, states or jobs are given."""
    states = _states(line)
    since = _instant(line, "starttime", call, door)
    until = _instant(line, "endtime", call, door)
    if until is None:
        until = since if states and since is not None else door.now
    if since is None:
        since = _usual_start(call, door, named=named, has_states=bool(states))
    if since > until:
        raise SlurmError(
            f"sacct: error: Start time ({times.instant_text(since, zone=call.zone)}) requested "
            f"is after end time ({times.instant_text(until, zone=call.zone)})."
        )
    return Window(since=since, until=until, states=states, named=named)


def _usual_start(call: Call, door: Door, *, named: bool, has_states: bool) -> Instant:
    if named:
        return Instant(0)
    if has_states:
        return door.now
    local = datetime.fromtimestamp(door.now / 1_000, call.zone).astimezone(call.zone)
    midnight = local.replace(hour=0, minute=0, second=0, microsecond=0)
    return Instant(int(midnight.timestamp()) * 1_000)


def _states(line: Parsed) -> frozenset[State]:
    found: set[State] = set()
    for word in line.words("state"):
        state = WORDS.get(word.lower())
        if state is None:
            raise SlurmError(f"sacct: fatal: unrecognized job state value '{word}'")
        if state not in ACCOUNTED:
            raise SlurmError(f"sacct: fatal: job state {word} is not supported / accounted")
        found.add(state)
    return frozenset(found)


def _instant(line: Parsed, option: str, call: Call, door: Door) -> Instant | None:
    text = line.value(option)
    if not text:
        return None
    try:
        return times.past_instant(text, door.now, call.zone)
    except times.BadTimeError as bad:
        raise SlurmError(f"Invalid time specification (pos={bad.place}): {text}") from bad
