"""Which rows a list of sacctmgr shows: `names=a,b`, `user=alice`, `tree`, `format=...`. Pure."""

from collections.abc import Sequence

from muster.doors.slurm.accounting.associations import (
    ROOT,
    accounts_named,
    admin_level,
    default_account,
)
from muster.doors.slurm.managing.rows import AssociationRow
from muster.doors.slurm.managing.words import Assignment, meant
from muster.doors.slurm.words.errors import SlurmError
from muster.model.queue import is_within
from muster.model.site import Site
from muster.model.value import QueuePath, Value, replace

FLAGS = (
    "Tree WithAssoc WithSubAccounts WithCoordinators WithDeleted WithRawQOSLevel WithClusters "
    "WithFed WOLimits WOPInfo WOPLimits OnlyDefaults All_Clusters All_Time Events Jobs"
).split()
LISTS = (
    "Names Accounts Acct Users Clusters Parents Descriptions Organizations AdminLevel "
    "DefaultAccount DefaultQOS DefaultWCKey QosLevel QOS PreemptMode Ids Partitions Format Action "
    "Actors Start End Nodes States Reason Type CondFlags MaxCPUs MinCPUs Flags Classification RPC "
    "Federation ServerType Servers PercentAllowed Instances EventType"
).split()


class RowFilter(Value):
    """Everything that is given must hold."""

    names: tuple[str, ...] = ()
    format: str | None = None
    flags: frozenset[str] = frozenset()
    lists: tuple[tuple[str, tuple[str, ...]], ...] = ()

    def of(self, *options: str) -> tuple[str, ...]:
        """What was given under any of these names."""
        return tuple(value for name, values in self.lists if name in options for value in values)


def wish_of(words: Sequence[Assignment]) -> RowFilter:
    """Read them; SlurmError for a condition that Slurm does not know either."""
    wish = RowFilter()
    for word in words:
        if not word.sign:
            wish = _with_bare(wish, word.name)
            continue
        option = meant(word.name, LISTS)
        if option is None:
            raise SlurmError(f" Unknown condition: {word.text}")
        if option == "Format":
            wish = replace(wish, format=word.value)
        else:
            wish = replace(wish, lists=(*wish.lists, (option, word.values)))
    return wish


def _with_bare(wish: RowFilter, text: str) -> RowFilter:
    flag = next((each for each in FLAGS if each.lower() == text.lower()), None)
    if flag is None and len(text) > 4:
        flag = meant(text, [each for each in FLAGS if each.startswith(("With", "WO", "Only"))])
    if flag is not None:
        return replace(wish, flags=wish.flags | {flag})
    return replace(wish, names=(*wish.names, *(each for each in text.split(",") if each)))


def of_accounts(
    rows: Sequence[AssociationRow], wish: RowFilter, site: Site
) -> list[AssociationRow]:
    """Rows of the accounts that are named, or that lie just below a parent that is."""
    names = (*wish.names, *wish.of("Names", "Accounts", "Acct"))
    return _in_accounts(rows, names, wish, site)


def of_associations(
    rows: Sequence[AssociationRow], wish: RowFilter, site: Site
) -> list[AssociationRow]:
    accounts = (*wish.names, *wish.of("Names", "Accounts", "Acct"))
    users = wish.of("Users")
    found = _in_accounts(rows, accounts, wish, site)
    if users:
        found = [row for row in found if row.user in users]
    if "OnlyDefaults" in wish.flags:
        found = [row for row in found if not row.user or _is_default(row, site)]
    return found


def of_users(rows: Sequence[AssociationRow], wish: RowFilter, site: Site) -> list[AssociationRow]:
    names = (*wish.names, *wish.of("Names", "Users"))
    levels, defaults = wish.of("AdminLevel"), accounts_named(site, wish.of("DefaultAccount"))
    accounts = accounts_named(site, wish.of("Accounts", "Acct"))
    return [
        row
        for row in rows
        if (not names or row.user in names)
        and (not levels or admin_level(site, row.person).lower().startswith(levels[0].lower()))
        and (not wish.of("DefaultAccount") or default_account(site, row.person) in defaults)
        and (not wish.of("Accounts", "Acct") or row.account in accounts)
    ]


def _in_accounts(
    rows: Sequence[AssociationRow], names: Sequence[str], wish: RowFilter, site: Site
) -> list[AssociationRow]:
    found = list(rows)
    if names:
        wanted = set(accounts_named(site, names)) | ({ROOT} & set(names))
        below = "WithSubAccounts" in wish.flags
        found = [row for row in found if _is_wanted(row, wanted, below=below)]
    parents = wish.of("Parents")
    if parents:
        above = {*accounts_named(site, parents), *({""} if ROOT in parents else ())}
        found = [row for row in found if row.queue and row.path.rpartition("/")[0] in above]
    return found


def _is_wanted(row: AssociationRow, wanted: set[str], *, below: bool) -> bool:
    if row.account in wanted or (below and ROOT in wanted):
        return True
    return below and any(is_within(row.path, QueuePath(each)) for each in wanted)


def _is_default(row: AssociationRow, site: Site) -> bool:
    return default_account(site, row.person) == row.account
