"""`scontrol`: look at everything, and change it."""

import dataclasses

from muster.controller.messages import Caller
from muster.doors.slurm.call import Call, Door, Reply, version
from muster.doors.slurm.clusters import demand_here
from muster.doors.slurm.control import console, keywords
from muster.doors.slurm.control.keywords import obeyed
from muster.doors.slurm.help import help_reply
from muster.doors.slurm.lists.listing import Listing
from muster.doors.slurm.words.errors import SlurmError
from muster.doors.slurm.words.options import Manner, Parsed, parsed, table
from muster.doors.slurm.words.users import user_of
from muster.model.value import UserName, replace

NAME = "scontrol"
OPTIONS = table("""
    a:all M:cluster= clusters= d:details federation F:future h:help hide local o:oneliner Q:quiet
    sibling u:uid= usage v:verbose V:version
""")


def run(call: Call, door: Door) -> Reply:
    """Do what the first word says; without any, ask for words until there are no more."""
    line = parsed(OPTIONS, call.argv, Manner(command=NAME))
    if line.has("version"):
        return version()
    if line.has("help") or line.has("usage"):
        shown = help_reply(NAME, OPTIONS, "[<OPTION>] [<COMMAND>]")
        words = "".join(f"  {each.name}\n" for each in keywords.KEYWORDS)
        return Reply(out=f"{shown.out}\nValid <COMMAND> values are:\n{words}")
    demand_here(NAME, line.words("cluster", "clusters"), Listing(call, door))
    door = _for_whom(line, door)
    if not line.rest:
        return console.answered(line, call, door, TALK)
    if not line.has("quiet"):
        return obeyed(line.rest, line, call, door)
    try:
        return replace(obeyed(line.rest, line, call, door), err="")
    except SlurmError as error:
        return Reply(code=error.code)


def _for_whom(line: Parsed, door: Door) -> Door:
    """--uid: root acts as another user; for others it must be themselves."""
    text = line.value("uid")
    user = UserName(user_of(text)) if text is not None else door.caller.user
    if user == door.caller.user:
        return door
    if not door.caller.root:
        raise SlurmError("scontrol: error: Access/permission denied")
    return dataclasses.replace(door, caller=Caller(user=user, door=door.caller.door))


TALK = console.Talk(
    prompt="scontrol: ",
    obey=obeyed,
    switches=frozenset({"all", "details", "hide", "oneliner", "quiet", "verbose"}),
)
