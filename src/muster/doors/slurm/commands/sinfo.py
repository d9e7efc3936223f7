"""`sinfo`: partitions and nodes."""

from muster.doors.slurm import times
from muster.doors.slurm.call import Call, Door, Reply, lines, version, warning
from muster.doors.slurm.formats import Field, Form, known, long_form, rendered, short_form
from muster.doors.slurm.helping import help_reply
from muster.doors.slurm.hostlist import expanded
from muster.doors.slurm.machines import Group, NodeRow, grouped, node_rows
from muster.doors.slurm.node_json import nodes_json
from muster.doors.slurm.options import Manner, Parsed, parsed, table
from muster.doors.slurm.scene import Scene
from muster.doors.slurm.showing_reservations import table as reservations
from muster.doors.slurm.sinfo_fields import LETTERS, NAMES, NAMES_OF_ONE_NODE, OF_ONE_NODE
from muster.doors.slurm.trouble import SlurmError, failed

NAME = "sinfo"
OPTIONS = table("""
    O:Format= N:Node a:all M:cluster= clusters= d:dead e:exact federation o:format= help hide
    i:iterate= json R:list-reasons local l:long n:nodes= noconvert h:noheader p:partition=
    T:reservation r:responding S:sort= t:states= s:summarize usage v:verbose V:version yaml
""")
IGNORED = ("iterate", "federation", "sort", "cluster", "clusters")

DEFAULT = "%9P %.5a %.10l %.6D %.6t %N"
LONG = "%9P %.5a %.10l %.10s %.4r %.8h %.10g %.6D %.11T %N"
BY_NODE = "%N %.6D %.9P %6t"
BY_NODE_LONG = "%N %.6D %.9P %.11T %4c %.8z %.6m %.8d %.6w %.8f %20E"
SUMMARY = "%9P %.5a %.10l %.16F %N"
REASONS = "%20E %9u %19H %N"

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
    if line.has("help") or line.has("usage"):
        return help_reply(NAME, OPTIONS)
    scene = Scene(call, door)
    rows = [row for row in node_rows(scene) if _is_meant(row, line)]
    warned = "".join(warning(NAME, each) for each in IGNORED if line.has(each))
    if line.has("json"):
        return Reply(out=nodes_json(rows), err=warned)
    if line.has("yaml"):
        raise failed(NAME, "--yaml is not supported by Muster")
    if line.has("reservation"):
        return Reply(out=reservations(scene, header=not line.has("noheader")), err=warned)
    return _table(line, call, rows, warned)


def _table(line: Parsed, call: Call, rows: list[NodeRow], warned: str) -> Reply:
    by_name = line.value("Format")
    form = long_form(by_name) if by_name else short_form(_format(line, call, rows))
    fields: dict[str, Field[Group]] = NAMES if by_name else LETTERS
    form, lost = known(form, fields)
    warned += "".join(f"sinfo: error: Invalid node format specification: {each}\n" for each in lost)
    groups = _groups(line, call, form, rows)
    shown = list(rendered(form, fields, groups, header=not line.has("noheader")))
    if line.has("long") and not line.has("noheader") and rows:
        shown.insert(0, times.heading_text(rows[0].scene.now, call.zone))
    return Reply(out=lines(shown), err=warned)


def _groups(line: Parsed, call: Call, form: Form, rows: list[NodeRow]) -> list[Group]:
    if not rows:
        return []
    scene = rows[0].scene
    apart = line.has("Node")
    single = OF_ONE_NODE | NAMES_OF_ONE_NODE
    used = [column.field for column in form.columns if column.field in single]
    fields = NAMES if line.has("Format") else LETTERS

    def key(row: NodeRow) -> tuple[str, ...]:
        if apart:
            return (row.node.id,)
        alone = (
            Group(scene.pools[row.node.pool], (row,), scene)
            if row.node.pool in scene.pools
            else None
        )
        return () if alone is None else tuple(fields[each].get(alone) for each in used)

    groups = grouped(scene, rows, key)
    wanted = set(line.words("partition") or call.env.get("SINFO_PARTITION", "").split(","))
    groups = [group for group in groups if wanted == {""} or group.pool.name in wanted]
    if apart:
        groups = [group for group in groups if group.rows]
    if line.has("list-reasons"):
        groups = [group for group in groups if group.rows and not group.rows[0].takes_work]
    return groups


def _format(line: Parsed, call: Call, rows: list[NodeRow]) -> str:
    given = line.value("format") or call.env.get("SINFO_FORMAT")
    if given is not None:
        return given
    if line.has("list-reasons"):
        return REASONS
    if line.has("summarize"):
        return SUMMARY
    if line.has("Node"):
        width = max(10, *(len(row.node.id) for row in rows)) if rows else 10
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
    return not states or any(row.state in _meant(word) for word in states)


def _meant(word: str) -> set[str]:
    found = MEANT.get(word.lower())
    if found is not None:
        return found
    if word.lower() in NEVER_HERE:
        return set()
    raise SlurmError(
        f'sinfo: error: Bad state string: "{word}"', f"sinfo: error: valid states: {VALID}"
    )
