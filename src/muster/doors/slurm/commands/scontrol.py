"""`scontrol`: look at everything, and change it."""

from collections.abc import Callable

from muster.doors.slurm import changing, showing_list
from muster.doors.slurm.call import Call, Door, Reply, version
from muster.doors.slurm.helping import help_reply
from muster.doors.slurm.options import Manner, parsed, table
from muster.doors.slurm.trouble import SlurmError

NAME = "scontrol"
OPTIONS = table("""
    a:all M:cluster= clusters= d:details federation F:future h:help hide local o:oneliner Q:quiet
    sibling u:uid= usage v:verbose V:version
""")

Act = Callable[[tuple[str, ...], Call, Door], Reply]


def run(call: Call, door: Door) -> Reply:
    """Do what the first word says."""
    line = parsed(OPTIONS, call.argv, Manner(command=NAME))
    if line.has("version"):
        return version()
    if line.has("help") or line.has("usage"):
        return help_reply(NAME, OPTIONS, "[<OPTION>] [<COMMAND>]")
    if not line.rest:
        raise SlurmError("scontrol: error: the interactive mode is not supported by Muster")
    word, *others = line.rest
    name = _meant(word.lower())
    if name == "show":
        return showing_list.shown(tuple(others), line, call, door)
    return ACTS[name](tuple(others), call, door)


def _meant(word: str) -> str:
    """By its name or by its beginning; the first in the table if several begin so."""
    if word in ACTS or word == "show":
        return word
    near = [name for name in (*ACTS, "show") if name.startswith(word) and len(word) > 2]
    if not near:
        raise SlurmError(f"invalid keyword: {word}")
    return near[0]


def _ping(_words: tuple[str, ...], call: Call, _door: Door) -> Reply:
    return Reply(out=f"Slurmctld(primary) at {call.host} is UP\n")


def _version(_words: tuple[str, ...], _call: Call, _door: Door) -> Reply:
    return version()


def _nothing(_words: tuple[str, ...], _call: Call, _door: Door) -> Reply:
    return Reply()


ACTS: dict[str, Act] = {
    "hold": changing.moves("hold"),
    "holdu": changing.moves("hold"),
    "uhold": changing.moves("hold"),
    "release": changing.moves("release"),
    "requeue": changing.moves("requeue"),
    "requeuehold": changing.moves("requeuehold"),
    "suspend": changing.moves("suspend"),
    "resume": changing.moves("resume"),
    "update": changing.update,
    "write": showing_list.write_script,
    "ping": _ping,
    "version": _version,
    "reconfigure": _nothing,
}
