"""`sacctmgr`: look at accounts, users and QOS, and change them."""

import shlex
from collections.abc import Callable, Sequence

from muster.controller.messages import SiteDiff
from muster.doors.slurm.call import Call, Door, Prompt, ReadScript, Reply, WriteFile, version
from muster.doors.slurm.control import console
from muster.doors.slurm.help import help_reply
from muster.doors.slurm.lists.listing import Listing
from muster.doors.slurm.managing import accounts, classes, users
from muster.doors.slurm.managing.edit import EditFacts, Editing
from muster.doors.slurm.managing.flatfile import HEAD, dumped
from muster.doors.slurm.managing.listing import listed
from muster.doors.slurm.managing.loading import loading
from muster.doors.slurm.managing.tables import Style
from muster.doors.slurm.managing.words import Words, meant, split, word_of
from muster.doors.slurm.submit.fleet import machines_of
from muster.doors.slurm.words.errors import SlurmError
from muster.doors.slurm.words.options import Manner, Parsed, parsed, table
from muster.model.errors import ForbiddenError
from muster.model.site import Site

NAME = "sacctmgr"
OPTIONS = table("""
    h:help i:immediate n:noheader o:oneliner p:parsable P:parsable2 Q:quiet r:readonly
    s:associations usage v:verbose V:version
""")
QUESTION = "Would you like to commit changes? (You have 30 seconds to decide)\n(N/y): "

FORBIDDEN = (
    "sacctmgr: error: Your user doesn't have privilege to perform this action",
    " Error with request: Access/permission denied",
)
_SOME = '"Account", "Cluster", "Coordinator", "Federation", "QOS", "Resource", or "User"'
NO_ENTITY = {
    "add": f"Input line must include {_SOME}",
    "delete": f"Input line must include {_SOME}",
    "modify": 'Input line must include "Account", "Cluster", "Federation", "Job", "QOS", '
    '"Resource" or "User"',
}

Making = Callable[[Words, EditFacts], Editing]
ENTITIES = {
    "Accounts": "account",
    "Coordinators": "coordinator",
    "QOS": "qos",
    "Users": "user",
    "Associations": "",
    "Clusters": "",
    "Federations": "",
    "Jobs": "",
    "Resources": "",
    "WCKeys": "",
}
MAKING: dict[tuple[str, str], Making] = {
    ("add", "Accounts"): accounts.adding,
    ("add", "Coordinators"): users.coordinating,
    ("add", "QOS"): classes.adding,
    ("add", "Users"): users.adding,
    ("modify", "Accounts"): accounts.modifying,
    ("modify", "QOS"): classes.modifying,
    ("modify", "Users"): users.modifying,
    ("delete", "Accounts"): accounts.deleting,
    ("delete", "Coordinators"): users.dismissing,
    ("delete", "QOS"): classes.deleting,
    ("delete", "Users"): users.deleting,
}
VERBS = {
    "add": "add",
    "create": "add",
    "modify": "modify",
    "update": "modify",
    "delete": "delete",
    "remove": "delete",
    "list": "list",
    "show": "list",
    "dump": "dump",
    "load": "load",
    "archive": "archive",
    "clear": "clear",
    "reconfigure": "nothing",
    "associations": "nothing",
    "oneliner": "nothing",
    "parsable": "nothing",
    "parsable2": "nothing",
    "quiet": "nothing",
    "readonly": "nothing",
    "verbose": "nothing",
    "exit": "nothing",
    "quit": "nothing",
    "shutdown": "shutdown",
    "version": "version",
    "help": "help",
}


def run(call: Call, door: Door) -> Reply:
    """Do what the first word says."""
    line = parsed(OPTIONS, call.argv, Manner(command=NAME))
    if line.has("version"):
        return version()
    if line.has("help") or line.has("usage"):
        return help_reply(NAME, OPTIONS, "[<OPTION>] [<COMMAND>]")
    if not line.rest:
        return console.answered(line, call, door, TALK)
    return obeyed(line.rest, line, call, door)


def obeyed(words: tuple[str, ...], line: Parsed, call: Call, door: Door) -> Reply:
    """Carry out one line."""
    word, *others = words
    verb = VERBS.get(meant(word, tuple(VERBS)) or "", "")
    if len(word) < 3 or not verb:
        raise SlurmError(f"invalid keyword: {word}")
    return ACTS.get(verb, _change)(others, line, call, door)


def _list(words: Sequence[str], line: Parsed, call: Call, door: Door) -> Reply:
    style = Style(
        header=not line.has("noheader"),
        bars=line.has("parsable") or line.has("parsable2"),
        bar_at_end=line.has("parsable") and not line.has("parsable2"),
    )
    return Reply(out=listed(words, style, call, door, apart=line.has("associations")))


def _change(words: Sequence[str], line: Parsed, call: Call, door: Door) -> Reply:
    """Add, modify or delete."""
    verb = VERBS[meant(line.rest[0], tuple(VERBS)) or ""]
    entity = meant(words[0], tuple(ENTITIES)) if words else None
    if entity is None:
        raise SlurmError(f"No valid entity in {verb} command", NO_ENTITY[verb])
    making = MAKING.get((verb, entity))
    if making is None:
        what = f"{verb} {entity.rstrip('s').lower()}"
        raise SlurmError(f"sacctmgr: error: {what} is not supported by Muster")
    asked = split(words[1:], first="set" if verb == "add" else "where")
    if verb == "modify" and not asked.where:
        raise SlurmError(" You didn't set any conditions with 'WHERE'.")
    return _committed(making(asked, _around(call, door)), line, call, door)


def _around(call: Call, door: Door) -> EditFacts:
    listing = Listing(call, door)
    return EditFacts(
        cluster=listing.cluster,
        nodes=dict(listing.nodes),
        models=machines_of(listing.nodes).models,
        jobs=lambda query: tuple(door.queries.jobs.matching(door.caller, query)),
    )


def _committed(editing: Editing, line: Parsed, call: Call, door: Door) -> Reply:
    """Make the change, at once with `-i`, else when the user agrees."""
    if line.has("readonly"):
        raise SlurmError("Can't run this command in readonly mode.")
    edit = editing(door.queries.site())
    shown = "".join(f"{text}\n" for text in edit.printed)
    notes = "".join(f"{text}\n" for text in edit.warned)
    if edit.code or edit.site == door.queries.site():
        # Who may change nothing is told that, and not what there was to change.
        _told_to(editing, door, dry_run=True)
        return Reply(out=shown, err=notes, code=edit.code)
    if line.has("immediate"):
        return Reply(out=shown, err=notes + _applied(editing, line, door))
    return _asked(editing, Reply(out=shown, err=notes), line, (call, door))


def _asked(editing: Editing, reply: Reply, line: Parsed, whom: tuple[Call, Door]) -> Reply:
    """Ask first, then look at the answer: the whole command comes again with it."""
    call, door = whom
    if "asked" not in call.memo:
        _told_to(editing, door, dry_run=True)
        return Reply(out=reply.out, err=reply.err, then=_question(QUESTION))
    if "late" in call.memo:
        return Reply(out="timeout\n Changes Discarded\n")
    letter = call.memo.get("typed", "n").strip()[:1].lower()
    if letter == "y":
        return Reply(err=_applied(editing, line, door))
    if letter in {"", "n"}:
        return Reply(out=" Changes Discarded\n")
    return Reply(out="Y or N please\n", then=_question("(N/y): "))


def _question(text: str) -> Prompt:
    return Prompt(text=text, memo={"asked": "yes"}, seconds=30)


def _applied(editing: Editing, line: Parsed, door: Door) -> str:
    """Change the rules; what should be thought of goes to stderr."""
    diff = _told_to(editing, door, detail=f"sacctmgr {shlex.join(line.rest)}")
    return "".join(f"sacctmgr: warning: {each}\n" for each in diff.cautions)


def _told_to(editing: Editing, door: Door, *, dry_run: bool = False, detail: str = "") -> SiteDiff:
    def change(site: Site) -> Site:
        return editing(site).site

    asked = door.service.apply(door.caller, change, dry_run=dry_run, describe=lambda _: detail)
    try:
        return asked.result()
    except ForbiddenError as error:
        raise SlurmError(*FORBIDDEN) from error


def _dump(words: Sequence[str], line: Parsed, call: Call, door: Door) -> Reply:
    """Write what there is into a file of the user's."""
    if "written" in call.memo:
        return Reply()
    listing = Listing(call, door)
    given = [word_of(word) for word in words]
    named = {meant(word.name, ("Cluster", "File")): word.value for word in given if word.sign}
    bare = next((word.name for word in given if not word.sign), "")
    cluster = named.get("Cluster", bare)
    if not cluster:
        raise SlurmError(" We need a cluster to dump.")
    if cluster not in {listing.cluster, *listing.clusters}:
        raise SlurmError(f" Cluster {cluster} doesn't exist.")
    file = named.get("File", f"./{cluster}.cfg")
    out = "" if "File" in named else f" No filename given, using {file}.\n"
    around = _around(call, door)
    found = dumped(listing.site, around.cluster, around.nodes)
    notes = "" if line.has("quiet") else "".join(f"sacctmgr: {text}\n" for text in found)
    text = HEAD + "".join(f"{each}\n" for each in found)
    return Reply(out=out, err=notes, then=WriteFile(file=file, text=text, memo={"written": file}))


def _load(words: Sequence[str], line: Parsed, call: Call, door: Door) -> Reply:
    """Read a file of the user's, and let the rules be so."""
    given = [word_of(word) for word in words]
    files = [word.value for word in given if meant(word.name, ("File",)) and word.sign]
    files += [word.name for word in given if not word.sign and word.name.lower() != "clean"]
    if not files:
        raise SlurmError(" No filename given, specify one with file=''")
    if call.script is None or call.script.name != files[0]:
        missing = f'Unable to read "{files[0]}"'
        return Reply(then=ReadScript(file=files[0], otherwise=missing))
    clean = any(word.name.lower() == "clean" for word in given)
    around = _around(call, door)
    return _committed(loading(call.script.text, around, clean=clean), line, call, door)


def _archive(_words: Sequence[str], _line: Parsed, _call: Call, _door: Door) -> Reply:
    raise SlurmError(
        "sacctmgr: error: archive is not supported by Muster; "
        "history.keep in cluster.yaml says how long jobs are remembered"
    )


def _clear(_words: Sequence[str], _line: Parsed, _call: Call, door: Door) -> Reply:
    door.queries.status.reset_counts(door.caller)
    door.traffic.reset()
    return Reply()


def _shutdown(_words: Sequence[str], _line: Parsed, _call: Call, _door: Door) -> Reply:
    raise SlurmError("sacctmgr: error: shutdown is not supported by Muster; use: muster down")


def _nothing(_words: Sequence[str], _line: Parsed, _call: Call, _door: Door) -> Reply:
    return Reply()


def _version(_words: Sequence[str], _line: Parsed, _call: Call, _door: Door) -> Reply:
    return version()


def _help(_words: Sequence[str], _line: Parsed, _call: Call, _door: Door) -> Reply:
    return help_reply(NAME, OPTIONS, "[<OPTION>] [<COMMAND>]")


ACTS: dict[str, Callable[[Sequence[str], Parsed, Call, Door], Reply]] = {
    "list": _list,
    "dump": _dump,
    "load": _load,
    "archive": _archive,
    "clear": _clear,
    "shutdown": _shutdown,
    "nothing": _nothing,
    "version": _version,
    "help": _help,
}

TALK = console.Talk(
    prompt="sacctmgr: ",
    obey=obeyed,
    switches=frozenset(
        "associations immediate oneliner parsable parsable2 quiet readonly verbose".split()
    ),
)
