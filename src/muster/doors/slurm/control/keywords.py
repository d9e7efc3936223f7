"""The keywords of scontrol: how short they may be written, how many words follow, what they do."""

import os
from collections.abc import Callable

from muster.doors.slurm.call import Again, Call, Door, Reply, version
from muster.doors.slurm.control import job_verbs, output, reservations, show, update
from muster.doors.slurm.lists.filters import Filter, in_any_state, job_name, live_views
from muster.doors.slurm.lists.listing import Listing
from muster.doors.slurm.permissions import STRANGER, demand_admin
from muster.doors.slurm.words.errors import NUMBERS, SlurmError
from muster.doors.slurm.words.options import Parsed
from muster.doors.slurm.words.pairs import words_of
from muster.doors.slurm.words.states import State
from muster.model.job import JobState
from muster.model.value import DAY, Duration, UserName, Value

LOOK_AGAIN_MS = 300

Act = Callable[[tuple[str, ...], Parsed, Call, Door], Reply]


class Keyword(Value):
    """letters: how many of them are enough. least and most: words behind it."""

    name: str
    act: Act
    letters: int = 3
    least: int = 0
    most: int | None = None


def obeyed(words: tuple[str, ...], line: Parsed, call: Call, door: Door) -> Reply:
    """Do what the first word says with the others."""
    keyword = _meant(words[0])
    rest = words[1:]
    if len(rest) < keyword.least:
        raise SlurmError(_few(keyword.name))
    if keyword.most is not None and len(rest) > keyword.most:
        raise SlurmError(f"too many arguments for keyword:{words[0]}")
    return keyword.act(rest, line, call, door)


def _meant(word: str) -> Keyword:
    """By its name or by a beginning that is long enough; the first in the table counts."""
    name = word.lower()
    for keyword in KEYWORDS:
        if keyword.name == name:
            return keyword
    for keyword in KEYWORDS:
        if keyword.name.startswith(name) and len(name) >= keyword.letters:
            return keyword
    raise SlurmError(f"invalid keyword: {word}")


def _few(name: str) -> str:
    if name in {"create", "update", "delete"}:
        return f"too few arguments for {name} keyword"
    if name == "errnumstr":
        return "one arguments required for keyword:errnumstr"
    if name == "pidinfo":
        return "missing argument for keyword:pidinfo"
    return f"too few arguments for keyword:{name}"


def _ping(_words: tuple[str, ...], _line: Parsed, call: Call, _door: Door) -> Reply:
    return Reply(out=f"Slurmctld(primary) at {call.host} is UP\n")


def _version(_words: tuple[str, ...], _line: Parsed, _call: Call, _door: Door) -> Reply:
    return version()


def _nothing(_words: tuple[str, ...], _line: Parsed, _call: Call, _door: Door) -> Reply:
    """Means something only in interactive mode, or is always so here."""
    return Reply()


def _admins(denied: str, act: Act) -> Act:
    """For administrators alone."""

    def demanding(words: tuple[str, ...], line: Parsed, call: Call, door: Door) -> Reply:
        demand_admin(door, denied)
        return act(words, line, call, door)

    return demanding


def _warned(what: str) -> Act:
    """Accepted, and has no counterpart: said aloud."""

    def act(_words: tuple[str, ...], _line: Parsed, _call: Call, _door: Door) -> Reply:
        return Reply(err=f"scontrol: warning: {what} is ignored by Muster\n")

    return act


def _rebooted(words: tuple[str, ...], _line: Parsed, _call: Call, _door: Door) -> Reply:
    if not words:
        raise SlurmError("Missing node list. Specify ALL|<NodeList>")
    raise SlurmError(
        "scontrol: error: RebootProgram isn't defined",
        "scontrol_reboot_nodes error: Unspecified error",
    )


def _refused(*lines: str) -> Act:
    def act(_words: tuple[str, ...], _line: Parsed, _call: Call, _door: Door) -> Reply:
        raise SlurmError(*lines)

    return act


def _help(_words: tuple[str, ...], _line: Parsed, _call: Call, _door: Door) -> Reply:
    return Reply(out="".join(f"{each.name}\n" for each in KEYWORDS))


def _cluster(words: tuple[str, ...], _line: Parsed, call: Call, door: Door) -> Reply:
    listing = Listing(call, door)
    if words and words[0] not in {listing.cluster, *listing.clusters}:
        raise SlurmError(f"scontrol: error: No cluster '{words[0]}' known by database.")
    return Reply()


def _completing(_words: tuple[str, ...], _line: Parsed, _call: Call, door: Door) -> Reply:
    """Jobs that end, with the nodes that they still hold."""
    views = live_views(door, Filter(states=frozenset({State.COMPLETING})))
    lines = [f"JobId={view.job.id} {_held_nodes(view.allocation)}" for view in views]
    return Reply(out="".join(f"{line}\n" for line in lines))


def _held_nodes(held: "show.Held") -> str:
    names = show.node_names(held)
    return f"Nodes(COMPLETING)={names}" if names else ""


def _number(words: tuple[str, ...], _line: Parsed, _call: Call, _door: Door) -> Reply:
    if not words[0].isdecimal():
        raise SlurmError("numeric arguments required for keyword:errnumstr")
    number = int(words[0])
    messages = NUMBERS.get(number) or os.strerror(min(number, 2**31 - 1))
    return Reply(out=f"{messages}\n")


def _wait_job(words: tuple[str, ...], _line: Parsed, _call: Call, door: Door) -> Reply:
    """Until its nodes can be used: here, until it runs."""
    name = job_name(words[0])
    views = [] if name is None else live_views(door, in_any_state(name))
    if not views:
        is_over = name is not None and job_verbs.absent(name, door) == job_verbs.FINISHED
        messages = (
            f"Job {words[0]} no longer running" if is_over else f"Problem running job {words[0]}"
        )
        raise SlurmError(f"scontrol: {messages}")
    if any(view.job.state in _NOT_YET for view in views):
        return Reply(then=Again(memo={"waits": words[0]}, after_ms=LOOK_AGAIN_MS))
    return Reply(err=f"scontrol: Nodes are ready for job {words[0]}\n")


_NOT_YET = frozenset({JobState.PENDING, JobState.HELD, JobState.STARTING})


def _level(words: tuple[str, ...], _line: Parsed, _call: Call, _door: Door) -> Reply:
    if words[0].lower() not in _LEVELS and not words[0].isdecimal():
        raise SlurmError(f"invalid debug level: {words[0]}")
    return Reply(err="scontrol: warning: setdebug is ignored by Muster\n")


_LEVELS = frozenset("quiet fatal error info verbose debug debug2 debug3 debug4 debug5".split())


def _token(words: tuple[str, ...], _line: Parsed, _call: Call, door: Door) -> Reply:
    """A token of Muster's: what REST and Slurm's own REST clients send."""
    given = {pair.name: pair.value for pair in words_of(words)}
    user = UserName(given.get("username") or door.caller.user)
    span = given.get("lifespan", "1800").lower()
    if span not in {"infinite", "unlimited"} and not (span.isdecimal() and int(span)):
        raise SlurmError("Error fetching token")
    lifetime = Duration(int(span) * 1_000) if span.isdecimal() else Duration(10 * 365 * DAY)
    return Reply(out=f"SLURM_JWT={output.new_token(door, user, lifetime)}\n")


_OVER = "slurm_shutdown error: Access/permission denied; stop Muster itself: muster down"

KEYWORDS = (
    Keyword(
        name="abort",
        act=_admins(f"slurm_shutdown error: {STRANGER}", _refused(_OVER)),
        letters=5,
        most=0,
    ),
    Keyword(name="all", act=_nothing, letters=2),
    Keyword(name="cancel_reboot", act=_refused("slurm_update error: Invalid node state specified")),
    Keyword(name="completing", act=_completing, letters=2, most=0),
    Keyword(name="cluster", act=_cluster, letters=2, most=1),
    Keyword(name="create", act=reservations.create, letters=2, least=1),
    Keyword(name="delete", act=reservations.delete, letters=1, least=1),
    Keyword(name="details", act=_nothing, letters=2),
    Keyword(name="errnumstr", act=_number, letters=2, least=1, most=1),
    Keyword(name="exit", act=_nothing, letters=2),
    Keyword(name="fsdampeningfactor", act=_warned("fsdampeningfactor"), least=1, most=1),
    Keyword(name="help", act=_help, letters=2),
    Keyword(name="hide", act=_nothing, letters=2),
    Keyword(name="hold", act=job_verbs.moves("hold"), letters=4, least=1),
    Keyword(name="holdu", act=job_verbs.moves("uhold"), letters=5, least=1),
    Keyword(name="listpids", act=show.pids, letters=1, most=2),
    Keyword(name="notify", act=output.notify, letters=1, least=2),
    Keyword(name="oneliner", act=_nothing, letters=1),
    Keyword(name="pidinfo", act=show.pid, least=1, most=1),
    Keyword(name="ping", act=_ping, most=0),
    Keyword(name="quiet", act=_nothing, letters=4),
    Keyword(name="quit", act=_nothing, letters=4),
    Keyword(
        name="reboot",
        act=_rebooted,
    ),
    Keyword(
        name="reconfigure",
        act=_admins(f"slurm_reconfigure error: {STRANGER}", _nothing),
    ),
    Keyword(name="release", act=job_verbs.moves("release"), least=1),
    Keyword(name="requeue", act=job_verbs.moves("requeue"), least=1),
    Keyword(name="requeuehold", act=job_verbs.moves("requeuehold"), letters=8, least=1),
    Keyword(name="resume", act=job_verbs.moves("resume"), least=1),
    Keyword(
        name="schedloglevel",
        act=_refused("slurm_set_schedlog_level error: Requested operation is presently disabled"),
        least=1,
        most=1,
    ),
    Keyword(
        name="setdebug",
        act=_admins("slurm_set_debug_level error: Permission denied", _level),
        letters=2,
        least=1,
        most=2,
    ),
    Keyword(
        name="setdebugflags",
        act=_admins("slurm_set_debug_flags error: Permission denied", _warned("setdebugflags")),
        letters=9,
        least=1,
    ),
    Keyword(name="show", act=show.shown, least=1),
    Keyword(
        name="shutdown",
        act=_admins(f"slurm_shutdown error: {STRANGER}", _refused(_OVER)),
        letters=8,
        most=1,
    ),
    Keyword(name="suspend", act=job_verbs.moves("suspend"), letters=2, least=1),
    Keyword(
        name="takeover",
        act=_refused("slurm_takeover error: Muster chooses its own leader"),
        letters=8,
        most=1,
    ),
    Keyword(name="top", act=job_verbs.top, least=1),
    Keyword(name="token", act=_token),
    Keyword(name="uhold", act=job_verbs.moves("uhold"), letters=2, least=1),
    Keyword(name="update", act=update.update, letters=1, least=1),
    Keyword(name="verbose", act=_nothing, letters=4),
    Keyword(name="version", act=_version, letters=4, most=0),
    Keyword(name="wait_job", act=_wait_job, letters=2, least=1, most=1),
    Keyword(name="write", act=output.write, letters=5, least=1),
)
"""In the order in which a beginning is looked for."""
