"""`sinfo`: partitions and nodes."""

from collections.abc import Callable

from muster.doors.slurm import clusters
from muster.doors.slurm.call import Again, Call, Door, Reply, lines, version
from muster.doors.slurm.control.show_reservations import table as reservations
from muster.doors.slurm.help import help_reply
from muster.doors.slurm.lists.jobs import by_number
from muster.doors.slurm.lists.listing import Listing
from muster.doors.slurm.lists.node_json import nodes_json
from muster.doors.slurm.lists.node_rows import NodeGroup, NodeRow, grouped, node_rows
from muster.doors.slurm.lists.sinfo_fields import LETTERS, NAMES, NAMES_OF_ONE_NODE, OF_ONE_NODE
from muster.doors.slurm.words import times
from muster.doors.slurm.words.errors import SlurmError, failed
from muster.doors.slurm.words.formats import (
    Field,
    Form,
    keys_of,
    known,
    long_form,
    rendered,
    short_form,
)
from muster.doors.slurm.words.hostlist import expanded
from muster.doors.slurm.words.options import Manner, Parsed, parsed, table

NAME = "sinfo"
OPTIONS = table("""
    O:Format= N:Node a:all M:cluster= clusters= d:dead e:exact federation o:format= help hide
    i:iterate= json R:list-reasons local l:long n:nodes= noconvert h:noheader p:partition=
    T:reservation r:responding S:sort= t:states= s:summarize usage v:verbose V:version yaml
""")
USAGE = """\
Usage: sinfo [-abdelNRrsTv] [-i seconds] [-t states] [-p partition] [-n nodes]
             [-S fields] [-o format] [-O Format] [--federation] [--local]
"""

DEFAULT = "%9P %.5a %.10l %.6D %.6t %N"
LONG = "%9P %.5a %.10l %.10s %.4r %.8h %.10g %.6D %.11T %N"
BY_NODE = "%N %.6D %.9P %6t"
BY_NODE_LONG = "%N %.6D %.9P %.11T %4c %.8z %.6m %.8d %.6w %.8f %20E"
SUMMARY = "%9P %.5a %.10l %.16F %N"
REASONS = "%20E %9u %19H %N"
REASONS_LONG = "%20E %12U %19H %6t %N"
ALL = "|".join(f"%{letter}" for letter in "abcdefghlmnoprstuvwz") + "".join(
    f"|%{letter} " for letter in "ABCDEFGHILMNOPRSTUVXYZ"
)
"""What `-O all` stands for: Slurm has blanks after the capital letters."""

LEAST_NAME_WIDTH = 9

VALID = (
    "unknown,down,idle,allocated,?,mixed,future,drain,drained,draining,no_respond,reserved,perfctrs,"
    "cloud,completing,powering_down,powered_down,power_down,powering_up,fail,maint,reboot,reboot^,"
    "unknown"
)
MEANT = {
    "alloc": {"allocated", "mixed"},
    "allocated": {"allocated", "mixed"},
    "mix": {"mixed"},
    "mixed": {"mixed"},
    "idle": {"idle"},
    "down": {"down"},
    "drain": {"drained", "draining"},
    "drained": {"drained"},
    "draining": {"draining"},
    "drng": {"draining"},
    "reserved": {"reserved"},
    "resv": {"reserved"},
    "maint": {"maint"},
    "all": {"allocated", "mixed", "idle", "reserved", "maint", "down", "drained", "draining"},
}
NEVER_HERE = frozenset(
    "unknown future no_respond perfctrs cloud completing comp powering_down "
    "powered_down power_down powering_up fail reboot reboot^ unk futr npc".split()
)


def run(call: Call, door: Door) -> Reply:
    """Show what there is."""
    line = parsed(OPTIONS, call.argv, Manner(command=NAME))
    if line.has("version"):
        return version()
    if line.has("usage"):
        return Reply(out=USAGE)
    if line.has("help"):
        return help_reply(NAME, OPTIONS)
    if line.has("yaml"):
        raise failed(NAME, "--yaml is not supported by Muster")
    every_s = _iterated(line)
    reply = _shown(line, call, door)
    if every_s is None:
        return reply
    then = Again(memo=call.memo, after_ms=every_s * 1_000)
    return Reply(out=f"{reply.out}\n", err=reply.err, then=then)


def _iterated(line: Parsed) -> int | None:
    text = line.value("iterate")
    if text is None:
        return None
    if not text.isdecimal() or not int(text):
        raise failed(NAME, f"Error: invalid entry for --iterate={text}")
    return int(text)


def _shown(line: Parsed, call: Call, door: Door) -> Reply:
    listing = Listing(call, door)
    above = clusters.heading(
        clusters.named(NAME, line, listing.clusters), header=not line.has("noheader")
    )
    rows = [row for row in node_rows(listing) if _is_meant(row, line)]
    if line.has("json"):
        return Reply(out=nodes_json(rows))
    if line.has("reservation"):
        return Reply(out=reservations(listing, header=not line.has("noheader")))
    if (line.has("long") or line.has("iterate")) and not line.has("noheader"):
        above.append(times.heading_text(listing.now, call.zone))
    shown, warned = _table(line, call, rows, listing)
    return Reply(out=lines([*above, *shown]), err=warned)


def _table(
    line: Parsed, call: Call, rows: list[NodeRow], listing: Listing
) -> tuple[list[str], str]:
    """The lines, and what is wrong with the format."""
    by_name = line.value("Format")
    if by_name == "all":
        by_name = None
    form = short_form(_format(line, call, rows)) if by_name is None else long_form(by_name)
    fields: dict[str, Field[NodeGroup]] = LETTERS if by_name is None else NAMES
    form, lost = known(form, fields)
    begin = "" if by_name is None else "sinfo: error: "
    what = "node" if by_name is None else "job"
    warned = "".join(f"{begin}Invalid {what} format specification: {each}\n" for each in lost)
    groups = _groups(line, call, (form, fields), (rows, listing))
    return list(rendered(form, fields, groups, header=not line.has("noheader"))), warned


def _groups(
    line: Parsed,
    call: Call,
    shown: tuple[Form, dict[str, Field[NodeGroup]]],
    there: tuple[list[NodeRow], Listing],
) -> list[NodeGroup]:
    form, fields = shown
    rows, listing = there
    apart = line.has("Node")
    single = OF_ONE_NODE | NAMES_OF_ONE_NODE
    used = [column.field for column in form.columns if column.field in single]

    def key(row: NodeRow) -> tuple[str, ...]:
        if apart:
            return (row.node.id,)
        if row.node.pool not in listing.pools:
            return ()
        alone = NodeGroup(listing.pools[row.node.pool], (row,), listing)
        return tuple(fields[each].get(alone) for each in used)

    groups = grouped(listing, rows, key)
    wanted = set(line.words("partition") or call.env.get("SINFO_PARTITION", "").split(","))
    groups = [group for group in groups if wanted == {""} or group.pool.name in wanted]
    if apart or line.has("list-reasons"):
        groups = [group for group in groups if group.rows]
    if line.has("list-reasons"):
        groups = [group for group in groups if not group.rows[0].takes_work]
    if apart:
        groups.sort(key=lambda group: by_number(group.rows[0].node.id))
    return _sorted(groups, line.value("sort") or call.env.get("SINFO_SORT") or "")


def _sorted(groups: list[NodeGroup], order: str) -> list[NodeGroup]:
    """By each key in turn, the least important first; what is no key is passed over."""
    for letter, downwards in keys_of(order):
        if letter in LETTERS:
            groups.sort(key=_sort_key(letter), reverse=downwards)
    return groups


def _sort_key(letter: str) -> Callable[[NodeGroup], tuple[str, int, str]]:
    get = LETTERS[letter].get
    return lambda group: by_number(get(group).rstrip("+*"))


def _format(line: Parsed, call: Call, rows: list[NodeRow]) -> str:
    if line.value("Format") == "all":
        return ALL
    given = line.value("format")
    if given is None:
        given = call.env.get("SINFO_FORMAT")
    if given is not None:
        return given
    if line.has("list-reasons"):
        return REASONS_LONG if line.has("long") else REASONS
    if line.has("summarize"):
        return SUMMARY
    if line.has("Node"):
        width = max([LEAST_NAME_WIDTH, *(len(row.node.id) for row in rows)])
        return f"%{width}{(BY_NODE_LONG if line.has('long') else BY_NODE)[1:]}"
    return LONG if line.has("long") else DEFAULT


def _is_meant(row: NodeRow, line: Parsed) -> bool:
    hosts = line.value("nodes")
    if hosts is not None and row.node.id not in expanded(hosts):
        return False
    if line.has("dead") and row.state != "down":
        return False
    if line.has("responding") and row.state == "down":
        return False
    states = line.words("states")
    if not states:
        return True
    return any(all(row.state in _meant(each) for each in word.split("&")) for word in states)


def _meant(word: str) -> set[str]:
    found = MEANT.get(word.lower())
    if found is not None:
        return found
    if word.lower() in NEVER_HERE:
        return set()
    raise SlurmError(
        f'sinfo: error: Bad state string: "{word}"', f"sinfo: error: valid states: {VALID}"
    )
