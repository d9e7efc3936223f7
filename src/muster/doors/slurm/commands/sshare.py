"""`sshare`: who has which share, and what became of it."""

from collections import Counter
from collections.abc import Callable, Container, Iterable, Iterator

from muster.controller.messages import Share, ShareTree
from muster.doors.slurm.accounting.associations import (
    ROOT,
    accounts_named,
    accounts_of,
    associations,
)
from muster.doors.slurm.call import Call, Door, Reply, lines, version
from muster.doors.slurm.clusters import demand_here
from muster.doors.slurm.help import help_reply
from muster.doors.slurm.lists.filters import users_of
from muster.doors.slurm.lists.listing import Listing
from muster.doors.slurm.lists.promised import Promised, promised
from muster.doors.slurm.words.errors import failed
from muster.doors.slurm.words.formats import Field, by_name, cut_table, parsable, picked_form
from muster.doors.slurm.words.options import Manner, Option, Parsed, parsed, table
from muster.model.queue import lineage
from muster.model.value import QueuePath, UserName
from muster.schedule.state.share import FULL, ONE

NAME = "sshare"
OPTIONS = (
    *table("""
        A:accounts= a:all M:cluster= clusters= o:format= help e:helpformat l:long n:noheader
        p:parsable P:parsable2 m:partition usage u:users= uid= U:Users v:verbose V:version
    """),
    # Not documented, and in use.
    Option(name="noheader", short="h"),
)
PLAIN = "account,user,rawshares,normshares,rawusage,effectvusage,fairshare"
LONG = (
    "account,user,rawshares,normshares,rawusage,normusage,effectvusage,fairshare,levelfs,"
    "grptresmins,tresrunmins"
)


class ShareRow:
    """The whole, an account, or a user in an account.

    beside: the weights of all at its place. used_by_all: what everybody used lately.
    """

    __slots__ = (
        "account",
        "beside",
        "depth",
        "listing",
        "promised",
        "share",
        "used_by_all",
        "user",
    )

    def __init__(self, account: str, user: str, share: Share, listing: Listing) -> None:
        self.account = account
        self.user = user
        self.share = share
        self.used_by_all = 0
        self.listing = listing
        self.depth = 0
        self.beside = 1
        self.promised = Promised()

    @property
    def is_whole(self) -> bool:
        return self.account == ROOT and not self.user


def run(call: Call, door: Door) -> Reply:
    """List shares as a tree."""
    line = parsed(OPTIONS, call.argv, Manner(command=NAME))
    if line.has("version"):
        return version()
    if line.has("help") or line.has("usage"):
        return help_reply(NAME, OPTIONS, "[OPTION]")
    if line.has("helpformat"):
        return Reply(out=_field_names())
    form, unknown = picked_form(_format(line).split(","), FIELDS)
    if unknown:
        raise failed(NAME, f'Invalid field requested: "{unknown[0].lower()}"')
    listing = Listing(call, door)
    demand_here(NAME, line.words("cluster", "clusters"), listing)
    rows = list(_chosen(line, door, listing))
    header = not line.has("noheader")
    text = [f"CLUSTER: {listing.cluster}"] if line.has("cluster") or line.has("clusters") else []
    if line.has("parsable") or line.has("parsable2"):
        ends = ("|", "" if line.has("parsable2") else "|")
        text += parsable(form, FIELDS, rows, header=header, ends=ends)
    else:
        text += cut_table(form, FIELDS, rows, header=header)
    return Reply(out=lines(text), err=_said(line, door))


def _said(line: Parsed, door: Door) -> str:
    """With -v: what was asked for."""
    if not line.has("verbose"):
        return ""
    users = () if line.has("all") else line.words("users", "uid") or (door.caller.user,)
    parts = (("Users", users), ("Accounts", line.words("accounts")))
    return "".join(
        f"{what} requested:\n" + "".join(f"\t: {each}\n" for each in named or ("all",))
        for what, named in parts
    )


def _format(line: Parsed) -> str:
    given = line.values("format")
    if given:
        return ",".join(given)
    usual = LONG if line.has("long") else PLAIN
    return usual.replace("user,", "user,partition,") if line.has("partition") else usual


def _chosen(line: Parsed, door: Door, listing: Listing) -> Iterator[ShareRow]:
    accounts = accounts_named(listing.site, line.words("accounts"))
    wants_accounts = bool(line.words("accounts"))
    users = users_of(line.words("users", "uid")) or {door.caller.user}
    known = promised(door.queries.jobs.running(door.caller), door.now)
    shares = door.queries.queues.shares(door.caller, _members(listing, door.caller.user))
    for row in _tree(listing, shares):
        if wants_accounts and row.account not in accounts:
            continue
        if row.user and not line.has("all") and row.user not in users:
            continue
        if line.has("Users") and not row.user:
            continue
        if wants_accounts or line.has("Users"):
            row.depth = int(bool(row.user) and not line.has("Users"))
        row.used_by_all = shares.root.used
        row.promised = known.get((row.account, row.user), Promised())
        yield row


def _tree(listing: Listing, shares: ShareTree) -> Iterator[ShareRow]:
    """The whole, then each account with its users before the accounts below it."""
    members: dict[QueuePath, set[UserName]] = {}
    for path, user in shares.users:
        members.setdefault(path, set()).add(user)
    queues = {QueuePath(ROOT): shares.root} | {
        path: share for path, share in shares.queues.items() if path != ROOT
    }
    weights = Counter({path: len(members.get(path, ())) for path in queues})
    for path in set(queues) - {ROOT}:
        weights[_above(path, queues)] += queues[path].weight
    for path in _in_tree_order(queues):
        account = ShareRow(path, "", queues[path], listing)
        account.depth = sum(each in queues and each != ROOT for each in lineage(path))
        account.beside = weights[_above(path, queues)]
        yield account
        for user in sorted(members.get(path, ())):
            row = ShareRow(path, user, shares.users[path, user], listing)
            row.depth, row.beside = account.depth + 1, weights[path]
            yield row


def _above(path: QueuePath, queues: Container[QueuePath]) -> QueuePath:
    """The nearest account above one, or the whole."""
    above = (each for each in lineage(path) if each != path and each in queues)
    return next(above, QueuePath(ROOT))


def _in_tree_order(paths: Iterable[QueuePath]) -> list[QueuePath]:
    return sorted(paths, key=lambda path: (path != ROOT, path.split("/")))


def _members(listing: Listing, caller: UserName) -> Iterator[tuple[QueuePath, UserName]]:
    """The users who belong to accounts, and the caller."""
    for each in associations(listing.site):
        yield each.account, each.user
    for path in accounts_of(listing.site, caller):
        yield path, caller


def _field_names() -> str:
    """Four in a line, in columns."""
    names = [f"{name:<17}" for name in LISTED]
    rows = [" ".join(names[at : at + 4]) for at in range(0, len(names), 4)]
    return "".join(f"{row}\n" for row in rows)


def _account(row: ShareRow) -> str:
    return " " * row.depth + row.account


def _fraction(part: int, whole: int) -> str:
    return f"{part / whole if whole else 0:.6f}"


def _norm_usage(row: ShareRow) -> str:
    if row.is_whole:
        return ""
    return _fraction(row.share.used, row.used_by_all)


def _level(row: ShareRow) -> str:
    """How large the share is beside what counts as used: at 1 they are the same."""
    if row.is_whole:
        return ""
    used = row.share.effective
    return f"{row.share.share / used:.6f}" if used else "inf"


def _fair_share(row: ShareRow) -> str:
    return _fraction(row.share.factor, FULL) if row.user else ""


def _of_part(get: Callable[[ShareRow], str], whole: str) -> Callable[[ShareRow], str]:
    """Of the whole tree there is only one thing to say."""
    return lambda row: whole if row.is_whole else get(row)


_FIELDS: tuple[tuple[str, int, Callable[[ShareRow], str]], ...] = (
    ("Account", -20, _account),
    ("Cluster", 10, lambda row: row.listing.cluster),
    (
        "EffectvUsage",
        13,
        _of_part(lambda row: _fraction(row.share.effective, ONE), "1.000000"),
    ),
    ("FairShare", 10, _fair_share),
    ("GrpTRESMins", 30, lambda _: ""),
    ("GrpTRESRaw", 30, lambda row: f"gres/gpu={row.share.used // 60_000_000}"),
    ("ID", 6, lambda _: ""),
    ("LevelFS", 10, _level),
    ("NormShares", 11, _of_part(lambda row: _fraction(row.share.weight, row.beside), "0.000000")),
    ("NormUsage", 11, _norm_usage),
    ("Partition", 12, lambda _: ""),
    ("RawShares", 10, _of_part(lambda row: str(row.share.weight), "")),
    ("RawUsage", 11, lambda row: str(row.share.used // 1_000_000)),
    ("TRESRunMins", 30, lambda row: row.promised.text),
    ("User", 10, lambda row: row.user),
)
LISTED = tuple(name for name, _, _ in _FIELDS)
FIELDS = by_name({name: Field(header=name, get=get, width=width) for name, width, get in _FIELDS})
