"""`sacctmgr list`: what there is, entity by entity."""

from collections.abc import Callable, Sequence

from muster.doors.slurm.call import Call, Door
from muster.doors.slurm.lists.listing import Listing
from muster.doors.slurm.managing import class_rows, rows
from muster.doors.slurm.managing.conditions import (
    of_accounts,
    of_associations,
    of_users,
    wish_of,
)
from muster.doors.slurm.managing.others import OTHERS, ListRequest
from muster.doors.slurm.managing.rows import (
    AssociationRow,
    account_rows,
    association_rows,
    user_rows,
)
from muster.doors.slurm.managing.tables import Named, Style, printed
from muster.doors.slurm.managing.words import meant, split
from muster.doors.slurm.words.errors import SlurmError
from muster.doors.slurm.words.users import is_user
from muster.model.value import replace

NO_ENTITY = (
    "No valid entity in list command",
    'Input line must include "Account", "Association", "Cluster", "Configuration",',
    '"Event", "Federation", "Problem", "QOS", "Resource", "Reservation",',
    '"RunAwayJobs", "Stats", "Transaction", "TRES", "User", or "WCKey"',
)


def listed(words: Sequence[str], style: Style, call: Call, door: Door, *, apart: bool) -> str:
    """The table; apart: accounts and users once for each association."""
    entity = meant(words[0], tuple(LISTS)) if words else None
    if entity is None:
        raise SlurmError(*NO_ENTITY)
    asked = split(words[1:])
    wish = wish_of((*asked.where, *asked.what))
    if apart:
        wish = replace(wish, flags=wish.flags | {"WithAssoc"})
    view = ListRequest(listing=Listing(call, door), door=door, wish=wish, style=style)
    return LISTS[entity](view)


def _accounts(view: ListRequest) -> str:
    wish, listing = view.wish, view.listing
    apart = "WithAssoc" in wish.flags
    found = (association_rows if apart else account_rows)(listing)
    found.sort(key=lambda row: (row.account, row.user))
    usual = rows.ACCOUNT_APART if apart else rows.ACCOUNT
    if "WithCoordinators" in wish.flags:
        usual = usual.replace("organization", "organization,coordinators")
    return _table(view, of_accounts(found, wish, listing.site), usual)


def _associations(view: ListRequest) -> str:
    wish, listing = view.wish, view.listing
    is_tree = "Tree" in wish.flags
    found = of_associations(association_rows(listing, tree=is_tree), wish, listing.site)
    bare = "WOLimits" in wish.flags
    return _table(view, found, rows.ASSOCIATION_WITHOUT_LIMITS if bare else rows.ASSOCIATION)


def _users(view: ListRequest) -> str:
    wish, listing = view.wish, view.listing
    named = (*wish.names, *wish.of("Names", "Users"))
    apart = "WithAssoc" in wish.flags
    found = user_rows(listing, filter(is_user, named), apart=apart)
    usual = rows.USER_APART if apart else rows.USER
    if "WithCoordinators" in wish.flags:
        usual = usual.replace("adminlevel", "adminlevel,coordinators")
    return _table(view, of_users(found, wish, listing.site), usual)


def _classes(view: ListRequest) -> str:
    wish = view.wish
    names = (*wish.names, *wish.of("Names", "QOS", "QosLevel"))
    found = [
        each
        for _, each in sorted(view.listing.site.classes.items())
        if not names or each.name in names
    ]
    return printed(wish.format or class_rows.USUAL, class_rows.FIELDS, found, view.style)


def _table(view: ListRequest, found: Sequence[AssociationRow], usual: str) -> str:
    fields = rows.FIELDS
    if "Tree" in view.wish.flags:
        fields = tuple(_leftwards(each) for each in fields)
    return printed(view.wish.format or usual, fields, found, view.style)


def _leftwards(named: Named[AssociationRow]) -> Named[AssociationRow]:
    """In a tree the account is wide, and begins on the left."""
    names, field = named
    if "account" not in names:
        return named
    return names, type(field)(header=field.header, get=field.get, width=-20)


LISTS: dict[str, Callable[[ListRequest], str]] = {
    "Accounts": _accounts,
    "Associations": _associations,
    "QOS": _classes,
    "Users": _users,
    **OTHERS,
}
